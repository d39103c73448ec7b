"""References to objects, such as an Event has one to its object (client-go's tools/reference)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from aioinformer.errors import UsageError
from aioinformer.resources.keys import DeletedFinalStateUnknown, metadata_field, metadata_of, object_name
from aioinformer.resources.types_of_objects import type_of


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """Identifies an object, and optionally one version or part of it.

    Attributes:
        api_version: "v1", "apps/v1" …
        kind: "Pod" …
        name: the name of the object.
        namespace: its namespace, "" for cluster-scoped objects.
        uid: its uid, "" for any object of that name.
        resource_version: its version, "" for any version.
        field_path: a part of the object, "spec.containers{web}"; "" for the whole object.
    """

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return the reference in the form of the API, without empty fields."""
        members = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "resourceVersion": self.resource_version,
            "fieldPath": self.field_path,
        }
        return {name: value for name, value in members.items() if value}


def get_reference(obj: Any) -> ObjectReference:
    """Return a reference to an object.

    Args:
        obj: an object of the cache, a tombstone, a model of kubernetes_asyncio, a mapping with `apiVersion` and `kind`,
            an object of a class of `custom_resource`, or a reference, which is returned unchanged.

    Raises:
        UsageError: the kind of the object is unknown.
        KeyFuncError: the object has no name.
    """
    if isinstance(obj, ObjectReference):
        return obj
    if isinstance(obj, DeletedFinalStateUnknown):
        if obj.obj is None:
            raise UsageError(f"obj: the last state of {obj.key} is not known; pass an ObjectReference")
        obj = obj.obj
    if obj is None:
        raise UsageError("obj: expected an object of the API or an ObjectReference, not None")
    if isinstance(obj, str):
        raise UsageError("obj: expected an object of the API or an ObjectReference, not the text of a key")
    metadata = metadata_of(obj)
    namespace, name = object_name(obj)
    api_version, kind = type_of(obj)
    if not api_version or not kind:
        raise UsageError(
            f"{type(obj).__name__} {name} has no kind: set apiVersion and kind, make its resource with "
            "custom_resource(), or pass an ObjectReference; a reconciler has one in request.reference"
        )
    return ObjectReference(
        api_version,
        kind,
        name,
        namespace,
        metadata_field(metadata, "uid", "uid") or "",
        metadata_field(metadata, "resource_version", "resourceVersion") or "",
    )


def get_partial_reference(obj: Any, field_path: str) -> ObjectReference:
    """Return a reference to a part of an object.

    Args:
        obj: as for `get_reference`.
        field_path: the part, such as "spec.containers{web}".

    Raises:
        UsageError: the kind of the object is unknown.
        KeyFuncError: the object has no name.
    """
    return replace(get_reference(obj), field_path=field_path)
