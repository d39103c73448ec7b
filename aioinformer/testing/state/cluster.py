"""The rules of writing: what becomes of an object that is created, updated or deleted.

Both ways into the server, HTTP and the methods of `ApiServer`, end here. Every method is synchronous, so a write is
atomic; what the real server leaves to controllers (emptying a namespace, removing a CustomResourceDefinition's objects)
is left to `housekeeping`, which is told through `untidy`.

An update that changes nothing is not a change: it takes no version and wakes nobody. The update that removes the last
finalizer of an object that is to be deleted is its deletion.
"""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode, encode_object
from aioinformer.testing.api.validation import metadata_causes, metadata_update_causes
from aioinformer.testing.ownership.managers import Manager, read_owners
from aioinformer.testing.ownership.writing import applied, note_owners, track
from aioinformer.testing.schemas.definitions import check_definition, default_definition, is_established
from aioinformer.testing.schemas.field_checks import check_schema, fill_defaults
from aioinformer.testing.state.admission import NoAdmission
from aioinformer.testing.state.defining import Definitions
from aioinformer.testing.state.deletion import delete_record
from aioinformer.testing.state.preconditions import (
    check_delete_preconditions,
    check_deletion,
    check_finalizers,
    check_name,
    check_namespace,
    check_permanence,
    check_preconditions,
    checked_metadata,
)
from aioinformer.testing.state.strategies import Naming, prepare_create, prepare_update

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.api.statuses import Cause
    from aioinformer.testing.ownership.managers import Owners
    from aioinformer.testing.state.admission import Admission
    from aioinformer.testing.state.ledger import Ledger
    from aioinformer.testing.state.storage import Record

    Granting = Callable[[Served, str, Mapping[str, Any], Mapping[str, Any] | None], None]

_SERVER_OWNED = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
_CRD = "customresourcedefinitions.apiextensions.k8s.io"
_SERVICES = "services"


