"""Which time zones there are."""

from __future__ import annotations

from functools import cache
from zoneinfo import ZoneInfo, available_timezones

_ALWAYS = frozenset({"Local", "UTC"})


def is_time_zone(name: str) -> bool:
    """Whether there is a time zone of this name; where nothing is known of time zones, any name may be one."""
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
