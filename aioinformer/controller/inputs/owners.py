"""Owner references of objects of any form, and the index of cached objects by the uids of their owners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from aioinformer.cache.objects.record import without_managed_fields
from aioinformer.cache.objects.views import View
from aioinformer.errors import DecodeError, UsageError
from aioinformer.resources.keys import metadata_of

if TYPE_CHECKING:
    from aioinformer.informer.shared_informer import SharedIndexInformer

#: The name of the index of cached objects by their owners. Its values are uids of controllers, and `other_owner(uid)`
#: of other owners.
OWNER_INDEX: Final = "owner"


class OwnerReference(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """One entry of `metadata.ownerReferences`."""

    api_version: str | None = ""
    kind: str | None = ""
    name: str | None = ""
    uid: str | None = ""
    controller: bool | None = False

    @property
    def group(self) -> str:
        """The API group; versions of a group have the same objects."""
        return (self.api_version or "").rpartition("/")[0]


class _Meta(msgspec.Struct, rename="camel", gc=False):
    owner_references: list[OwnerReference] | None = None


class _Owned(msgspec.Struct, gc=False):
    metadata: _Meta


_decode = msgspec.json.Decoder(_Owned).decode


def owner_references(obj: Any) -> list[OwnerReference]:
    """Return the owner references of an object of any form.

    Raises:
        DecodeError: they are not those of an API object.
        UsageError: the class of the object has no owner references.
    """
    if isinstance(obj, View):
        raw = obj._record.json
        if b'"ownerReferences"' not in raw:
            return []
        shorter = without_managed_fields(raw)
        try:
            return _decode(raw if shorter is None else shorter).metadata.owner_references or []
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DecodeError(f"{obj._record.key}: {error}", key=obj._record.key) from None
    metadata = metadata_of(obj)
    found = _member(metadata, "owner_references", "ownerReferences")
    return [
        OwnerReference(
            _member(each, "api_version", "apiVersion"),
            _member(each, "kind", "kind"),
            _member(each, "name", "name"),
            _member(each, "uid", "uid"),
            _member(each, "controller", "controller"),
        )
        for each in found or ()
    ]


def _member(value: Any, attribute: str, wire: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(wire)
    for name in (attribute, wire):
        if hasattr(value, name):
            return getattr(value, name)
    raise UsageError(f"{type(value).__name__} has no member {wire}; its owners are found by it: add it to the class")


def other_owner(uid: str) -> str:
    """Return the value in the index of an owner that is not the controller."""
    return f"other:{uid}"


def owner_uids(obj: Any) -> list[str]:
    """Return the values of an object in the index of owners."""
    references = owner_references(obj)
    return [each.uid if each.controller else other_owner(each.uid) for each in references if each.uid]


def owned_by(informer: SharedIndexInformer[Any], uid: str, *, controller_only: bool = True) -> list[Any]:
    """Return the cached objects with this owner, in the order of their keys.

    Args:
        informer: has the index `OWNER_INDEX`.
        uid: of the owner.
        controller_only: return only the objects whose controller it is.

    Raises:
        IndexNotFound: the informer has no such index.
    """
    indexer = informer.get_indexer()
    keys = indexer.index_keys(OWNER_INDEX, uid)
    if not controller_only:
        keys = sorted({*keys, *indexer.index_keys(OWNER_INDEX, other_owner(uid))})
    return [obj for key in keys if (obj := indexer.get_by_key(key)) is not None]
