"""The annotation of `kubectl apply`, for users who change to `kubectl apply --server-side`.

A client-side apply has another field manager than a server-side apply of kubectl, so the first server-side apply with a
change would conflict with kubectl's own earlier one. For the manager "kubectl" alone two rules prevent that:

* Fields that the annotation names, and that still have its values, are taken without a conflict.
* An existing annotation is updated, so that the next client-side apply compares with the applied configuration.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aioinformer.testing.schemas.field_paths import NO_FIELDS
from aioinformer.testing.schemas.typed_fields import compare, fields_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.testing.schemas.field_paths import FieldSet
    from aioinformer.testing.schemas.typed_fields import FieldType

KUBECTL = "kubectl"
_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"


def still_as_applied(live: Mapping[str, Any], type_: FieldType) -> FieldSet:
    """Return the fields that the annotation names and that have not changed since."""
    try:
        applied = json.loads(_annotations(live)[_ANNOTATION])
    except (KeyError, ValueError):
        return NO_FIELDS
    if not isinstance(applied, dict):
        return NO_FIELDS
    comparison = compare(applied, live, type_)
    return fields_of(applied, type_) - comparison.modified - comparison.added - comparison.removed


def bring_up_to_date(obj: dict[str, Any], config: Mapping[str, Any]) -> None:
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
