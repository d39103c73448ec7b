"""The parts of table cells: fields, ages and conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

Cells = Callable[[Mapping[str, Any], datetime], list[Any]]
"""Returns the cells of an object's row at a given time."""

_DAY, _YEAR = 24, 24 * 365


def field(obj: Mapping[str, Any], path: str, default: Any = None) -> Any:
    """Return the value at a dotted path, or the default if a part of the path is missing or null."""
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return default if value is None else value


def name(obj: Mapping[str, Any]) -> str:
    """Return the object's name."""
    return str(field(obj, "metadata.name", ""))


def instant(text: str) -> datetime | None:
    """Parse an RFC 3339 timestamp; return None if it is invalid."""
    try:
        parsed = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def human_duration(elapsed: timedelta) -> str:
    """Return a duration with two or three significant figures: "90s", "5m30s", "3h12m", "47h", "6d4h", "3y20d"."""
    total = int(elapsed.total_seconds())
    minutes, hours = total // 60, total // 3600
    if total < -1:
        return "<invalid>"
    if total < 120:
        return f"{max(total, 0)}s"
    if minutes < 10:
        return _two_units(minutes, "m", total % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two_units(hours, "h", minutes % 60, "m")
    if hours < 2 * _DAY:
        return f"{hours}h"
    if hours < 8 * _DAY:
        return _two_units(hours // _DAY, "d", hours % _DAY, "h")
    if hours < 2 * _YEAR:
        return f"{hours // _DAY}d"
    if hours < 8 * _YEAR:
        return _two_units(hours // _YEAR, "y", hours // _DAY % 365, "d")
    return f"{hours // _YEAR}y"


def _two_units(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def since(obj: Mapping[str, Any], path: str, now: datetime) -> str:
    """Return the time since the timestamp at a path, or "<unknown>" without a timestamp."""
    moment = instant(field(obj, path, ""))
    return human_duration(now - moment) if moment else "<unknown>"


def age(obj: Mapping[str, Any], now: datetime) -> str:
    """Return the time since the object was created."""
    return since(obj, "metadata.creationTimestamp", now)


def condition(obj: Mapping[str, Any], kind: str) -> str:
    """Return the status of a condition, or "" if the object does not have it."""
    found = (item.get("status", "") for item in field(obj, "status.conditions", []) if item.get("type") == kind)
    return str(next(found, ""))
