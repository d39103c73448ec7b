"""Preconditions of writes: names, resourceVersions, uids, finalizers, namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode, encode_plain, is_number, quote
from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.api.validation import check_metadata_types
from aioinformer.testing.state.strategies import needs_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.object_store import ObjectStore
    from aioinformer.testing.state.storage import Record

_PERMANENT = frozenset({"default", "kube-system", "kube-public"})


def check_name(metadata: Mapping[str, Any], name: str) -> None:
    """Compare the name in a body with that in the URL."""
    own_name = metadata.get("name")
    if not own_name:
        why = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        raise statuses.bad_request(why)
    if own_name != name:
        raise statuses.bad_request(f"the name of the object ({own_name}) does not match the name on the URL ({name})")


def check_creation(served: Served, namespace: str, name: str, obj: Mapping[str, Any]) -> None:
    """Check an update of a missing object, and drop its resourceVersion.

    Raises:
        StatusError: 400 for another name, 409 if the update is for a deleted object.
    """
    metadata = obj.get("metadata") or {}
    check_name(metadata, name)
    metadata.pop("resourceVersion", None)
    if uid := metadata.get("uid"):
        raise statuses.conflict(served.resource, name, _wrong_uid(uid, ""))


def check_preconditions(served: Served, record: Record, metadata: Mapping[str, Any]) -> None:
    """Compare the resourceVersion and the uid of an update with those that are stored.

    Raises:
        StatusError: 409; 422 if a required resourceVersion is missing; 500 if it is not a number.
    """
    resource = served.resource
    name = record.name
    sent = str(metadata.get("resourceVersion") or "0")
    if not is_number(sent, bits=64):
        raise statuses.internal_error(f"metadata.resourceVersion: Invalid value: {quote(sent)}: it is not a number")
    version = int(sent)
    if needs_version(served) and not version:
        cause = Cause.invalid("metadata.resourceVersion", "0", "must be specified for an update")
        raise statuses.invalid(resource.plural, resource.group, name, [cause])
    uid = metadata.get("uid")
    if uid and uid != record.uid:
        raise statuses.conflict(resource, name, _wrong_uid(uid, record.uid))
    if version and version != record.version:
        raise statuses.object_modified(resource, name)


def check_delete_preconditions(served: Served, record: Record, uid: str, version: str) -> None:
    """Compare the preconditions of a deletion with the stored object; "" for none."""
    if uid and uid != record.uid:
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({record.uid}). "
            "The object might have been deleted and then recreated"
        )
        raise statuses.conflict(served.resource, record.name, why, kind=served.resource.kind)
    if version and version != str(record.version):
        why = (
            f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
            f"({record.version}). The object might have been modified"
        )
        raise statuses.conflict(served.resource, record.name, why, kind=served.resource.kind)


def check_stored(served: Served, record: Record, uid: str, version: str) -> None:
    """Compare the preconditions of a write by the server itself with the stored object; "" for none."""
    if uid and uid != record.uid:
        raise statuses.conflict(served.resource, record.name, _wrong_uid(uid, record.uid))
    if version and version != str(record.version):
        why = f"Precondition failed: resourceVersion in precondition: {version}, in object: {record.version}"
        raise statuses.conflict(served.resource, record.name, why)


def check_deletion(metadata: Mapping[str, Any], old: Mapping[str, Any]) -> list[Cause]:
    """Return what is wrong with the deletion fields of an update. They may be omitted."""
    return [
        Cause.invalid(f"metadata.{field}", encode_plain(sent).decode(), "field is immutable")
        for field in ("deletionTimestamp", "deletionGracePeriodSeconds")
        if (sent := metadata.get(field)) is not None and sent != old.get(field)
    ]


def new_finalizer_causes(metadata: Mapping[str, Any], old: Mapping[str, Any]) -> list[Cause]:
    """Return what is wrong with new finalizers: an object that is being deleted takes none."""
    if "deletionTimestamp" not in old:
        return []
    added = [name for name in metadata.get("finalizers") or () if name not in (old.get("finalizers") or ())]
    if not added:
        return []
    why = f"no new finalizers can be added if the object is being deleted, found new finalizers {quote(added)}"
    return [Cause.forbidden("metadata.finalizers", why)]


def _wrong_uid(sent: str, stored: str) -> str:
    return f"Precondition failed: UID in precondition: {sent}, UID in object meta: {stored}"


def checked_metadata(served: Served, namespace: str, obj: dict[str, Any]) -> dict[str, Any]:
    """Set kind, version and namespace of a body as in the URL, and return its metadata."""
    resource = served.resource
    obj["kind"] = resource.kind
    obj["apiVersion"] = resource.api_version
    metadata = obj.get("metadata")
    if metadata is None:
        metadata = {}
        obj["metadata"] = metadata
    check_metadata_types(resource.kind, metadata)
    if resource.namespaced:
        if (metadata.get("namespace") or namespace) != namespace:
            why = "the namespace of the provided object does not match the namespace sent on the request"
            raise statuses.bad_request(why)
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    if metadata.get("managedFields") == [] and not served.custom:
        # An empty list resets the owners; an absent one does not.
        metadata["managedFields"] = [{}]
    for empty in [name for name, value in metadata.items() if value in (None, "", {}, [])]:
        del metadata[empty]
    return metadata


def check_namespace(store: ObjectStore, served: Served, namespace: str, name: str) -> None:
    """Refuse new objects in a namespace that does not exist or is being deleted."""
    if not served.resource.namespaced:
        return
    namespaces = store.registry.find("", "v1", "namespaces")
    assert namespaces is not None
    record = store.get(namespaces, "", namespace)
    if b'"deletionTimestamp"' in record.body and decode(record.body)["metadata"].get("deletionTimestamp"):
        raise statuses.forbidden(
            served.resource,
            name,
            f"unable to create new content in namespace {namespace} because it is being terminated",
            [Cause("NamespaceTerminating", "metadata.namespace", f"namespace {namespace} is being terminated")],
        )


def check_permanence(served: Served, name: str) -> None:
    """Refuse the deletion of a namespace that every cluster needs."""
    if served.resource.group_resource == "namespaces" and name in _PERMANENT:
        raise statuses.forbidden(served.resource, name, "this namespace may not be deleted")
