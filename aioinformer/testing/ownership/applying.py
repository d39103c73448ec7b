"""Server-side apply: merge a configuration into an object, with the errors of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.api import statuses
from aioinformer.testing.api.statuses import StatusError
from aioinformer.testing.ownership.last_applied import KUBECTL, bring_up_to_date, still_as_applied
from aioinformer.testing.ownership.managers import ConflictError, apply, read_owners
from aioinformer.testing.ownership.writing import NO_TYPE, ignored_fields, noted_time, views_of
from aioinformer.testing.schemas.declared import check_declared
from aioinformer.testing.schemas.field_checks import kind_type
from aioinformer.testing.schemas.field_paths import NO_FIELDS, path_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.ownership.managers import Manager, Owners


def applied(
    served: Served,
    live: Mapping[str, Any] | None,
    config: dict[str, Any],
    by: Manager,
    now: str,
    *,
    force: bool,
) -> tuple[dict[str, Any], Owners]:
    """Return an object after an apply, and its owners; nothing is stored.

    Args:
        served: the resource.
        live: the current object, if there is one.
        config: the applied configuration.
        by: the field manager.
        now: as the API writes times.
        force: take fields from other managers.

    Raises:
        StatusError: 409 for conflicts, 500 for a configuration that does not fit its type.
    """
    now = noted_time(by, now)
    type_ = kind_type(served) or NO_TYPE
    if wrong := check_declared(config, type_):
        raise _untyped(served, config.get("metadata"), wrong)
    former = read_owners(live["metadata"]) if live is not None else None
    ignored, views = ignored_fields(served, by), views_of(served)
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


def _conflict(error: ConflictError) -> StatusError:
    causes = [
        {"reason": "FieldManagerConflict", "message": str(each), "field": path_text(each.path)}
        for each in error.conflicts
    ]
    return StatusError(409, "Conflict", str(error), details={"causes": causes})


def _untyped(served: Served, metadata: Any, wrong: list[str]) -> StatusError:
    resource = served.resource
    known = metadata if isinstance(metadata, dict) else {}
    namespace, name = (each if isinstance(each := known.get(field), str) else "" for field in ("namespace", "name"))
    kind = f"{resource.group}/{resource.version}, Kind={resource.kind}"
    text = wrong[0] if len(wrong) == 1 else "errors:\n" + "\n".join(f"  {line}" for line in wrong)
    return statuses.internal_error(f"failed to create typed patch object ({namespace}/{name}; {kind}): {text}")
