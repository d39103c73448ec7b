"""The patch types of an API server, by media type.

All functions are pure: they return the patched object and do not change their arguments. They raise `PatchError` with
the status of a real server.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final

from aioinformer.testing.api.encoding import json_type
from aioinformer.testing.patches.json_patches import PatchError, json_patch, merge_patch
from aioinformer.testing.patches.strategic import PatchSchema, strategic_merge_patch

if TYPE_CHECKING:
    from collections.abc import Mapping

_NESTED: Final = (dict, list)
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
_FIELDS = ("op", "path", "from", "value")


class JSONError(ValueError):
    """The document is not valid JSON."""


def decode_json(data: bytes) -> tuple[Any, list[str]]:
    """Decode a document, and return a message for each key that an object repeats.

    Raises:
        JSONError: the document is invalid.
    """
    text = data.decode("utf-8", "replace")
    repeated: dict[str, None] = {}

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                repeated[f'duplicate field "{key}"'] = None
            found[key] = value
        return found

    try:
        value = json.loads(text, object_pairs_hook=made, parse_float=_float, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise JSONError(f"invalid JSON: {error}") from None
    return _replace_surrogates(value) if "\\u" in text else value, list(repeated)


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise JSONError(f"the number {text} is too large")
    return number


def _reject_constant(constant: str) -> Any:
    raise JSONError(f"{constant} is not a value of JSON")


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_replace_surrogates(key): _replace_surrogates(each) for key, each in value.items()}
    if isinstance(value, _NESTED):
        return [_replace_surrogates(each) for each in value]
    return value


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
        schema: of the object's kind, as `patch_schema` returns it; None for custom resources, which have no
            strategic merge patch.
        strict: whether the patch itself is validated; False if the client ignores field errors.

    Returns:
        The patched document, which may be of any type unless the schema is known; and the messages of a strict decoder.

    Raises:
        PatchError: the patch type is unknown (415), or the patch is not JSON (400) or cannot be applied.
    """
    media_type = media_type.partition(";")[0]
    if media_type == JSON_PATCH:
        return _patched_by_operations(current, body, strict=strict)
    if media_type == MERGE_PATCH or (media_type == STRATEGIC_MERGE_PATCH and schema is not None):
        patch, messages = _decode(body)
        if not isinstance(patch, dict):
            raise _bad_request(f"the patch must be an object, not {json_type(patch)}")
        if media_type == MERGE_PATCH or schema is None:
            return merge_patch(current, patch), messages if strict else []
        return strategic_merge_patch(current, patch, schema), messages if strict else []
    accepted = [JSON_PATCH, MERGE_PATCH, *([STRATEGIC_MERGE_PATCH] if schema is not None else []), APPLY_PATCH]
    raise PatchError(
        "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted),
        status=415,
        reason="UnsupportedMediaType",
    )


def _patched_by_operations(current: Mapping[str, Any], body: bytes, *, strict: bool) -> tuple[Any, list[str]]:
    operations, messages = _decode(body)
    if not isinstance(operations, list) or not all(isinstance(each, dict) for each in operations):
        raise _bad_request("the patch must be a list of operations")
    for operation in operations:
        for field, value in operation.items():
            if field not in _FIELDS:
                messages.append(f'json patch unknown field "{field}"')
            elif field != "value" and not isinstance(value, str | None):
                raise _bad_request(f"the field {field} of an operation must be a string, not {json_type(value)}")
    return json_patch(current, operations), messages if strict else []


def _decode(body: bytes) -> tuple[Any, list[str]]:
    try:
        return decode_json(body)
    except JSONError as error:
        raise _bad_request(str(error)) from error


def _bad_request(why: str) -> PatchError:
    return PatchError(f"error decoding patch: {why}", status=400, reason="BadRequest")
