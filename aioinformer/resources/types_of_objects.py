"""The API version and the kind of an object: what it states, or those that its class was declared for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from aioinformer.errors import UsageError
from aioinformer.resources.catalog import BUILTIN_RESOURCES

if TYPE_CHECKING:
    from collections.abc import MutableMapping

#: API version and kind of the resources whose objects have a class, by class; the version that is stored comes first.
_declared: Final[MutableMapping[type[Any], list[tuple[str, str]]]] = WeakKeyDictionary()


def declare_class(cls: type[Any], api_version: str, kind: str, *, first: bool) -> None:
    """Note that the objects of a resource have this class. `first`: prefer this version to those noted before."""
    known = _declared.setdefault(cls, [])
    if (api_version, kind) not in known:
        known.insert(0 if first else len(known), (api_version, kind))


def declared_type(cls: type[Any]) -> tuple[str, str]:
    """Return API version and kind of the resource whose objects have a class; ("", "") if there is none.

    Raises:
        UsageError: several kinds have this class.
    """
    known = _declared.get(cls, [])
    kinds = {(api_version.rpartition("/")[0], kind) for api_version, kind in known}
    if len(kinds) > 1:
        shown = " and ".join(sorted(f"{kind}.{group}" for group, kind in kinds))
        raise UsageError(f"{cls.__name__} is the class of {shown}: pass an ObjectReference, which names one of them")
    return known[0] if known else ("", "")


def type_of(obj: Any) -> tuple[str, str]:
    """Return API version and kind of an object, ("", "") if neither it nor its class tells them.

    Args:
        obj: a view, a mapping with the keys of the JSON, a model of kubernetes_asyncio, an object with the attributes
            `api_version` and `kind`, or one of a class of `custom_resource`.

    Raises:
        UsageError: several kinds have its class.
    """
    api_version = getattr(obj, "api_version", None)
    kind = getattr(obj, "kind", None)
    if isinstance(obj, Mapping):
        api_version = obj.get("apiVersion") or api_version
        kind = obj.get("kind") or kind
    elif not isinstance(api_version, str):
        api_version = getattr(obj, "apiVersion", None)
    if isinstance(api_version, str) and isinstance(kind, str) and api_version and kind:
        return api_version, kind
    return _types_of_models().get(type(obj).__name__) or declared_type(type(obj))


@cache
def _types_of_models() -> dict[str, tuple[str, str]]:
    """Return API version and kind by model: models of kubernetes_asyncio often have neither set."""
    return {each.model: (each.api_version, each.kind) for each in BUILTIN_RESOURCES if each.model}
