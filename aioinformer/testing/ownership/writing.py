"""Ownership of fields where objects are written: types from the schemas, failures as the API words them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.api import statuses
from aioinformer.testing.api.protobuf.go_json import go_json
from aioinformer.testing.api.statuses import StatusError
from aioinformer.testing.ownership.last_applied import KUBECTL, bring_up_to_date, still_as_applied
from aioinformer.testing.ownership.managers import (
    ConflictError,
    after_update,
    apply,
    read_owners,
    write_owners,
)
from aioinformer.testing.ownership.scale import replicas_path
from aioinformer.testing.ownership.scaling import note_scaling
from aioinformer.testing.ownership.versions import View
from aioinformer.testing.schemas.declared import check_declared
from aioinformer.testing.schemas.field_checks import kind_type
from aioinformer.testing.schemas.field_paths import NO_FIELDS, path_text
from aioinformer.testing.schemas.typed_fields import FieldType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.ownership.managers import Manager, Owners
    from aioinformer.testing.schemas.field_paths import FieldSet

_NOTHING_KNOWN = FieldType({}, {})
# What requests for certificates ask for is the server's from then on; approvers decide, and signers sign.
_REQUESTS_IGNORE: dict[str, FieldSet] = {
    "": frozenset({("f:spec",), ("f:status",)}),
    "approval": frozenset({("f:spec",), ("f:status", "f:certificate")}),
    "status": frozenset({("f:spec",), ("f:status", "f:conditions")}),
}
_SIGNING_REQUESTS = "certificatesigningrequests.certificates.k8s.io"
_RESET: list[dict[str, Any]] = [{}]


def track(served: Served, old: Mapping[str, Any] | None, obj: dict[str, Any], by: Manager, now: str) -> None:
    """Notes in an object that is about to be stored who owns what.

    Args:
        old: what it replaces, if anything.
        obj: as it will be; its `managedFields` are what the client sent.
        by: who writes.
        now: as the API writes times.
    """
    now = _noted(by, now)
    asked = obj["metadata"].get("managedFields")
    if asked == _RESET:
        owners = None
    else:
        sent = None if by.subresource else read_owners(obj["metadata"])
        owners = sent or (read_owners(old["metadata"]) if old is not None else None)
    type_ = kind_type(served) or _NOTHING_KNOWN
    if old is None:
        owners = owners or {}
        # A built-in object that is not there yet is the zero value of a Go type, which has some fields already.
        old = {} if served.custom else go_json({"kind": obj["kind"], "apiVersion": obj["apiVersion"]})
    if by.subresource == "scale" and owners and note_scaling(obj["metadata"], owners, replicas_path(served), old, obj):
        return
    ignored = _ignored(served, by) | _scaled_to_nothing(served, obj, by)
    write_owners(obj["metadata"], after_update(old, obj, type_, owners, by, now, ignored, _views(served)))


def note_owners(obj: dict[str, Any], owners: Owners) -> None:
    """Notes in an object who owns what, where that is known."""
    write_owners(obj["metadata"], owners)


def applied(
    served: Served,
    live: Mapping[str, Any] | None,
    config: dict[str, Any],
    by: Manager,
    now: str,
    *,
    force: bool,
) -> tuple[dict[str, Any], Owners]:
    """What an apply makes of an object; nothing is stored.

    Args:
        live: the object as it is, if there is one.
        config: what the applier says.
        by: the applier.
        now: as the API writes times.
        force: take fields from others.

    Raises:
        StatusError: 409 for conflicts, 500 for a configuration that does not fit its type.
    """
    now = _noted(by, now)
    type_ = kind_type(served) or _NOTHING_KNOWN
    if wrong := check_declared(config, type_):
        raise _untyped(served, config.get("metadata"), wrong)
    former = read_owners(live["metadata"]) if live is not None else None
    ignored, views = _ignored(served, by), _views(served)
    try:
        merged, owners = apply(live or {}, config, type_, former, by, now, force=force, ignored=ignored, views=views)
    except ConflictError as error:
        taken_over = still_as_applied(live or {}, type_) if by.name == KUBECTL else NO_FIELDS
        if conflicts := [each for each in error.conflicts if each.path not in taken_over]:
            raise _conflict(ConflictError(conflicts)) from None
        merged, owners = apply(live or {}, config, type_, former, by, now, force=True, ignored=ignored, views=views)
    if by.name == KUBECTL:
        bring_up_to_date(merged, config)
    return merged, owners


def _noted(by: Manager, now: str) -> str:
    """The time of a write as it is noted: nobody notes when an object was scaled."""
    return "" if by.subresource == "scale" else now


def _ignored(served: Served, by: Manager) -> FieldSet:
    """What this kind of write cannot change, whatever it says."""
    if served.resource.group_resource == _SIGNING_REQUESTS:
        return _REQUESTS_IGNORE[by.subresource]
    if by.subresource == "status":
        return frozenset({("f:spec",)})
    return frozenset({("f:status",)}) if "status" in served.subresources else frozenset()


def _scaled_to_nothing(served: Served, obj: Mapping[str, Any], by: Manager) -> FieldSet:
    """No replicas are none in a `Scale`, and nobody owns what it does not say."""
    if by.subresource != "scale":
        return NO_FIELDS
    names = replicas_path(served)
    value: Any = obj
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return NO_FIELDS if value else frozenset({tuple(f"f:{name}" for name in names)})


def _views(served: Served) -> dict[str, View]:
    def view(other: Served) -> View:
        return View(
            lambda obj: other.shown(served.kept(obj)),
            lambda obj: served.shown(other.kept(obj)),
            kind_type(other) or _NOTHING_KNOWN,
        )

    return {version: view(other) for version, other in served.others.items()}


def _conflict(error: ConflictError) -> StatusError:
    causes = [
        {"reason": "FieldManagerConflict", "message": str(each), "field": path_text(each.path)}
        for each in error.conflicts
    ]
    return StatusError(409, "Conflict", str(error), details={"causes": causes})


def _untyped(served: Served, metadata: Any, wrong: list[str]) -> StatusError:
    resource = served.resource
    said = metadata if isinstance(metadata, dict) else {}
    namespace, name = (each if isinstance(each := said.get(field), str) else "" for field in ("namespace", "name"))
    kind = f"{resource.group}/{resource.version}, Kind={resource.kind}"
    told = wrong[0] if len(wrong) == 1 else "errors:\n" + "\n".join(f"  {line}" for line in wrong)
    return statuses.internal_error(f"failed to create typed patch object ({namespace}/{name}; {kind}): {told}")
