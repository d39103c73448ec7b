"""The patches an API server understands, by their media types.

Four pure functions over plain JSON values. They return the patched object and leave their arguments alone; what they
refuse, they refuse with the status and the words of a real server (`PatchError`).
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
    """Applies the body of a PATCH request to an object.

    Args:
        media_type: the `Content-Type` of the request, parameters allowed.
        current: the object as it is, in JSON form.
        body: of the request, not yet decoded.
        schema: of the object's kind, as `openapi.patch_schema` finds it; None for custom resources, which have no
            strategic merge patch.
        strict: whether the patch itself is looked at closely, as it is unless the client ignores what is wrong in it.

    Returns:
        The patched document, which patches that do not know types can make into anything; and what a strict decoder
        says of the patch.

    Raises:
        PatchError: the patch is not of a known type (415), not JSON (400), or cannot be applied.
    """
    media_type = media_type.partition(";")[0]
    if media_type == STRATEGIC_MERGE_PATCH and schema is not None:
        patch, told = _decode(body, "")
        if not isinstance(patch, dict | None):
            raise _not_decoded(patch, _MAP)
        return strategic_merge_patch(current, patch or {}, schema), told if strict else []
    if media_type == MERGE_PATCH:
        return _merged(current, body, strict=strict)
    if media_type == JSON_PATCH:
        operations, told = _operations(body, strict=strict)
        return json_patch(current, operations), told
    accepted = [JSON_PATCH, MERGE_PATCH, *([STRATEGIC_MERGE_PATCH] if schema is not None else []), APPLY_PATCH]
    raise PatchError(
        "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted),
        status=415,
        reason="UnsupportedMediaType",
    )


def _merged(current: Mapping[str, Any], body: bytes, *, strict: bool) -> tuple[Any, list[str]]:
    try:
        patch, told = _decode(body, _PREFIX)
    except PatchError:
        if strict:
            raise
        patch, told = None, []
    if strict and not isinstance(patch, dict | None):
        raise _not_decoded(patch, _MAP, _PREFIX)
    if isinstance(patch, list):
        return patch, []
    if not isinstance(patch, dict):
        raise PatchError("Invalid JSON Patch", status=400, reason="BadRequest")
    return merge_patch(current, patch), told if strict else []


def _operations(body: bytes, *, strict: bool) -> tuple[list[Any], list[str]]:
    prefix = _PREFIX if strict else ""
    operations, told = _decode(body, prefix, " into Go struct field jsonPatchOp.value of type float64", _FIELDS)
    if operations is None:
        return [], []
    if not isinstance(operations, list):
        raise _not_decoded(operations, "[]handlers.jsonPatchOp" if strict else "jsonpatch.Patch", prefix)
    for operation in operations:
        if not isinstance(operation, dict | None):
            raise _not_decoded(operation, "handlers.jsonPatchOp" if strict else "jsonpatch.Operation", prefix)
    if not strict:
        return operations, []
    for operation in operations:
        _check_texts(operation or {})
    return operations, [f"json patch {each}" for each in told]


def _check_texts(operation: Mapping[str, Any]) -> None:
    for field in ("op", "path", "from"):
        value = operation.get(field)
        if not isinstance(value, str | None):
            wanted = f"struct field jsonPatchOp.{field} of type string"
            message = f"{_PREFIX}json: cannot unmarshal {json_type(value)} into Go {wanted}"
            raise PatchError(message, status=400, reason="BadRequest")


def _decode(
    body: bytes, prefix: str, of_number: str = "", fields: frozenset[str] | None = None
) -> tuple[Any, list[str]]:
    try:
        return decode_json(body, fields)
    except JSONError as error:
        why = f"json: cannot unmarshal number {error.number}{of_number}" if error.number and of_number else str(error)
        raise PatchError(f"{prefix}{why}", status=400, reason="BadRequest") from error


def _not_decoded(value: Any, wanted: str, prefix: str = "") -> PatchError:
    message = f"{prefix}json: cannot unmarshal {json_type(value)} into Go value of type {wanted}"
    return PatchError(message, status=400, reason="BadRequest")
