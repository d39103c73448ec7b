"""Server-side apply: merge a configuration into an object.

A client-side apply of kubectl has another field manager than a server-side one, so the first server-side apply with a
change would conflict with kubectl's own earlier one. For the manager "kubectl" alone two rules prevent that:

* Fields that the annotation of the client-side apply names, and that still have its values, have no conflict.
* An existing annotation is updated, so that the next client-side apply compares with the applied configuration.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import quote
from aioinformer.testing.api.statuses import StatusError
from aioinformer.testing.ownership.managers import (
    NO_TYPE,
    ConflictError,
    apply,
    forms_of,
    ignored_fields,
    noted_time,
    read_owners,
)
from aioinformer.testing.schemas.field_checks import kind_type
from aioinformer.testing.schemas.typed_fields import NO_FIELDS, FieldTypeError, compare, fields_of, path_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.ownership.managers import Manager, Owners
    from aioinformer.testing.schemas.typed_fields import FieldSet, FieldType

_KUBECTL = "kubectl"
_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"


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

    Raises:
        StatusError: 409 for conflicts, 500 for a configuration that does not fit its type.
    """
    now = noted_time(by, now)
    type_ = kind_type(served) or NO_TYPE
    if wrong := _check_declared(config, type_):
        raise _untyped(served, config.get("metadata"), wrong)
    former = read_owners(live["metadata"]) if live is not None else None
    ignored = ignored_fields(served, by)
    forms = forms_of(served)
    try:
        merged, owners = apply(live or {}, config, type_, former, by, now, force=force, ignored=ignored, forms=forms)
    except ConflictError as error:
        taken_over = _still_as_applied(live or {}, type_) if by.name == _KUBECTL else NO_FIELDS
        if conflicts := [each for each in error.conflicts if each.path not in taken_over]:
            raise _conflict(ConflictError(conflicts)) from None
        merged, owners = apply(live or {}, config, type_, former, by, now, force=True, ignored=ignored, forms=forms)
    if by.name == _KUBECTL:
        _bring_up_to_date(merged, config)
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
    if len(wrong) == 1:
        text = wrong[0]
    else:
        text = "errors:\n" + "\n".join(f"  {line}" for line in wrong)
    return statuses.internal_error(f"failed to create typed patch object ({namespace}/{name}; {kind}): {text}")


def _still_as_applied(live: Mapping[str, Any], type_: FieldType) -> FieldSet:
    """Return the fields that the annotation names and that have not changed since."""
    try:
        applied = json.loads(_annotations(live)[_ANNOTATION])
    except (KeyError, ValueError):
        return NO_FIELDS
    if not isinstance(applied, dict):
        return NO_FIELDS
    comparison = compare(applied, live, type_)
    return fields_of(applied, type_) - comparison.modified - comparison.added - comparison.removed


def _bring_up_to_date(obj: dict[str, Any], config: Mapping[str, Any]) -> None:
    """Set the annotation of an object, if it has one, to the applied configuration."""
    if _ANNOTATION not in _annotations(obj):
        return
    metadata = {name: value for name, value in config["metadata"].items() if name != "managedFields"}
    if annotations := metadata.get("annotations"):
        metadata["annotations"] = {name: value for name, value in annotations.items() if name != _ANNOTATION}
    text = json.dumps({**config, "metadata": metadata}, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    for sign, escaped in (("&", r"\u0026"), ("<", r"\u003c"), (">", r"\u003e")):
        text = text.replace(sign, escaped)
    obj["metadata"]["annotations"][_ANNOTATION] = f"{text}\n"


def _annotations(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    return obj["metadata"].get("annotations") or {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_INT_OR_STRING = "x-kubernetes-int-or-string"
#: By schema type: the message's name for it, and the check.
_WANTED: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "object": ("map", lambda value: isinstance(value, dict)),
    "array": ("list", lambda value: isinstance(value, list)),
    "boolean": ("boolean", lambda value: isinstance(value, bool)),
    "integer": ("numeric (int or float)", _is_number),
    "number": ("numeric (int or float)", _is_number),
    "string": ("string", lambda value: isinstance(value, str)),
}


def _check_declared(value: Any, type_: FieldType, path: str = "") -> list[str]:
    """Return a line for each part of the value that does not fit its type.

    A line reads like `.spec.size: field not declared in schema`.
    """
    # A value that may be a number or a string has several types.
    if "oneOf" in type_.node or _INT_OR_STRING in type_.node:
        wanted = None
    else:
        wanted = _WANTED.get(type_.node.get("type", ""))
    if wanted is not None and value is not None and not wanted[1](value):
        return [f"{path}: expected {wanted[0]}, got {quote(value)}"]
    if isinstance(value, dict):
        return [
            line
            for name, below in value.items()
            for line in (
                [f"{path}.{name}: field not declared in schema"]
                if type_.closed and not type_.declares(name)
                else _check_declared(below, type_.field(name), f"{path}.{name}")
            )
        ]
    if not isinstance(value, list):
        return []
    lines = []
    for index, element in enumerate(value):
        try:
            step = type_.step(element)
        except FieldTypeError as error:
            lines.append(f"{path}: element {index}: {error}")
            continue
        here = f"[{index}]" if step is None else path_text((step,))
        lines += _check_declared(element, type_.element, path + here)
    return lines
