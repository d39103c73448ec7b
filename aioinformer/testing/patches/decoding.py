"""Decoding of JSON as Go does it.

Invalid UTF-8 and unpaired surrogates become U+FFFD, the last value of a repeated key counts, and numbers beyond a
64-bit float are rejected.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

from aioinformer.testing.api.golike import json_error
from aioinformer.testing.patches.repeated_keys import has_repeated, repeated_in_json, repeating_json

_NESTED: Final = (dict, list)


class JSONError(ValueError):
    """The document is not valid JSON. The message is Go's.

    Attributes:
        number: the number that is too large, if that is the fault.
    """

    def __init__(self, message: str, number: str = "") -> None:
        super().__init__(message)
        self.number = number


def decode_json(data: bytes, fields: frozenset[str] | None = None) -> tuple[Any, list[str]]:
    """Decode a document, and return the server's message for each repeated key.

    Args:
        fields: the fields of the structs, if the document is a list of structs: other fields are reported, and objects
            keep their repeated keys.

    Raises:
        JSONError: the document is invalid.
    """
    text = data.decode("utf-8", "replace")
    repeated: list[str] = []
    try:
        value = json.loads(text, parse_float=_float, parse_constant=_reject_constant)
        if has_repeated(text.encode()):
            value, repeated = repeated_in_json(text.encode(), merged=False, fields=fields)
            value = value if fields is None else repeating_json(text.encode())
        elif fields is not None and isinstance(value, list):
            repeated = [
                f'unknown field "[{index}].{field}"'
                for index, each in enumerate(value)
                for field in (each if isinstance(each, dict) else ())
                if field not in fields
            ]
    except JSONError:
        raise
    except ValueError:
        raise JSONError(json_error(data)) from None
    return _replace_surrogates(value) if "\\u" in text else value, repeated


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise JSONError(f"json: cannot unmarshal number {text} into Go value of type float64", text)
    return number


def _reject_constant(constant: str) -> Any:
    if constant.startswith("-"):
        raise JSONError("invalid character 'I' in numeric literal")
    raise JSONError(f"invalid character '{constant[0]}' looking for beginning of value")


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_replace_surrogates(key): _replace_surrogates(each) for key, each in value.items()}
    return [_replace_surrogates(each) for each in value] if isinstance(value, _NESTED) else value
