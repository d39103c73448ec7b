"""An event loop on which waiting costs nothing: its clock jumps to the next timer when there is nothing else to do.

What takes 90 s in the world takes as long as it takes to compute, and happens in the same order every time. A test
in which everybody waits for somebody else, and nobody for a time, fails at once and does not hang.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: Shorter than any delay that means something, longer than the clock's resolution.
_MOMENT = 1e-5


class _Selector(selectors.SelectSelector):
    """Looks for real events without waiting, and turns the time that it should wait for them into virtual time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.turns = 0
        self.on_turn: Callable[[int], bool] = lambda turn: False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.turns += 1
        if self.on_turn(self.turns):
            timeout = 0
        events = super().select(0)
        if not events:
            if timeout is None:
                raise RuntimeError("everybody waits, and nothing is left that could happen")
            self.now += max(timeout, 0)
        return events


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop with a clock of its own."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Virtual seconds."""
        return self._virtual.now

    def after_turns(self, turns: int, action: Callable[[], Any]) -> None:
        """Does something between two turns of the loop, a number of turns from now; the last call counts."""
        due = self._virtual.turns + turns

        def act(turn: int) -> bool:
            if turn == due:
                action()
            return turn == due

        self._virtual.on_turn = act

    @property
    def turns(self) -> int:
        """How many turns the loop has made."""
        return self._virtual.turns


async def settled() -> None:
    """Returns when everything has happened that can happen without time passing."""
    await asyncio.sleep(_MOMENT)
