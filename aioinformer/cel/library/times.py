"""Timestamps and durations."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from aioinformer.cel.values import EvaluationError, conversion_error

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_DURATION = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:h|ms|us|µs|μs|ns|m|s)")


def to_duration(text: str) -> timedelta:
    """Parse a duration, such as "1h30m".

    Raises:
        EvaluationError: the text is not a duration.
    """
    parts = _DURATION.findall(text)
    if text != "0" and (not parts or "".join(parts) != text or any(part[0] in "+-" for part in parts[1:])):
        raise conversion_error(text, "google.protobuf.Duration")
    seconds = sum(_seconds(part.lstrip("+-")) for part in parts)
    return timedelta(seconds=-seconds if text.startswith("-") else seconds)


def _seconds(part: str) -> float:
    number = part.rstrip("hmsunµμ")
    return float(number) * _UNITS[part[len(number) :]]


def to_timestamp(text: str) -> datetime:
    """Parse an RFC 3339 timestamp.

    Raises:
        EvaluationError: the text is not a timestamp.
    """
    try:
        if re.match(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d", text):
            time = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text.upper()))
            if time.tzinfo is not None:
                return time.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise conversion_error(text, "google.protobuf.Timestamp")


def format_duration(value: timedelta) -> str:
    """Return a duration in seconds, such as "1.5s"."""
    seconds = f"{value.total_seconds():.6f}".rstrip("0").rstrip(".")
    return f"{seconds}s"


def format_timestamp(value: datetime) -> str:
    """Return a timestamp in RFC 3339 format."""
    fraction = f".{value.microsecond:06d}".rstrip("0") if value.microsecond else ""
    return f"{value:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def zone_of(name: str) -> tzinfo:
    """Return the time zone with a name, or with an offset such as "+02:00".

    Raises:
        EvaluationError: the zone is unknown.
    """
    if match := re.fullmatch(r"([-+]?)(\d\d):(\d\d)", name):
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return timezone(-offset if match[1] == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise EvaluationError(f"unknown time zone {name}") from None
