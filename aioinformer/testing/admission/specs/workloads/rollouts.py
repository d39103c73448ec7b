"""Validation of update strategies and of their numbers, which may be percentages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.go_structs import go_struct
from aioinformer.testing.admission.specs.terms.parts import non_negative
from aioinformer.testing.api.statuses import Cause, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PERCENT = re.compile(r"[0-9]+%")
_INVALID_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_ROLLING = "RollingUpdate"
_DEPLOYMENT_STRATEGY = {"Type": "", "RollingUpdate": ({"MaxUnavailable": 0, "MaxSurge": 0},)}
_DAEMON_SET_STRATEGY = _DEPLOYMENT_STRATEGY
_PARTITION = {"Partition": 0, "MaxUnavailable": None}
_STATEFUL_SET_STRATEGY = {"Type": "", "RollingUpdate": (_PARTITION,)}


def number_or_percentage(value: int | str, path: str) -> Iterator[Cause]:
    """Check a number or a percentage."""
    if not isinstance(value, str):
        yield from non_negative(value, path)
    elif not _PERCENT.fullmatch(value):
        yield Cause.invalid(path, quote(value), _INVALID_PERCENT)


def at_most_all(value: int | str, path: str) -> Iterator[Cause]:
    """Check that a percentage is at most 100%."""
    if isinstance(value, str) and _PERCENT.fullmatch(value) and _count(value) > 100:
        yield Cause.invalid(path, quote(value), "must not be greater than 100%")


def deployment_strategy(strategy: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Check the update strategy of a deployment."""
    kind, rolling, here = strategy.get("type"), strategy.get("rollingUpdate"), f"{path}.rollingUpdate"
    if kind == "Recreate":
        if rolling is not None:
            yield Cause.forbidden(here, "may not be specified when strategy `type` is 'Recreate'")
    elif kind == _ROLLING:
        surge, unavailable = _bounds(rolling)
        yield from number_or_percentage(unavailable, f"{here}.maxUnavailable")
        yield from number_or_percentage(surge, f"{here}.maxSurge")
        if not _count(unavailable) and not _count(surge):
            yield Cause.invalid(f"{here}.maxUnavailable", quote(unavailable), "may not be 0 when `maxSurge` is 0")
        yield from at_most_all(unavailable, f"{here}.maxUnavailable")
    else:
        value = quote(go_struct(strategy, _DEPLOYMENT_STRATEGY))
        yield Cause.unsupported(path, value, ("Recreate", _ROLLING))


def daemon_set_strategy(strategy: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Check the update strategy of a daemon set."""
    kind, here = strategy.get("type"), f"{path}.rollingUpdate"
    if kind == _ROLLING:
        surge, unavailable = _bounds(strategy.get("rollingUpdate"))
        for check in (number_or_percentage, at_most_all):
            yield from check(unavailable, f"{here}.maxUnavailable")
            yield from check(surge, f"{here}.maxSurge")
        if _count(unavailable) and _count(surge):
            yield Cause.invalid(f"{here}.maxSurge", quote(surge), "may not be set when maxUnavailable is non-zero")
        if not _count(unavailable) and not _count(surge):
            yield Cause.required(f"{here}.maxUnavailable", "cannot be 0 when maxSurge is 0")
    elif kind != "OnDelete":
        value = quote(go_struct(strategy, _DAEMON_SET_STRATEGY))
        yield Cause.unsupported(path, value, (_ROLLING, "OnDelete"))


def stateful_set_strategy(strategy: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Check the update strategy of a stateful set."""
    kind, rolling, here = strategy.get("type"), strategy.get("rollingUpdate"), f"{path}.rollingUpdate"
    if kind == _ROLLING:
        yield from non_negative((rolling or {}).get("partition"), f"{here}.partition")
    elif kind != "OnDelete":
        value = quote(go_struct(strategy, _STATEFUL_SET_STRATEGY))
        yield Cause.invalid(path, value, "must be 'RollingUpdate' or 'OnDelete'")
    elif rolling is not None:
        value = quote(go_struct(rolling, _PARTITION))
        yield Cause.invalid(here, value, "only allowed for updateStrategy 'RollingUpdate'")


def _bounds(rolling: Mapping[str, Any] | None) -> tuple[int | str, int | str]:
    rolling = rolling or {}
    return rolling.get("maxSurge", 0), rolling.get("maxUnavailable", 0)


def _count(value: int | str) -> int:
    """Return the number, or the number of percents. Other values count as 0."""
    try:
        return int(str(value).removesuffix("%"))
    except ValueError:
        return 0
