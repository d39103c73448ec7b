"""Known time zones."""

from __future__ import annotations

from functools import cache
from zoneinfo import ZoneInfo, available_timezones

_ALWAYS = frozenset({"Local", "UTC"})


def is_time_zone(name: str) -> bool:
    """Return whether a time zone exists. On machines without time zone data, every name is accepted."""
    if name in _ALWAYS:
        return True
    try:
        ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        return not _known()
    return True


@cache
def _known() -> bool:
    return bool(available_timezones())
