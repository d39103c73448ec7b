"""What a run does besides its scenario: the order of events, and faults. Everything follows from a seed."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

#: The kinds of faults, as in `explore`.
FAULTS = ("crashes", "stale", "lost", "conflicts", "merged")
#: Each kind but crashes takes effect at most this often in a run, so that the run can converge.
_MOST = 20
_SHARES = (0.0, 0.0, 0.05, 0.2, 0.5)
_LATE = (0.02, 0.3, 1.5, 6.0)


class Crash(msgspec.Struct, frozen=True):
    """The end of a process before a write, or after it and before its answer; the first write of a run is 1."""

    write: int
    after: bool


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What happens in a run besides the scenario.

    Attributes:
        seed: of all choices; None lets everything happen at once, in the order of its arrival.
        crashes: when processes crash.
        stale: the share of deliveries that are late: events of watches, answers, garbage collection.
        lost: the share of writes whose answer is lost.
        conflicts: the share of updates and patches that the server refuses with a conflict.
        merged: the share of events at which a watch breaks off, and its history expires.
    """

    seed: int | None = None
    crashes: tuple[Crash, ...] = ()
    stale: float = 0.0
    lost: float = 0.0
    conflicts: float = 0.0
    merged: float = 0.0

    @classmethod
    def draw(cls, seed: int, writes: int) -> Plan:
        """Return the plan of a seed. Successive seeds crash before and after each of the writes in turn."""
        random = Random(f"plan {seed}")
        write, after = divmod(seed % (2 * writes + 1), 2)
        crashes = [Crash(write + 1, bool(after))] if write < writes else []
        if crashes and random.random() < 0.25:
            crashes.append(Crash(write + 1 + random.randint(1, 4), random.random() < 0.5))
        shares = {kind: random.choice(_SHARES) for kind in FAULTS[1:]}
        return cls(seed=seed, crashes=tuple(crashes), **shares)

    def without(self, *kinds: str) -> Plan:
        """Return this plan without some kinds of faults; or without the order by the seed, for "seed"."""
        return replace(self, **{kind: {"seed": None, "crashes": ()}.get(kind, 0.0) for kind in kinds})


class Dice:
    """The choices of one run. Each kind of choice has its own random numbers: without one kind, the others stay."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.faults: dict[str, int] = {}  # how often each kind took effect
        self._random: dict[str, Random] = {}

    def strike(self, kind: str) -> bool:
        """Return whether a fault takes effect now, and count it."""
        share = getattr(self.plan, kind)
        count = self.faults.get(kind, 0)
        if not share or count >= _MOST or self._of(kind).random() >= share:
            return False
        self.faults[kind] = count + 1
        return True

    def delay(self) -> float:
        """Return how late a delivery is, in seconds."""
        if self.strike("stale"):
            return self.choice("late", _LATE)
        return self.choice("delay", (0, 0, 0, 0.001, 0.02))

    def choice(self, what: str, values: Sequence[T]) -> T:
        """Return one of the values; the first one without a seed."""
        return values[0] if self.plan.seed is None else self._of(what).choice(values)

    def _of(self, what: str) -> Random:
        if what not in self._random:
            self._random[what] = Random(f"{what} {self.plan.seed}")
        return self._random[what]
