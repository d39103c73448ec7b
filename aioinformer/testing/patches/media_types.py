"""The patch types of an API server, by media type.

All functions are pure: they return the patched object and do not change their arguments. They raise `PatchError` with
the status and the message of a real server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.patches.decoding import JSONError, decode_json
from aioinformer.testing.patches.json_patches import PatchError, json_patch, json_type, merge_patch
from aioinformer.testing.patches.strategic import PatchSchema, strategic_merge_patch

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "APPLY_PATCH",
    "JSON_PATCH",
    "MERGE_PATCH",
    "STRATEGIC_MERGE_PATCH",
    "PatchError",
    "PatchSchema",
    "apply_patch",
    "json_patch",
    "merge_patch",
    "strategic_merge_patch",
]

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
_PREFIX = "error decoding patch: "
_MAP = "map[string]interface {}"
_FIELDS = frozenset({"op", "path", "from", "value"})


def apply_patch(
    media_type: str,
    current: Mapping[str, Any],
    body: bytes,
    schema: PatchSchema | None = None,
    *,
    strict: bool = True,
) -> tuple[Any, list[str]]:
    """Apply the body of a PATCH request to an object.

    Args:
        media_type: the `Content-Type` of the request, with or without parameters.
        current: the current object, in JSON form.
        body: of the request.
        schema: of the object's kind, as `patch_schema` returns it; None for custom resources, which have no
            strategic merge patch.
        strict: whether the patch itself is validated; False if the client ignores field errors.

    Returns:
        The patched document, which may be of any type unless the schema is known; and the messages of a strict decoder.

    Raises:
        PatchError: the patch type is unknown (415), or the patch is not JSON (400) or cannot be applied.
    """
    media_type = media_type.partition(";")[0]
    if media_type == STRATEGIC_MERGE_PATCH and schema is not None:
        patch, messages = _decode(body, "")
        if not isinstance(patch, dict | None):
            raise _type_error(patch, _MAP)
        return strategic_merge_patch(current, patch or {}, schema), messages if strict else []
    if media_type == MERGE_PATCH:
        return _apply_merge_patch(current, body, strict=strict)
    if media_type == JSON_PATCH:
        operations, messages = _operations(body, strict=strict)
        return json_patch(current, operations), messages
    accepted = [JSON_PATCH, MERGE_PATCH, *([STRATEGIC_MERGE_PATCH] if schema is not None else []), APPLY_PATCH]
    raise PatchError(
        "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted),
        status=415,
        reason="UnsupportedMediaType",
    )


def _apply_merge_patch(current: Mapping[str, Any], body: bytes, *, strict: bool) -> tuple[Any, list[str]]:
    try:
        patch, messages = _decode(body, _PREFIX)
    except PatchError:
        if strict:
            raise
        patch, messages = None, []
    if strict and not isinstance(patch, dict | None):
        raise _type_error(patch, _MAP, _PREFIX)
    if isinstance(patch, list):
        return patch, []
    if not isinstance(patch, dict):
        raise PatchError("Invalid JSON Patch", status=400, reason="BadRequest")
    return merge_patch(current, patch), messages if strict else []


def _operations(body: bytes, *, strict: bool) -> tuple[list[Any], list[str]]:
    prefix = _PREFIX if strict else ""
    operations, messages = _decode(body, prefix, " into Go struct field jsonPatchOp.value of type float64", _FIELDS)
    if operations is None:
        return [], []
    if not isinstance(operations, list):
        raise _type_error(operations, "[]handlers.jsonPatchOp" if strict else "jsonpatch.Patch", prefix)
    for operation in operations:
        if not isinstance(operation, dict | None):
            raise _type_error(operation, "handlers.jsonPatchOp" if strict else "jsonpatch.Operation", prefix)
    if not strict:
        return operations, []
    for operation in operations:
        _check_strings(operation or {})
    return operations, [f"json patch {each}" for each in messages]


def _check_strings(operation: Mapping[str, Any]) -> None:
    for field in ("op", "path", "from"):
        value = operation.get(field)
        if not isinstance(value, str | None):
            wanted = f"struct field jsonPatchOp.{field} of type string"
            message = f"{_PREFIX}json: cannot unmarshal {json_type(value)} into Go {wanted}"
            raise PatchError(message, status=400, reason="BadRequest")


def _decode(
    body: bytes, prefix: str, number_suffix: str = "", fields: frozenset[str] | None = None
) -> tuple[Any, list[str]]:
    try:
        return decode_json(body, fields)
    except JSONError as error:
        why = (
            f"json: cannot unmarshal number {error.number}{number_suffix}"
            if error.number and number_suffix
            else str(error)
        )
        raise PatchError(f"{prefix}{why}", status=400, reason="BadRequest") from error


def _type_error(value: Any, wanted: str, prefix: str = "") -> PatchError:
    message = f"{prefix}json: cannot unmarshal {json_type(value)} into Go value of type {wanted}"
    return PatchError(message, status=400, reason="BadRequest")
