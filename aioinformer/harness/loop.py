"""An event loop in virtual time, with processes that can crash; and a scheduler that decides what happens next.

A callback belongs to the process in whose context it was scheduled. A crashed process runs no further callback: no
`except`, no `finally`, no timer. After the run, `thaw` lets it continue, so that its tasks can end.
"""

from __future__ import annotations

import asyncio
import selectors
from contextvars import Context, ContextVar, copy_context
from heapq import heapify, heappush
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

    from aioinformer.harness.plan import Dice
    from aioinformer.harness.story import Story

#: The process to which the running code belongs; "" for the test and the server.
PROCESS: ContextVar[str] = ContextVar("aioinformer_process", default="")


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop with a virtual clock, which stands still while code runs.

    Attributes:
        on_idle: called when no callback is ready, with the seconds until the next timer, None without one. It returns
            how many seconds pass, at most until that timer; 0 if it has scheduled a callback.
    """

    on_idle: Callable[[float | None], float]
    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]

    def __init__(self) -> None:
        self.now = 1000.0
        self.on_idle = lambda timeout: timeout or 0.0
        self._crashed: set[str] = set()
        self._held: list[asyncio.Handle] = []
        selector = selectors.SelectSelector()
        self._poll = selector.select
        selector.select = self._select  # type: ignore[method-assign]
        super().__init__(selector)
        self._nothing = asyncio.Handle(lambda: None, (), self)

    def time(self) -> float:
        """Return virtual seconds."""
        return self.now

    def _select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Poll for real events without waiting; if there are none, let time pass."""
        events = [] if timeout == 0 else self._poll(0)
        if not events and timeout != 0:
            self.now += self.on_idle(timeout)
        return events

    def crash(self, process: str) -> None:
        """Run no further callback of a process."""
        self._crashed.add(process)
        for index, handle in enumerate(self._ready):
            if self._holds(handle):
                self._ready[index] = self._nothing  # the loop counts its callbacks before it runs them
        self._scheduled[:] = [timer for timer in self._scheduled if not self._holds(timer)]
        heapify(self._scheduled)

    def thaw(self) -> None:
        """Let all crashed processes continue."""
        self._crashed.clear()
        for handle in self._held:
            if isinstance(handle, asyncio.TimerHandle):
                heappush(self._scheduled, handle)
            else:
                self._ready.append(handle)
        self._held.clear()

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:  # type: ignore[override]
        """As in asyncio; the callback of a crashed process is kept for `thaw`."""
        if self._crashed and self._holds(held := asyncio.Handle(callback, args, self, context or copy_context())):
            return held
        return super().call_soon(callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """As in asyncio; the timer of a crashed process is kept for `thaw`."""
        if self._crashed and self._holds(held := asyncio.TimerHandle(when, callback, args, self, context)):
            return held
        return super().call_at(when, callback, *args, context=context)

    def _holds(self, handle: Any) -> bool:
        """Return whether a callback belongs to a crashed process; if so, keep it."""
        # Python 3.11 has no `get_context` of handles.
        held = handle._context.get(PROCESS) in self._crashed
        if held:
            self._held.append(handle)
        return held


class Event(NamedTuple):
    """Something that can happen, not before a time. The story has no line for "background"; "watch" adds its own."""

    at: float
    actor: str
    text: str
    act: Callable[[], object]
    sort: Literal["watch", "call", "background"]


class Scheduler:
    """The events of a run, in an order that dice choose. Between two events, all tasks run until none is ready."""

    def __init__(self, loop: VirtualTimeLoop, dice: Dice, story: Story) -> None:
        self.steps = 0
        self.pending: list[Event] = []
        self.until = float("inf")  # without events, time passes at most until then
        self._loop = loop
        self._dice = dice
        self._story = story
        self._waiters: list[asyncio.Future[None]] = []
        self._acted = False
        loop.on_idle = self._on_idle

    def add(self, actor: str, text: str, act: Callable[[], object], delay: float, sort: Any = "call") -> Event:
        """Let something happen, after a delay at the earliest."""
        self.pending.append(event := Event(self._loop.time() + delay, actor, text, act, sort))
        return event

    def is_busy(self) -> bool:
        """Return whether an event is pending that is not in the background."""
        return any(event.sort != "background" for event in self.pending)

    def drop(self, event: Event | None) -> None:
        """Let an event not happen, if it has not happened yet."""
        if event in self.pending:
            self.pending.remove(event)

    async def step(self) -> None:
        """Wait until one event has happened, or time has passed, and no task is ready."""
        self._waiters.append(self._loop.create_future())
        await self._waiters[-1]

    def _on_idle(self, timeout: float | None) -> float:
        if self._waiters and self._acted:
            waiters = self._waiters
            self._waiters = []
            self._acted = False
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
            return 0.0
        self._acted = True
        self.steps += 1
        now = self._loop.time()
        ready = [event for event in self.pending if event.at <= now]
        if not ready:
            times = [event.at for event in self.pending] + ([] if timeout is None else [now + timeout])
            return max(0.0, min([*times, now + 10.0, self.until]) - now)
        event = self._dice.choice("order", ready)
        self.pending.remove(event)
        if event.sort == "call":
            self._story.tell(event.actor, event.text)
        event.act()
        return 0.001  # otherwise, a controller that never rests would stop the time