class Cluster:
    """The state of the server and the rules of changing it.

    Args:
        ledger: where changes are written down.
        clock: seconds since 1970, for timestamps.
        rng: for uids and generated names.

    Attributes:
        ledger: as given.
        clock: as given.
        definitions: the custom resources that are served.
        granting: is asked before anything is written, with what it replaces if it replaces something; raises what
            forbids to give such rights.
        load_admission: called once, when something first depends on a built-in kind.
    """

    def __init__(self, ledger: Ledger, clock: Callable[[], float], rng: random.Random) -> None:
        self.ledger = ledger
        self.clock = clock
        self.definitions = Definitions(ledger, self.now)
        self.granting: Granting = lambda served, namespace, obj, old: None
        self.load_admission: Callable[[], Admission] = NoAdmission
        self._naming = Naming(rng)

    @cached_property
    def admission(self) -> Admission:
        """What depends on built-in kinds; loaded when it is first needed."""
        return self.load_admission()

    def now(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.clock()))

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
        """Stores a new object.

        Args:
            obj: is changed and kept; give away a copy.
            by: who owns what the object says; by default this program.
            owners: of its fields, if that is known already.
            dry_run: do everything but store it.
            whole: whether required fields of its specification have to be there.

        Returns:
            The body of the object as it is stored now.

        Raises:
            StatusError: 400, 403, 404, 409, 422 or 500, as the API has it.
        """
        metadata = checked_metadata(served, namespace, obj)
        for name in _SERVER_OWNED:
            metadata.pop(name, None)
        self._fill_defaults(served, obj)
        metadata = obj["metadata"]
        self.granting(served, namespace, obj, None)
        if owners is None:
            track(served, None, obj, by or _ourselves(served), self.now())
        else:
            note_owners(obj, owners)
        if metadata.get("resourceVersion", "0") != "0" and not dry_run:
            raise statuses.internal_error("resourceVersion should not be set on objects to be created")
        check_namespace(self.ledger, served, namespace, str(metadata.get("name") or ""))
        name = str(metadata.get("name") or "")
        if not name and metadata.get("generateName"):
            name = self._naming.generated(str(metadata["generateName"]))
        if _has_specification(served):
            self.admission.assign(served, obj, None, name=name, dry_run=dry_run, whole=whole)
        if name:
            metadata["name"] = name
        metadata["uid"] = self._naming.uid()
        causes = self.admission.validate(served, obj, None, whole=whole) if _has_specification(served) else ()
        self._check_metadata(served, metadata, causes)
        metadata["creationTimestamp"] = self.now()
        prepare_create(served, obj, self._preparing(served))
        if served.resource.group_resource == _CRD:
            check_definition(obj, lambda: self.admission.validate(served, obj, None))
        check_schema(served, obj, None, lambda causes: self.admission.validate(served, obj, None, causes=causes))
        if (there := self.ledger.find(served, namespace, name)) is not None:
            going = b'"deletionTimestamp"' in there.body and "deletionTimestamp" in decode(there.body)["metadata"]
            raise statuses.already_exists(served.resource, name, going=going)
        if dry_run:
            return encode_object(obj, custom=served.custom)
        record = self.ledger.commit(served, "ADDED", obj, None)
        self.ledger.suspect(served, record, metadata)
        if served.resource.group_resource == _CRD:
            self.definitions.establish(served, obj)
        return record.body

    def load(self, served: Served, obj: dict[str, Any], *, version: int | None = None) -> Record:
        """Stores an object with its status and timestamps, as if it had always been there; uid and times are filled.

        An object of the same name is replaced.

        Args:
            obj: is changed and kept; give away a copy.
            version: that it has already; else it gets the next one.

        Raises:
            StatusError: the name is missing or malformed.
        """
        namespace = str((obj.get("metadata") or {}).get("namespace") or "")
        if served.resource.namespaced and not namespace:
            namespace = "default"
        metadata = checked_metadata(served, namespace, obj)
        self._check_metadata(served, metadata)
        metadata.setdefault("creationTimestamp", self.now())
        metadata.setdefault("uid", self._naming.uid())
        old = self.ledger.find(served, namespace, metadata["name"])
        return self.ledger.commit(served, "MODIFIED" if old else "ADDED", obj, old, version)

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
        """Replaces an object, or a part of it.

        Args:
            name: as the URL has it.
            obj: is changed and kept; give away a copy.
            subresource: "" or "status".
            by: who owns what is changed; by default this program.
            owners: of all fields, if that is known already.
            dry_run: do everything but store it.
            whole: whether required fields of its specification have to be there.

        Raises:
            StatusError: 400, 404, 409, 422 or 500, as the API has it.
        """
        metadata = checked_metadata(served, namespace, obj)
        check_name(metadata, name)
        record = self.ledger.get(served, namespace, name)
        check_preconditions(served, record, metadata)
        old = decode(served.body(record.body))
        self._fill_defaults(served, obj)
        self.granting(served, namespace, obj, old)
        asked = obj["metadata"].get("managedFields")
        if served.resource.group_resource == _SERVICES and not subresource:
            if owners is None:
                # What the service is given now is nobody's.
                track(served, old, obj, by or _ourselves(served), self.now())
                owners = read_owners(obj["metadata"])
            self.admission.assign(served, obj, old, name=name, dry_run=dry_run, whole=whole)
        prepare_update(served, obj, old, subresource, self._preparing(served))
        check_schema(served, obj, old, lambda causes: self.admission.validate(served, obj, old, causes=causes))
        metadata = obj["metadata"]
        causes = check_deletion(metadata, old["metadata"])
        if _has_specification(served):
            causes += self.admission.validate(served, obj, old, subresource=subresource, whole=whole)
        for field in _SERVER_OWNED:
            metadata.pop(field, None)
            if field in old["metadata"]:
                metadata[field] = old["metadata"][field]
        if wrong := [*metadata_update_causes(served.resource, metadata, custom=served.custom), *causes]:
            raise statuses.invalid_object(served.kept_as, name, wrong)
        check_finalizers(served, metadata, old["metadata"])
        if served.resource.group_resource == _CRD and not subresource:
            check_definition(obj, lambda: self.admission.validate(served, obj, old), old)
        metadata["resourceVersion"] = str(record.version)
        if owners is None:
            metadata["managedFields"] = asked
            track(served, old, obj, by or _ourselves(served, subresource), self.now())
        else:
            note_owners(obj, owners)
        body = encode_object(obj, custom=served.custom)
        gone = "deletionTimestamp" in metadata and not metadata.get("finalizers")
        if served.resource.group_resource == "namespaces":
            gone = False
        if dry_run or (not gone and _is_same(body, served.body(record.body))):
            return body
        if gone:
            # What watches are told is the object as it was stored, not as this write would have made it.
            self.ledger.remove(served, record)
            return body
        changed = self.ledger.commit(served, "MODIFIED", obj, record, encoded=body)
        self.ledger.suspect(served, changed, metadata)
        if served.resource.group_resource == _CRD and not subresource and is_established(obj):
            self.ledger.registry.define(obj)
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
        """Makes an object say what a configuration says, and creates it if there is none.

        Args:
            config: with the object's name.
            by: the applier.
            force: take fields from other managers.
            subresource: "" or "status".
            dry_run: do everything but store it.
            whole: whether required fields of its specification have to be there.

        Returns:
            The object, and whether it is new.

        Raises:
            StatusError: 400, 404, 409, 422 or 500, as the API has it.
        """
        record = self.ledger.find(served, namespace, name)
        if record is None and subresource:
            raise statuses.not_found(served.resource, name)
        live = None if record is None else decode(served.body(record.body))
        merged, owners = applied(served, live, config, by, self.now(), force=force)
        if record is None:
            return self.create(served, namespace, merged, owners=owners, dry_run=dry_run, whole=whole), True
        body = self.update(
            served, namespace, name, merged, subresource=subresource, owners=owners, dry_run=dry_run, whole=whole
        )
        return body, False

    def delete(
        self,
        served: Served,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        version: str = "",
        policy: str = "",
        dry_run: bool = False,
    ) -> tuple[bytes, bool]:
        """Deletes an object, or begins to.

        Args:
            uid: precondition, "" for none.
            version: precondition, "" for none.
            policy: "", "Background", "Foreground" or "Orphan".

        Returns:
            The last state of the object, and whether it is gone.

        Raises:
            StatusError: 403, 404 or 409.
        """
        check_permanence(served, name)
        record = self.ledger.get(served, namespace, name)
        check_delete_preconditions(served, record, uid, version)
        return delete_record(self.ledger, served, record, policy, self.now(), dry_run=dry_run)

    def _preparing(self, served: Served) -> Admission:
        """What prepares an object: custom resources need nothing that has to be loaded."""
        return NoAdmission() if served.custom else self.admission

    def _fill_defaults(self, served: Served, obj: dict[str, Any]) -> None:
        fill_defaults(served, obj)
        if not served.custom:
            self.admission.default(served, obj)
        if served.conversion is not None:
            # What this version cannot say, or says by other means, is settled before anybody looks at it.
            settled = served.shown(served.kept(obj))
            obj.clear()
            obj.update(settled)
        if served.resource.group_resource == _CRD:
            default_definition(obj)

    def _check_metadata(self, served: Served, metadata: Mapping[str, Any], others: Sequence[Cause] = ()) -> None:
        causes = [*metadata_causes(served.resource, metadata), *others]
        if causes:
            raise statuses.invalid_object(served.kept_as, str(metadata.get("name") or ""), causes)


def _has_specification(served: Served) -> bool:
    """Whether a built-in kind is checked by its specification; definitions are checked by themselves."""
    return not served.custom and served.resource.group_resource != _CRD


def _is_same(body: bytes, stored: bytes) -> bool:
    """Whether two bodies say the same, in whatever order."""
    return body == stored or (len(body) == len(stored) and bool(decode(body) == decode(stored)))


def _ourselves(served: Served, subresource: str = "") -> Manager:
    return Manager("aioinformer", "Update", served.resource.api_version, subresource)
