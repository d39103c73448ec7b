"""The metadata of cached objects. Its types are in the stub beside this module."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from aioinformer.cache.objects.frozen import FrozenDict, closed
from aioinformer.cache.objects.models.classes import struct_for
from aioinformer.cache.objects.models.shapes import attributes_of
from aioinformer.cache.objects.record import labels_of
from aioinformer.logs import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

#: kubernetes_asyncio's name of the metadata.
OBJECT_META = "V1ObjectMeta"


class MetadataView(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Metadata of a cached object. Identity and labels need no decoding; all other attributes decode the body.

    It is a part of its view, which hands it its record; the view decodes the body.
    """

    openapi_types: ClassVar[dict[str, str]] = {}
    attribute_map: ClassVar[dict[str, str]] = {}

    _owner: Any
    _stored: Any

    @property
    def __class__(self) -> type:
        # So that `isinstance(pod.metadata, ObjectMeta)` is true: code for metadata accepts that of cached objects, too.
        return struct_for(OBJECT_META)

    @property
    def name(self) -> str:
        """The name of the object."""
        return str(self._stored.name)

    @property
    def namespace(self) -> str | None:
        """The namespace of the object; None for cluster-scoped ones."""
        return self._stored.namespace or None

    @property
    def uid(self) -> str:
        """The uid of the object."""
        return str(self._stored.uid)

    @property
    def resource_version(self) -> str:
        """The version of the object."""
        return str(self._stored.resource_version)

    @property
    def labels(self) -> FrozenDict[str, str] | None:
        """The labels of the object; None if it has none."""
        labels = labels_of(self._stored)
        return closed(labels) if labels else None

    def to_dict(self) -> dict[str, Any]:
        """Return a plain copy with the keys of the JSON."""
        metadata: dict[str, Any] = self._owner.to_dict().get("metadata") or {}
        return metadata

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self.to_dict().items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MetadataView) and self.to_dict() == other.to_dict()

    def __ne__(self, other: object) -> bool:
        return not self.__eq__(other)  # Struct's own compares identities

    def __hash__(self) -> int:
        return hash((self.namespace, self.name, self.uid, self.resource_version))

    def __repr__(self) -> str:
        return visible(f"<metadata of {self._stored.key}>")


def _decoded(name: str) -> property:
    # The decoded metadata has an underscore in views, because fields of objects are attributes of views.
    return property(attrgetter(f"_owner._metadata.{name}"), doc=f"`{name}` of the metadata.")


for _attribute in attributes_of(OBJECT_META):
    if not hasattr(MetadataView, _attribute.name):
        setattr(MetadataView, _attribute.name, _decoded(_attribute.name))
    MetadataView.openapi_types[_attribute.name] = _attribute.type
    MetadataView.attribute_map[_attribute.name] = _attribute.wire


def __getattr__(name: str) -> Any:
    if name in ("ManagedFieldsEntry", "ObjectMeta", "OwnerReference"):
        return struct_for(f"V1{name}")  # decoded metadata, and parts of it
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
