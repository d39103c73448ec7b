"""An event loop in virtual time: when idle, its clock jumps to the next timer.

A test of 90 s takes only its computing time, and runs in the same order every time. A test in which all tasks wait for
each other, and none for a timer, fails at once instead of hanging.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


#: Shorter than all delays in tests, longer than the clock's resolution.
_MOMENT = 1e-5


class _Selector(selectors.SelectSelector):
    """Polls for real events, and adds the waiting time to the virtual clock."""

    def __init__(self, grace: float) -> None:
        super().__init__()
        self.now = 1000.0
        self.grace = grace
        self.turns = 0
        self.on_turn: Callable[[int], bool] = lambda turn: False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.turns += 1
        if self.on_turn(self.turns):
            timeout = 0
        events = super().select(0)
        if not events and self.grace and timeout != 0:
            events = super().select(self.grace)
        if not events:
            if timeout is None:
                raise RuntimeError("deadlock: all tasks wait, and there is no timer")
            self.now += max(timeout, 0)
        return events


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop with a virtual clock.

    Args:
        grace: real seconds without any event after which the clock advances. Above 0, both ends of a connection over
            loopback may use the loop.
    """

    def __init__(self, grace: float = 0.0) -> None:
        self._virtual = _Selector(grace)
        super().__init__(self._virtual)

    def time(self) -> float:
        """Return virtual seconds."""
        return self._virtual.now

    def after_turns(self, turns: int, action: Callable[[], Any]) -> None:
        """Call a function between two turns of the loop, after a number of turns; a later call replaces it."""
        due = self._virtual.turns + turns

        def act(turn: int) -> bool:
            if turn == due:
                action()
            return turn == due

        self._virtual.on_turn = act

    @property
    def turns(self) -> int:
        """The number of turns of the loop."""
        return self._virtual.turns


async def settled() -> None:
    """Wait until everything has happened that can happen without time passing."""
    await asyncio.sleep(_MOMENT)


def in_virtual_time(story: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in virtual time; errors that asyncio reports fail the test."""
    complaints: list[str] = []
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.get_loop().set_exception_handler(lambda loop, context: complaints.append(str(context)))
        runner.run(story)
    assert complaints == []
