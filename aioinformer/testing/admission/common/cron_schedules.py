"""Cron schedules, parsed as strictly as by the library that the API uses.

A schedule has five fields, minute, hour, day of the month, month and day of the week, each a list of ranges with steps;
or it is a descriptor such as "@daily" or "@every 1h30m".
"""

from __future__ import annotations

import re
from typing import NamedTuple

from aioinformer.testing.admission.common.time_zones import is_time_zone
from aioinformer.testing.api.golike import DurationError, quoted, seconds


class ScheduleError(ValueError):
    """A malformed schedule; the text says why."""


class _Bounds(NamedTuple):
    lowest: int
    highest: int
    names: tuple[str, ...] = ()


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (_Bounds(0, 59), _Bounds(0, 23), _Bounds(1, 31), _Bounds(1, 12, _MONTHS), _Bounds(0, 6, _DAYS))
_WORDS = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_EVERY = "@every "
_ZONE = re.compile(r"(?:TZ|CRON_TZ)=")
_NUMBER = re.compile(r"[+-]?[0-9]+")
_LARGEST = 2**63


def check_schedule(schedule: str) -> None:
    """Parse a schedule.

    Args:
        schedule: not empty.

    Raises:
        ScheduleError: it is malformed.
    """
    text = schedule
    if _ZONE.match(text):
        named, space, text = text.partition(" ")
        if not space:
            # The library panics here, and the API reports it.
            raise ScheduleError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
        zone = named.partition("=")[2]
        if zone and not is_time_zone(zone):
            raise ScheduleError(f"provided bad location {zone}: unknown time zone {zone}")
        text = text.strip()
    if text.startswith("@"):
        _check_word(text)
        return
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise ScheduleError(f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]")
    for field, bounds in zip(fields, _FIELDS, strict=True):
        for each in filter(None, field.split(",")):
            _check_range(each, bounds)


def _check_word(word: str) -> None:
    if word in _WORDS:
        return
    if not word.startswith(_EVERY):
        raise ScheduleError(f"unrecognized descriptor: {word}")
    try:
        seconds(word.removeprefix(_EVERY))
    except DurationError as error:
        raise ScheduleError(f"failed to parse duration {word}: {error}") from None


def _check_range(expression: str, bounds: _Bounds) -> None:
    limits, *steps = expression.split("/")
    ends = limits.split("-")
    if ends[0] in ("*", "?"):
        first, last = bounds.lowest, bounds.highest
    else:
        first = last = _number(ends[0], bounds.names, bounds.lowest)
        if len(ends) == 2:
            last = _number(ends[1], bounds.names, bounds.lowest)
        elif len(ends) > 2:
            raise ScheduleError(f"too many hyphens: {expression}")
    step = 1
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {expression}")
    if steps:
        step = _number(steps[0])
        last = bounds.highest if len(ends) == 1 else last
    if first < bounds.lowest:
        raise ScheduleError(f"beginning of range ({first}) below minimum ({bounds.lowest}): {expression}")
    if last > bounds.highest:
        raise ScheduleError(f"end of range ({last}) above maximum ({bounds.highest}): {expression}")
    if first > last:
        raise ScheduleError(f"beginning of range ({first}) beyond end of range ({last}): {expression}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {expression}")


def _number(text: str, names: tuple[str, ...] = (), first: int = 0) -> int:
    if text.lower() in names:
        return names.index(text.lower()) + first
    if not _NUMBER.fullmatch(text) or not -_LARGEST <= int(text) < _LARGEST:
        why = "value out of range" if _NUMBER.fullmatch(text) else "invalid syntax"
        raise ScheduleError(f"failed to parse int from {text}: strconv.Atoi: parsing {quoted(text)}: {why}")
    number = int(text)
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number
