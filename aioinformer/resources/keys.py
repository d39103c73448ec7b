"""Keys: how an object is called within its resource, `namespace/name` or `name`.

Every key function takes what users put into a store by hand (dicts, models of kubernetes_asyncio, any object with
`metadata`), and what the cache hands out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from aioinformer.errors import KeyFuncError

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class DeletedFinalStateUnknown(Generic[T_co]):
    """A tombstone: the object is gone, and its last state before that was missed.

    Attributes:
        key: `namespace/name`, or `name`.
        obj: the last state that was known, which may be old; None if none was.
    """

    key: str
    obj: T_co | None


class ObjectName(NamedTuple):
    """A key in two parts; `str()` gives the usual form (NAM-01)."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class ExplicitKey(str):
    """A key that stands for an object where one is asked for (STO-03)."""

    __slots__ = ()


def metadata_of(obj: Any) -> Any:
    """The metadata of an object, whatever form it has.

    Raises:
        KeyFuncError: it has none.
    """
    metadata = obj.get("metadata") if isinstance(obj, Mapping) else getattr(obj, "metadata", None)
    if metadata is None:
        raise KeyFuncError(f"{type(obj).__name__} has no metadata; give the store a key_func that understands it")
    return metadata


def metadata_field(metadata: Any, attribute: str, wire: str) -> Any:
    """One field of metadata: by attribute for models, by its wire name for mappings."""
    return metadata.get(wire) if isinstance(metadata, Mapping) else getattr(metadata, attribute, None)


def object_name(obj: Any) -> ObjectName:
    """Namespace ("" if cluster-scoped) and name of an object.

    Raises:
        KeyFuncError: the object has no metadata or no name.
    """
    metadata = metadata_of(obj)
    name = metadata_field(metadata, "name", "name")
    if not isinstance(name, str) or not name:
        raise KeyFuncError(f"{type(obj).__name__} has no metadata.name")
    namespace = metadata_field(metadata, "namespace", "namespace")
    if namespace is not None and not isinstance(namespace, str):
        raise KeyFuncError(f"metadata.namespace of {type(obj).__name__} is not a string")
    return ObjectName(namespace or "", name)


def meta_namespace_key_func(obj: Any) -> str:
    """`namespace/name`, or `name` for an object without namespace.

    Raises:
        KeyFuncError: the object has no metadata or no name.
    """
    if isinstance(obj, ExplicitKey):
        return str(obj)
    key = getattr(obj, "_key", None)
    return key if isinstance(key, str) else str(object_name(obj))


def deletion_handling_meta_namespace_key_func(obj: Any) -> str:
    """As `meta_namespace_key_func`, and of a tombstone its key: what `on_delete` should use (CTL-10)."""
    if isinstance(obj, DeletedFinalStateUnknown):
        return obj.key
    return meta_namespace_key_func(obj)


def deletion_handling_object_name(obj: Any) -> ObjectName:
    """As `object_name`, tombstones included."""
    if isinstance(obj, DeletedFinalStateUnknown):
        return split_meta_namespace_key(obj.key)
    return object_name(obj)


def split_meta_namespace_key(key: str) -> ObjectName:
    """The parts of a key.

    Raises:
        KeyFuncError: the key has more than two parts.
    """
    parts = key.split("/")
    if len(parts) == 1:
        return ObjectName("", parts[0])
    if len(parts) == 2:
        return ObjectName(parts[0], parts[1])
    raise KeyFuncError(f"key {key!r} has {len(parts)} parts; expected name or namespace/name")


def meta_namespace_index_func(obj: Any) -> list[str]:
    """The namespace of an object, [""] for cluster-scoped ones: the function of the index `namespace` (STO-11)."""
    namespace = metadata_field(metadata_of(obj), "namespace", "namespace")
    return [namespace or ""]
