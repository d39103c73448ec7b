"""The type of a scalar in YAML, as kubectl and the API server read it: by `sigs.k8s.io/yaml`, in two steps.

1. go-yaml gives the scalar a Go value: a bool, an integer, a float, null or a text (`plain_value`, `tagged_value`).
2. The value becomes JSON (`json_value`), and a key of a mapping becomes a text (`key_text`).

Readers and writers of YAML ask this module alone. Where the rules differ from YAML 1.1 as PyYAML reads it: `y` and `n`
are booleans, `=`, `22:30` and dates are texts, `1e3` is 1000, `0o644` is 420, and `08` is 8.

Errors contain no values: scalars may be secret.
"""

from __future__ import annotations

import math
import re
import struct
from base64 import b64decode
from decimal import Decimal
from typing import Any, Final

_STANDARD: Final = "tag:yaml.org,2002:"
MERGE_TAG: Final = f"{_STANDARD}merge"

_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
#: A scalar with another first character is a text.
_FIRST: Final = frozenset("yYnNtTfFoO~.+-0123456789")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_FRACTION: Final = re.compile(r"\.[0-9]+(_[0-9]+)*([eE][-+]?[0-9]+(_[0-9]+)*)?")
_INTEGER: Final = re.compile(r"([-+]?)(?:(0|[1-9][0-9]*)|0[oO]?([0-7]+)|0[xX]([0-9a-fA-F]+)|0[bB]([01]+))")
_BASES: Final = (10, 8, 16, 2)
_SIGNED_BITS: Final = re.compile(r"0b([-+][01]+)")  # go-yaml reads a sign behind the prefix, too
_TIMESTAMP: Final = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ][0-9:.]+([Zz]|[-+][0-9]{2}:[0-9]{2})?)?")
_LOWEST = -(2**63)
_HIGHEST = 2**63 - 1
_HIGHEST_UNSIGNED = 2**64 - 1

#: The Go types that a tag accepts.
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    f"{_STANDARD}bool": (bool,),
    f"{_STANDARD}int": (int,),
    f"{_STANDARD}float": (float,),
    f"{_STANDARD}null": (type(None),),
}


def plain_value(text: str) -> Any:
    """Return the Go value of a scalar without quotes and without a tag."""
    if text and text[0] not in _FIRST:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if text[0] == ".":
        return _float(text, text, _FRACTION)
    if text[0] not in "+-0123456789":
        return text
    digits = text.replace("_", "")
    if (found := _INTEGER.fullmatch(digits)) is not None:
        sign, *by_base = found.groups()
        number = next(int(part, base) for part, base in zip(by_base, _BASES, strict=True) if part is not None)
        number = -number if sign == "-" else number
        if _LOWEST <= number <= (_HIGHEST if sign else _HIGHEST_UNSIGNED):
            return number
    elif (bits := _SIGNED_BITS.fullmatch(digits)) is not None and _LOWEST <= int(bits[1], 2) <= _HIGHEST:
        return int(bits[1], 2)
    return _float(digits, text, _FLOAT)


def tagged_value(tag: str, text: str) -> Any:
    """Return the Go value of a scalar with a tag, such as "tag:yaml.org,2002:int".

    Raises:
        ValueError: the text is no value of this type.
    """
    name = tag.removeprefix(_STANDARD)
    if tag == f"{_STANDARD}binary":
        return _decoded(text)
    if tag == f"{_STANDARD}timestamp":
        if _TIMESTAMP.fullmatch(text) is None:
            raise ValueError(f"a scalar with the tag !!{name} is none")
        return text
    if tag not in _TYPES:
        return text  # !!str, and every tag of an application
    found = plain_value(text)
    if tag == f"{_STANDARD}float" and type(found) is int and found <= _HIGHEST:
        return float(found)
    if type(found) not in _TYPES[tag]:
        raise ValueError(f"a scalar with the tag !!{name} is none")
    return found


def json_value(found: Any) -> Any:
    """Return what JSON makes of a Go value: whole numbers of 64 bits are integers, and all others floats.

    Raises:
        ValueError: it is infinite, or no number.
    """
    if type(found) is int:
        return found if found <= _HIGHEST else float(found)
    if type(found) is not float:
        return found
    if not math.isfinite(found):
        raise ValueError("JSON has no infinite numbers, and no .nan; quote it if it is a text")
    if found.is_integer():
        whole = int(Decimal(repr(found)))  # its shortest decimal form, which JSON has
        if _LOWEST <= whole <= _HIGHEST:
            return whole
    return found


def key_text(found: Any) -> str:
    """Return the key that a Go value makes in JSON.

    Raises:
        ValueError: it cannot be a key.
    """
    match found:
        case str():
            return found
        case bool():
            return "true" if found else "false"
        case int() if found <= _HIGHEST:
            return str(found)
        case float():
            return _float_key(found)
    raise ValueError("null, collections and large numbers cannot be keys; quote the key")


def _float(digits: str, text: str, form: re.Pattern[str]) -> float | str:
    if form.fullmatch(digits) is None:
        return text
    number = float(digits)
    return number if math.isfinite(number) else text


def _decoded(text: str) -> str:
    try:
        data = b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except ValueError:
        raise ValueError("a scalar with the tag !!binary is not base64") from None
    return data.decode("utf-8", "replace")


def _float_key(number: float) -> str:
    """Return a float as Go's `strconv.FormatFloat(number, 'g', -1, 32)` does, and the words of YAML for the rest."""
    try:
        rounded = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        rounded = math.copysign(math.inf, number)
    if math.isnan(rounded):
        return ".nan"
    if math.isinf(rounded):
        return ".inf" if rounded > 0 else "-.inf"
    texts = (f"{rounded:.{places}e}" for places in range(9))
    shortest = next(text for text in texts if struct.unpack("f", struct.pack("f", float(text)))[0] == rounded)
    exponent = int(shortest.partition("e")[2])
    # Python and Go write exponents alike, with two digits or more.
    return shortest if exponent < -4 or exponent >= 6 else f"{Decimal(shortest):f}"
