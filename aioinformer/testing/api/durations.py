"""Lengths of time as Go writes them: "300ms", "1h30m", "-1.5s"."""

from __future__ import annotations

import re

from aioinformer.testing.api.golike import quoted

_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
_LONGEST = 2**63


class DurationError(ValueError):
    """It is no length of time; the text says why, in Go's words."""


def seconds(text: str) -> float:
    """The seconds of a length of time.

    Raises:
        DurationError: it is none, or longer than 292 years.
    """
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0.0
    nanoseconds = 0
    if not rest:
        raise DurationError(f"time: invalid duration {quoted(text)}")
    while rest:
        part = _PART.match(rest)
        assert part is not None
        whole, fraction, unit = part[1], part[2] or "", part[3]
        if not whole and not fraction:
            raise DurationError(f"time: invalid duration {quoted(text)}")
        if not unit:
            raise DurationError(f"time: missing unit in duration {quoted(text)}")
        if unit not in _UNITS:
            raise DurationError(f"time: unknown unit {quoted(unit)} in duration {quoted(text)}")
        nanoseconds += int(whole or 0) * _UNITS[unit] + int(fraction or 0) * _UNITS[unit] // 10 ** len(fraction)
        if nanoseconds >= _LONGEST:
            raise DurationError(f"time: invalid duration {quoted(text)}")
        rest = rest[part.end() :]
    return (-nanoseconds if text[0] == "-" else nanoseconds) / 10**9
