"""The rules of writing: create, update and apply objects.

HTTP requests and the methods of `ApiServer` both end here. Every method is synchronous, so a write is atomic.

An update that changes nothing takes no version and wakes no watch. The update that removes the last finalizer of an
object that is being deleted deletes it.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode, encode_object
from aioinformer.testing.api.validation import metadata_causes, warn_of_finalizers
from aioinformer.testing.ownership.managers import Manager, keep_times, note_owners, track
from aioinformer.testing.schemas.definitions import (
    default_definition,
    establish,
    is_established,
    naming_causes,
    note_stored_versions,
)
from aioinformer.testing.schemas.field_checks import check_applied, check_object, custom_causes, fill_defaults
from aioinformer.testing.state.preconditions import (
    check_deletion,
    check_name,
    check_namespace,
    check_preconditions,
    checked_metadata,
    new_finalizer_causes,
)
from aioinformer.testing.state.strategies import prepare_create, prepare_update

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.api.statuses import Cause
    from aioinformer.testing.ownership.managers import Owners
    from aioinformer.testing.state.admission import Admission
    from aioinformer.testing.state.cluster import Cluster

_SERVER_OWNED = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
_CRD = "customresourcedefinitions.apiextensions.k8s.io"


class Writer:
    """Create, update and apply objects."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._store = cluster.store

    @property
    def _admission(self) -> Admission:
        return self._cluster.admission

    def check(self, served: Served, obj: dict[str, Any]) -> None:
        """Decode the values of an object as the API does, and drop the fields that its kind does not have.

        Args:
            obj: is changed.

        Raises:
            StatusError: 400, a value does not fit its field.
        """
        check_object(served, obj, "Ignore")

    def create(
        self,
        served: Served,
        namespace: str,
        obj: dict[str, Any],
        *,
        by: Manager | None = None,
        owners: Owners | None = None,
        dry_run: bool = False,
        whole: bool = True,
    ) -> bytes:
        """Store a new object.

        Args:
            obj: is changed and kept; pass a copy.
            by: the field manager; the default is this program.
            owners: of its fields, if they are known already.
            whole: whether required fields of its specification must be present.

        Returns:
            The stored body.
        """
        metadata = checked_metadata(served, namespace, obj)
        for name in _SERVER_OWNED:
            metadata.pop(name, None)
        self._fill_defaults(served, obj)
        metadata = obj["metadata"]
        if owners is None:
            track(served, None, obj, by or _own_manager(served), self._cluster.now())
        else:
            note_owners(obj, owners)
        if metadata.get("resourceVersion", "0") != "0" and not dry_run:
            raise statuses.internal_error("resourceVersion should not be set on objects to be created")
        check_namespace(self._store, served, namespace, str(metadata.get("name") or ""))
        name = str(metadata.get("name") or "")
        if not name and metadata.get("generateName"):
            name = self._free_name(served, namespace, str(metadata["generateName"]))
        if name:
            metadata["name"] = name
        metadata["uid"] = self._cluster.naming.uid()
        causes = metadata_causes(served.resource, metadata, custom=served.custom)
        if _has_specification(served):
            causes += self._admission.validate(served, obj, None, whole=whole)
            _refuse(served, name, causes)
        metadata["creationTimestamp"] = self._cluster.now()
        prepare_create(served, obj, self._preparing(served))
        if served.custom:
            # A client cannot set the status of a new object, but the defaults of its schema do.
            fill_defaults(served, obj)
        _refuse(served, name, [*causes, *self._schema_causes(served, obj, None)])
        if served.custom:
            warn_of_finalizers(metadata, None)
        if (there := self._store.find(served, namespace, name)) is not None:
            going = b'"deletionTimestamp"' in there.body and "deletionTimestamp" in decode(there.body)["metadata"]
            raise statuses.already_exists(served.resource, name, going=going)
        if dry_run:
            return encode_object(obj, custom=served.custom)
        record = self._store.commit(served, "ADDED", obj, None)
        self._store.add_garbage_candidate(served, record, metadata)
        if served.resource.group_resource == _CRD:
            self._establish(served, obj)
        return record.body

    def _free_name(self, served: Served, namespace: str, prefix: str) -> str:
        # Of thousands of names with one prefix, two are often equal; kube-apiserver, too, tries 8 times.
        for _ in range(8):
            name = self._cluster.naming.generated(prefix)
            if self._store.find(served, namespace, name) is None:
                break
        return name

    def update(
        self,
        served: Served,
        namespace: str,
        name: str,
        obj: dict[str, Any],
        *,
        subresource: str = "",
        by: Manager | None = None,
        owners: Owners | None = None,
        dry_run: bool = False,
        whole: bool = True,
    ) -> bytes:
        """Replace an object, or a subresource of it.

        Args:
            obj: is changed and kept; pass a copy.
            subresource: "" or "status".

        Returns:
            The stored body.
        """
        metadata = checked_metadata(served, namespace, obj)
        check_name(metadata, name)
        record = self._store.get(served, namespace, name)
        check_preconditions(served, record, metadata)
        old = decode(served.body(record.body))
        self._fill_defaults(served, obj)
        asked = obj["metadata"].get("managedFields")
        prepare_update(served, obj, old, subresource, self._preparing(served))
        metadata = obj["metadata"]
        causes = check_deletion(metadata, old["metadata"])
        if _has_specification(served):
            causes += self._admission.validate(served, obj, old, subresource=subresource, whole=whole)
        for field in _SERVER_OWNED:
            metadata.pop(field, None)
            if field in old["metadata"]:
                metadata[field] = old["metadata"][field]
        causes += metadata_causes(served.resource, metadata, custom=served.custom)
        causes += new_finalizer_causes(metadata, old["metadata"])
        if served.custom or not subresource:
            causes += self._schema_causes(served, obj, old)
        _refuse(served, name, causes)
        if served.custom:
            warn_of_finalizers(metadata, old["metadata"])
        metadata["resourceVersion"] = str(record.version)
        if owners is None:
            metadata["managedFields"] = asked
            track(served, old, obj, by or _own_manager(served, subresource), self._cluster.now())
        else:
            note_owners(obj, owners)
        keep_times(served, obj, old)
        body = encode_object(obj, custom=served.custom)
        gone = "deletionTimestamp" in metadata and not metadata.get("finalizers")
        if served.resource.group_resource == "namespaces":
            gone = False
        if dry_run or (not gone and _is_same(body, served.body(record.body))):
            return body
        if gone:
            # Watches see the object as it was stored, without this write.
            self._store.remove(served, record)
            return body
        changed = self._store.commit(served, "MODIFIED", obj, record, encoded=body)
        self._store.add_garbage_candidate(served, changed, metadata)
        if served.resource.group_resource == "namespaces" and "deletionTimestamp" in metadata:
            self._store.on_cleanup_needed()
        if served.resource.group_resource == _CRD and not subresource and is_established(obj):
            for defined in self._store.registry.define(obj):
                self._store.collection(defined).wake()  # watches whose conversion has changed end
        return changed.body

    def apply(
        self,
        served: Served,
        namespace: str,
        name: str,
        config: dict[str, Any],
        by: Manager,
        *,
        force: bool = False,
        subresource: str = "",
        dry_run: bool = False,
        whole: bool = True,
    ) -> tuple[bytes, bool]:
        """Apply a configuration to an object, and create the object if it does not exist.

        Returns:
            The stored body, and whether the object is new.
        """
        from aioinformer.testing.ownership.applying import applied

        record = self._store.find(served, namespace, name)
        if record is None and subresource:
            raise statuses.not_found(served.resource, name)
        live = None if record is None else decode(served.body(record.body))
        merged, owners = applied(served, live, config, by, self._cluster.now(), force=force)
        check_applied(served, merged)
        if record is None:
            return self.create(served, namespace, merged, owners=owners, dry_run=dry_run, whole=whole), True
        body = self.update(
            served, namespace, name, merged, subresource=subresource, owners=owners, dry_run=dry_run, whole=whole
        )
        return body, False

    def accept_names(self, definitions: Served) -> None:
        """Serve the definitions whose names have become available."""
        stored = [decode(record.body) for record in self._store.collection(definitions).records()]
        for obj in stored:
            if not is_established(obj) and is_established(establish(deepcopy(obj), stored, "")):
                self._establish(definitions, obj)

    def _establish(self, served: Served, obj: dict[str, Any]) -> None:
        """Serve a new definition at once; a real server takes some hundred milliseconds."""
        old = decode(encode_object(obj, custom=False))
        others = [decode(record.body) for record in self._store.collection(served).records()]
        obj = establish(decode(encode_object(obj, custom=False)), others, self._cluster.now())
        track(
            served,
            old,
            obj,
            Manager("kube-apiserver", "Update", served.resource.api_version, "status"),
            self._cluster.now(),
        )
        if is_established(obj):
            self._store.registry.define(obj)
        self._store.commit(served, "MODIFIED", obj, self._store.get(served, "", obj["metadata"]["name"]))

    def _schema_causes(self, served: Served, obj: dict[str, Any], old: Mapping[str, Any] | None) -> list[Cause]:
        """Return what is wrong with a custom resource by its schema, or with a definition."""
        if served.resource.group_resource == _CRD:
            note_stored_versions(obj, old)
            return [*naming_causes(obj, old), *self._admission.validate(served, obj, old)]
        return custom_causes(served, obj, old, lambda causes: self._admission.validate(served, obj, old, causes=causes))

    def _preparing(self, served: Served) -> Admission | None:
        """Return what prepares an object. Custom resources need no preparation, so nothing is loaded for them."""
        return None if served.custom else self._admission

    def _fill_defaults(self, served: Served, obj: dict[str, Any]) -> None:
        fill_defaults(served, obj)
        if not served.custom:
            self._admission.default(served, obj)
        if served.conversion is not None and not served.custom:
            # Drop what this version cannot express before the object is checked.
            settled = served.from_stored(served.to_stored(obj))
            obj.clear()
            obj.update(settled)
        if served.resource.group_resource == _CRD:
            default_definition(obj)


def _refuse(served: Served, name: str, causes: list[Cause]) -> None:
    """Raise `StatusError` (422) with all causes, if there are any."""
    if causes:
        raise statuses.invalid_object(served.stored_as, name, causes)


def _has_specification(served: Served) -> bool:
    """Return whether a kind is built in, and not that of definitions."""
    return not served.custom and served.resource.group_resource != _CRD


def _is_same(body: bytes, stored: bytes) -> bool:
    """Return whether two bodies are equal up to the order of fields."""
    return body == stored or (len(body) == len(stored) and bool(decode(body) == decode(stored)))


def _own_manager(served: Served, subresource: str = "") -> Manager:
    return Manager("aioinformer", "Update", served.resource.api_version, subresource)
