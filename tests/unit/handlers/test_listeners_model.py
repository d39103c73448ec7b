"""Listeners compared with lists: after any sequence of actions, each handler has its expected notifications."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer.handlers.listener import Batch, ProcessorListener
from aioinformer.handlers.notifications import AddNotification, Notification
from aioinformer.handlers.resync import ResyncSchedule
from tests.support.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class Handler:
    """A handler with a duration and a failure rate, and its expected notifications.

    Attributes:
        seconds: duration of a call; 0 for a plain function.
        fails: raises at every call with a multiple of this number; 0 for never.
        given: expected notifications, in order.
        told: delivered notifications.
        done: number of finished calls.
        initial: number of expected notifications of the initial list.
    """

    seconds: float
    fails: int
    given: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    done: int = 0
    initial: int = 0
    told_when_removed: int | None = None

    def deliver(self, notification: Notification[str]) -> Any:
        assert isinstance(notification, AddNotification)
        assert len(self.told) == self.done, "two calls at a time"
        self.told.append(notification.obj)
        if self.seconds:
            return self._slowly()
        return self._end()

    async def _slowly(self) -> None:
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.done += 1
            raise
        self._end()

    def _end(self) -> None:
        self.done += 1
        if self.fails and len(self.told) % self.fails == 0:
            raise ValueError("a handler that fails")


JOIN = st.tuples(
    st.just("join"), st.sampled_from([0.0, 0.0, 0.3, 5.0]), st.sampled_from([0, 0, 1, 3]), st.integers(0, 3)
)
TELL = st.tuples(st.just("tell"), st.integers(1, 4))
OTHERS = st.sampled_from([("pass", 0.0), ("pass", 0.2), ("pass", 7.0), ("synced",), ("remove", 0), ("remove", 1)])


async def live(actions: list[tuple[Any, ...]]) -> None:
    """Run the actions, wait for the end of all calls, and compare with the lists."""
    handlers: list[tuple[Handler, ProcessorListener[str]]] = []
    gone: list[tuple[Handler, ProcessorListener[str]]] = []
    number = 0
    synced = False
    async with asyncio.TaskGroup() as tasks:
        for what, *how in actions:
            if what == "join":
                handler = Handler(how[0], how[1], initial=how[2])
                listener: ProcessorListener[str] = ProcessorListener("one", handler.deliver, ResyncSchedule(0.0))
                handler.given = [f"initial {each}" for each in range(how[2])]
                # Created at its turn, as in a running informer.
                told = (AddNotification(each, True) for each in list(handler.given))
                listener.add(Batch(told, how[2], how[2]))
                listener.start(tasks)
                if synced:
                    listener.mark_upstream_synced()
                handlers.append((handler, listener))
            elif what == "tell":
                words = [f"word {number + each}" for each in range(how[0])]
                number += how[0]
                for handler, listener in handlers:
                    handler.given += words
                    listener.add(Batch.of([AddNotification(word) for word in words]))
            elif what == "synced":
                synced = True
                for _, listener in handlers:
                    listener.mark_upstream_synced()
            elif what == "remove" and len(handlers) > how[0]:
                handler, listener = handlers.pop(how[0])
                handler.told_when_removed = len(handler.told)
                listener.stop()
                listener.add(Batch.of([AddNotification("too late")]))
                gone.append((handler, listener))
            elif what == "pass":
                await asyncio.sleep(how[0])
            for handler, listener in handlers:
                assert handler.told == handler.given[: len(handler.told)]
                assert not listener.synced or (synced and len(handler.told) >= handler.initial)
        await asyncio.sleep(1000)
        for handler, listener in handlers:
            assert handler.told == handler.given
            assert listener.pending == 0
            assert listener.errors == (len(handler.told) // handler.fails if handler.fails else 0)
            assert bool(listener.synced) == synced
            listener.stop()
        for handler, listener in gone:
            assert handler.told == handler.given[: len(handler.told)]
            assert len(handler.told) == handler.told_when_removed, "told after it was removed"
            assert handler.done == len(handler.told)
            assert listener.finished


@pytest.fixture(autouse=True)
def nothing_written_of_handlers_that_fail() -> Iterator[None]:
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@settings(max_examples=150)
@given(actions=st.lists(st.one_of(JOIN, TELL, TELL, OTHERS), max_size=25))
def test_every_handler_gets_its_notifications_in_order(
    actions: list[tuple[Any, ...]],
) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(live(actions))
