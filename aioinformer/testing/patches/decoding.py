"""Decoding of JSON as the API does it.

Invalid UTF-8 and unpaired surrogates become U+FFFD, the last value of a repeated key counts, and numbers beyond a
64-bit float are rejected.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

_NESTED: Final = (dict, list)


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
    return [_replace_surrogates(each) for each in value] if isinstance(value, _NESTED) else value
