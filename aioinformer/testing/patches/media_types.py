"""The patches an API server understands, by their media types.

Four pure functions over plain JSON values. They return the patched object and leave their arguments alone; what they
refuse, they refuse with the status and the words of a real server (`PatchError`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.golike import json_error
from aioinformer.testing.patches.json_patches import PatchError, json_patch, json_type, merge_patch
from aioinformer.testing.patches.strategic import PatchSchema, strategic_merge_patch

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
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
_APPLY_PATCH = "application/apply-patch+yaml"


def apply_patch(
    media_type: str, current: Mapping[str, Any], body: bytes, schema: PatchSchema | None = None
) -> dict[str, Any]:
    """Applies the body of a PATCH request to an object.

    Args:
        media_type: the `Content-Type` of the request, parameters allowed.
        current: the object as it is, in JSON form.
        body: of the request, not yet decoded.
        schema: of the object's kind, as `openapi.patch_schema` finds it; None for custom resources, which have no
            strategic merge patch.

    Raises:
        PatchError: the patch is not of a known type (415), not JSON (400), or cannot be applied.
    """
    media_type = media_type.partition(";")[0].strip().lower()
    if media_type == STRATEGIC_MERGE_PATCH and schema is not None:
        return strategic_merge_patch(current, _decode_map(body, ""), schema)
    if media_type == MERGE_PATCH:
        return merge_patch(current, _decode_map(body, "error decoding patch: "))
    if media_type == JSON_PATCH:
        operations = _decode(body, "error decoding patch: ")
        if not isinstance(operations, list):
            raise _bad_request("error decoding patch: ", operations, "[]handlers.jsonPatchOp")
        patched = json_patch(current, operations)
        if not isinstance(patched, dict):
            raise _bad_request("", patched, "map[string]interface {}")
        return patched
    accepted = [JSON_PATCH, MERGE_PATCH, *([STRATEGIC_MERGE_PATCH] if schema is not None else []), _APPLY_PATCH]
    raise PatchError(
        "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted),
        status=415,
        reason="UnsupportedMediaType",
    )


def _decode(body: bytes, prefix: str) -> Any:
    try:
        return json.loads(body)
    except ValueError as error:
        raise PatchError(f"{prefix}{json_error(body)}", status=400, reason="BadRequest") from error


def _decode_map(body: bytes, prefix: str) -> dict[str, Any]:
    value = _decode(body, prefix)
    if value is None and prefix:
        raise PatchError("Invalid JSON Patch", status=400, reason="BadRequest")
    if not isinstance(value, dict | None):
        raise _bad_request(prefix, value, "map[string]interface {}")
    return value or {}


def _bad_request(prefix: str, value: Any, wanted: str) -> PatchError:
    message = f"{prefix}json: cannot unmarshal {json_type(value)} into Go value of type {wanted}"
    return PatchError(message, status=400, reason="BadRequest")
