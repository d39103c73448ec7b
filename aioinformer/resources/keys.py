"""Keys: `namespace/name`, or `name` for a cluster-scoped object, identify an object within its resource.

Each key function accepts objects of the cache, and everything that users put into a store: dicts, models of
kubernetes_asyncio, and any object with `metadata`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from aioinformer.errors import KeyFuncError

T_co = TypeVar("T_co", covariant=True)


class DeletedFinalStateUnknown(msgspec.Struct, Generic[T_co], frozen=True):
    """A tombstone: the object was deleted, but the watch missed its deletion and its final state.

    Attributes:
        key: `namespace/name`, or `name`.
        obj: the last known state, which may be stale; None if none is known.
    """

    key: str
    obj: T_co | None


class ObjectName(NamedTuple):
    """A key in two parts; `str()` returns `namespace/name` or `name`."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class ExplicitKey(str):
    """A key that can be passed in place of an object."""

    __slots__ = ()


def metadata_of(obj: Any) -> Any:
    """Return the metadata of a mapping, a model or another object.

    Raises:
        KeyFuncError: the object has no metadata.
    """
    if issubclass(type(obj), dict):  # asking whether it is any other mapping takes several times as long
        metadata = obj.get("metadata")
    else:
        metadata = getattr(obj, "metadata", None)
        if metadata is None and isinstance(obj, Mapping):
            metadata = obj.get("metadata")
    if metadata is None:
        raise KeyFuncError(f"{type(obj).__name__} has no metadata; pass a key_func for such objects to the store")
    return metadata


def metadata_field(metadata: Any, attribute: str, wire: str) -> Any:
    """Return a field of metadata: by its attribute for models, by its JSON name for mappings."""
    if issubclass(type(metadata), dict):
        return metadata.get(wire)
    value = getattr(metadata, attribute, None)
    return metadata.get(wire) if value is None and isinstance(metadata, Mapping) else value


def object_name(obj: Any) -> ObjectName:
    """Return namespace ("" if cluster-scoped) and name of an object.

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
    """Return `namespace/name`, or `name` for an object without namespace.

    Raises:
        KeyFuncError: the object has no metadata or no name.
    """
    if isinstance(obj, ExplicitKey):
        return str(obj)
    key = getattr(obj, "_key", None)
    return key if isinstance(key, str) else str(object_name(obj))


def deletion_handling_meta_namespace_key_func(obj: Any) -> str:
    """Return the key of an object or tombstone. Use it in `on_delete`, which may get tombstones.

    Raises:
        KeyFuncError: the object has no metadata or no name.
    """
    if isinstance(obj, DeletedFinalStateUnknown):
        return obj.key
    return meta_namespace_key_func(obj)


def deletion_handling_object_name(obj: Any) -> ObjectName:
    """Return namespace and name of an object or tombstone.

    Raises:
        KeyFuncError: the object has no metadata or no name.
    """
    if isinstance(obj, DeletedFinalStateUnknown):
        return split_meta_namespace_key(obj.key)
    return object_name(obj)


def split_meta_namespace_key(key: str) -> ObjectName:
    """Return the parts of a key.

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
    """Return the namespace of an object, [""] for cluster-scoped ones: the function of the index `namespace`.

    Raises:
        KeyFuncError: the object has no metadata.
    """
    namespace = metadata_field(metadata_of(obj), "namespace", "namespace")
    return [namespace or ""]
