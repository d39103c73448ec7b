"""Reduces a failing scenario: removes actions as long as the same invariant is violated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.system.simulation.simulate import play

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.system.simulation.scenario import Scenario


def shrunk(scenario: Scenario, without: Iterable[int], invariant: str) -> tuple[int, ...]:
    """Return the numbers of removable actions: first halves are tried, then smaller and smaller parts."""
    left_out = set(without)
    size = max(1, len(scenario.actions) // 2)
    while True:
        kept = [number for number in range(len(scenario.actions)) if number not in left_out]
        smaller = False
        for begin in range(0, len(kept), size):
            candidate = left_out | set(kept[begin : begin + size])
            violation = play(scenario.without(candidate)).violation
            if violation is not None and violation.invariant == invariant:
                left_out, smaller = candidate, True
        if size == 1 and not smaller:
            return tuple(sorted(left_out))
        size = max(1, size // 2)


def ranges_of(numbers: Iterable[int]) -> str:
    """Return numbers as ranges: "4,7-19"."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def numbers_in(ranges: str) -> tuple[int, ...]:
    """Return the numbers in ranges such as "4,7-19"."""
    numbers: list[int] = []
    for part in filter(None, ranges.split(",")):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return tuple(numbers)
