"""Numbers and durations ("300ms", "1h30m", "-1.5s") that clients send, and how errors show a value."""

from __future__ import annotations

import json
import re
from typing import Any

_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_PART = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h)"
_DURATION = re.compile(rf"[-+]?(?:0|(?:{_PART})+)")
_DURATION_PART = re.compile(r"([0-9]*\.?[0-9]*)(ns|us|µs|μs|ms|s|m|h)")
_LONGEST_DURATION = 2**63


def quote(value: Any) -> str:
    """Return a value as errors show it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def json_type(value: Any) -> str:
    """Return the JSON type of a decoded value, as errors name it."""
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
    return "array" if isinstance(value, list) else "object"


def is_number(text: str, *, bits: int, signed: bool = False) -> bool:
    """Return whether a text is a decimal number of this size."""
    if not re.fullmatch("[+-]?[0-9]+" if signed else "[0-9]+", text):
        return False
    # Python refuses numbers of thousands of digits; they are out of range anyway.
    digits = text.lstrip("+-0")
    return len(digits) < bits and -(2**bits) * signed <= int(digits or 0) * (-1 if text[0] == "-" else 1) < 2**bits


def seconds(text: str) -> float:
    """Return the seconds of a duration.

    Raises:
        ValueError: it is malformed, or longer than 292 years.
    """
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{quote(text)} is not a duration such as 300ms or 1h30m")
    total = 0
    for number, unit in _DURATION_PART.findall(text):
        whole, _, fraction = number.partition(".")
        total += int(whole or 0) * _UNITS[unit] + int(fraction or 0) * _UNITS[unit] // 10 ** len(fraction)
        if total >= _LONGEST_DURATION:
            raise ValueError(f"the duration {quote(text)} is too long")
    return (-total if text[0] == "-" else total) / 10**9
