"""JSON as the API's decoder reads it.

It is Go's: what is no UTF-8 and what is half a surrogate pair becomes U+FFFD, of a key that is said twice the last
value counts, and there are no numbers beyond those of a 64 bit float.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

from aioinformer.testing.api.golike import json_error
from aioinformer.testing.patches.repeated_keys import has_repeated, repeated_in_json, repeating_json

_NESTED: Final = (dict, list)


class JSONError(ValueError):
    """What is no JSON; the text is Go's.

    Attributes:
        number: the one that is too large, if that is all.
    """

    def __init__(self, message: str, number: str = "") -> None:
        super().__init__(message)
        self.number = number


def decode_json(data: bytes, fields: frozenset[str] | None = None) -> tuple[Any, list[str]]:
    """The value of a document, and the server's words for each key that is repeated in it.

    Args:
        fields: if the document is a list of structs, the fields that they have: others are told, and objects keep
            what is repeated in them.

    Raises:
        JSONError: it has none.
    """
    text = data.decode("utf-8", "replace")
    repeated: list[str] = []
    try:
        value = json.loads(text, parse_float=_float, parse_constant=_refuse)
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
    return _without_halves(value) if "\\u" in text else value, repeated


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise JSONError(f"json: cannot unmarshal number {text} into Go value of type float64", text)
    return number


def _refuse(constant: str) -> Any:
    if constant.startswith("-"):
        raise JSONError("invalid character 'I' in numeric literal")
    raise JSONError(f"invalid character '{constant[0]}' looking for beginning of value")


def _without_halves(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_without_halves(key): _without_halves(each) for key, each in value.items()}
    return [_without_halves(each) for each in value] if isinstance(value, _NESTED) else value
