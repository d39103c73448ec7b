"""Listeners: order, slices, and the log of slow and failing handlers."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import ref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer.handlers.backlog import Batch
from aioinformer.handlers.listener import ProcessorListener
from aioinformer.handlers.notifications import AddNotification, Notification, UpdateNotification
from aioinformer.handlers.processor import SharedProcessor
from aioinformer.handlers.repeated import RepeatedErrors
from aioinformer.handlers.resync import ResyncSchedule
from tests.support.limits import measure_slices
from tests.support.virtual_time import VirtualTimeLoop, settled

if TYPE_CHECKING:
    from collections.abc import Callable


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
    st.just("join"),
    st.sampled_from([0.0, 0.0, 0.3, 5.0]),
    st.sampled_from([0, 0, 1, 3]),
    st.integers(0, 3),
    st.booleans(),
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
                if how[3] and not handler.seconds:
                    listener.call_at_once()
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
            assert listener.calls.errors == (len(handler.told) // handler.fails if handler.fails else 0)
            assert bool(listener.synced) == synced
            listener.stop()
        for handler, listener in gone:
            assert handler.told == handler.given[: len(handler.told)]
            assert len(handler.told) == handler.told_when_removed, "told after it was removed"
            assert handler.done == len(handler.told)
            assert listener.finished


@settings(max_examples=150)
@given(actions=st.lists(st.one_of(JOIN, TELL, TELL, OTHERS), max_size=25))
def test_every_handler_gets_its_notifications_in_order(actions: list[tuple[Any, ...]]) -> None:
    logging.disable()
    try:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(live(actions))
    finally:
        logging.disable(logging.NOTSET)


def listener_of(deliver: Callable[[Any], Any]) -> ProcessorListener[Any]:
    return ProcessorListener("handler", deliver, ResyncSchedule(0.0))


def distribute(processor: SharedProcessor[Any], *objects: Any) -> None:
    for each in objects:
        processor.distribute(UpdateNotification(each, "new"))
    processor.flush()


async def all_told(listener: ProcessorListener[Any]) -> None:
    while listener.pending:  # noqa: ASYNC110 - a turn of the loop
        await asyncio.sleep(0)


async def test_quick_handler_is_called_in_the_step_of_a_change_and_never_before_earlier_ones() -> None:
    told: list[str] = []
    processor: SharedProcessor[Any] = SharedProcessor()
    listener = listener_of(lambda notification: told.append(notification.old))
    listener.call_at_once()
    processor.add_listener(listener)
    distribute(processor, "before the start")
    async with asyncio.TaskGroup() as tasks:
        processor.start(tasks)
        distribute(processor, "behind it")
        assert told == []
        await all_told(listener)
        assert told == ["before the start", "behind it"]
        distribute(processor, "at once")
        assert told[2:] == ["at once"]
        many = [str(number) for number in range(1000)]
        distribute(processor, *many)  # they would block the event loop
        distribute(processor, "last")
        assert len(told) == 3
        await all_told(listener)
        assert told[3:] == [*many, "last"]
        assert listener.backlog.calls == len(told)
        processor.remove_listener(listener)
        distribute(processor, "too late")
        assert told[-1] == "last"


STEP = 0.000_005


class Clock:
    """A clock that advances in handlers only."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def pass_in_handler(self, notification: Any) -> None:
        self.now += STEP


@pytest.mark.parametrize("count", [1, 10, 100, 300])
async def test_backlogs_block_the_loop_for_10_ms_at_most(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    measure_slices(monkeypatch, clock)
    processor: SharedProcessor[Any] = SharedProcessor()
    for _ in range(count):
        processor.add_listener(listener_of(clock.pass_in_handler))
    longest = last = 0.0
    async with asyncio.TaskGroup() as tasks:
        processor.start(tasks)
        distribute(processor, *["old"] * 500)
        while any(listener.pending for listener in processor.listeners):
            await asyncio.sleep(0)
            longest, last = max(longest, clock.now - last), clock.now
        await processor.stop(0)
    assert clock.now == pytest.approx(500 * count * STEP)
    assert longest <= 0.01


async def test_quick_handler_that_takes_long_goes_on_in_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    measure_slices(monkeypatch, clock)
    processor: SharedProcessor[Any] = SharedProcessor()
    told: list[str] = []

    def deliver(notification: Any) -> None:
        told.append(notification.old)
        clock.now += 0.003

    listener = listener_of(deliver)
    listener.call_at_once()
    processor.add_listener(listener)
    async with asyncio.TaskGroup() as tasks:
        processor.start(tasks)
        await asyncio.sleep(0)
        distribute(processor, "one")
        assert told == ["one"]
        distribute(processor, *"abcdefghij")
        now = len(told) - 1
        assert 1 <= now <= 4, "for 10 ms at most"
        assert (listener.pending, listener.backlog.calls) == (10 - now, 1 + now)
        distribute(processor, "later")
        assert len(told) == 1 + now
        await all_told(listener)
        await processor.stop(0)
    assert told == ["one", *"abcdefghij", "later"]


def counting_processor(listeners: int) -> tuple[SharedProcessor[Any], Counter[int]]:
    """Return a processor with some listeners, and the calls of each by its number."""
    processor: SharedProcessor[Any] = SharedProcessor()
    called: Counter[int] = Counter()

    def deliver_to(number: int) -> Callable[[Any], None]:
        return lambda _: called.update([number])

    for number in range(listeners):
        processor.add_listener(listener_of(deliver_to(number)))
    return processor, called


@pytest.mark.usefixtures("fine_slices")
async def test_few_of_many_listeners_go_on_in_each_turn() -> None:
    processor, called = counting_processor(100)
    async with asyncio.TaskGroup() as tasks:
        processor.start(tasks)
        distribute(processor, *["old"] * 20)
        turns: list[int] = []
        while any(listener.pending for listener in processor.listeners):
            before = called.total()
            await asyncio.sleep(0)
            turns.append(called.total() - before)
            assert max(called.values(), default=0) - min(called.values(), default=0) <= 1
        await processor.stop(0)
    assert called.total() == 100 * 20
    first, *later = [calls for calls in turns if calls]
    assert first == 100  # all get a new batch at once
    assert max(later) == 8


@pytest.mark.usefixtures("fine_slices")
async def test_listener_removed_while_it_waits_for_a_turn_delays_no_other() -> None:
    processor, called = counting_processor(20)
    removed = processor.listeners[:18]
    async with asyncio.TaskGroup() as tasks:
        processor.start(tasks)
        distribute(processor, *["old"] * 5)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for listener in removed:
            processor.remove_listener(listener)
        await settled()
        await processor.stop(0)
    assert [called[number] for number in (0, 17, 18, 19)] == [1, 1, 5, 5]


class WokenLater(asyncio.Future[None]):
    """A turn that cannot begin the first time, because memory runs out."""

    tries = 0

    def set_result(self, result: None, /) -> None:
        self.tries += 1
        if self.tries == 1:
            raise MemoryError
        super().set_result(result)


@pytest.mark.usefixtures("fine_slices")
async def test_failed_turn_delays_no_listener_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    reported: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda loop, context: reported.append(context))
    processor, called = counting_processor(20)
    async with asyncio.TaskGroup() as tasks:
        processor.start(tasks)
        await settled()
        with monkeypatch.context() as patch:
            patch.setattr(loop, "create_future", WokenLater)
            distribute(processor, *["old"] * 3)
            for _ in range(5):
                await asyncio.sleep(0)
        await settled()
        await processor.stop(0)
    assert set(called.values()) == {3}
    assert reported


async def test_idle_handler_and_removed_handler_keep_no_batch_alive() -> None:
    processor: SharedProcessor[Any] = SharedProcessor()
    go_on = asyncio.Event()
    processor.add_listener(listener_of(lambda _: None))
    processor.add_listener(removed := listener_of(lambda _: go_on.wait()))
    async with asyncio.TaskGroup() as tasks:
        processor.start(tasks)
        # A set is an object of a notification here: strings have no weak references.
        payloads = [{number} for number in range(10)]
        left = [ref(each) for each in payloads]
        distribute(processor, "first")
        await settled()
        distribute(processor, *payloads, "last")
        payloads.clear()
        await settled()
        assert all(each() is not None for each in left)
        processor.remove_listener(removed)
        go_on.set()
        await removed.finished.wait()
        assert not any(each() is not None for each in left)
        await processor.stop(0)


async def test_removed_handler_counts_what_was_delivered() -> None:
    processor: SharedProcessor[Any] = SharedProcessor()
    go_on = asyncio.Event()
    listener = listener_of(lambda _: go_on.wait())
    processor.add_listener(listener)

    def counts() -> tuple[int, int, bool]:
        return listener.pending, listener.backlog.calls, bool(listener.finished)

    async with asyncio.TaskGroup() as tasks:
        processor.start(tasks)
        distribute(processor, *"abc")
        distribute(processor, *"de")
        await settled()
        assert counts() == (5, 1, False)
        processor.remove_listener(listener)
        distribute(processor, *"fgh")
        listener.add(Batch.of([AddNotification("i")]))
        assert counts() == (1, 1, False)
        go_on.set()
        await settled()
        assert counts() == (0, 1, True)
        await processor.stop(0)


async def logged(caplog: pytest.LogCaptureFixture, batches: list[int], seconds: float) -> list[str]:
    """Return the log after a handler has taken `seconds` for each notification of these batches."""
    caplog.set_level("INFO", "aioinformer.handlers")
    listener: ProcessorListener[Any] = ProcessorListener(
        "pods: handler 1", lambda notification: asyncio.sleep(seconds), ResyncSchedule(0.0)
    )
    for size in batches:
        listener.add(Batch.of([AddNotification(f"pod-{number}", False) for number in range(size)]))
    async with asyncio.TaskGroup() as tasks:
        listener.start(tasks)
        await asyncio.sleep(sum(batches) * seconds + 1)
        listener.stop()
    assert listener.pending == 0
    return caplog.messages


@pytest.mark.conformance("SI-33")
async def test_slow_call_is_logged_with_name_and_pending(caplog: pytest.LogCaptureFixture) -> None:
    lines = await logged(caplog, [30, 1000, 200], 0.2)
    assert lines[0] == "pods: handler 1 took 0.2 s for a call, and 1230 notifications wait"


@pytest.mark.conformance("SI-33")
@pytest.mark.parametrize(("batches", "seconds"), [([1024], 0.2), ([30, 1000], 0.09)], ids=["few wait", "quick"])
async def test_quick_call_or_short_queue_is_not_logged(
    batches: list[int], seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    assert await logged(caplog, batches, seconds) == []


async def test_slow_calls_are_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    assert len(await logged(caplog, [3024], 0.125)) == 5  # until 1024 are left, after 250 s


_log = logging.getLogger("aioinformer.handlers")


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    return lambda: [f"{record.getMessage()}{' with traceback' * bool(record.exc_info)}" for record in caplog.records]


def report(errors: RepeatedErrors, times: int, subject: str = "f", error: type[Exception] = ValueError) -> None:
    for number in range(times):
        errors.report(subject, error(), "%s raised for %d", subject, number)


async def test_one_traceback_a_minute_and_the_count(lines: Callable[[], list[str]]) -> None:
    errors = RepeatedErrors(_log)
    report(errors, 1000)
    assert lines() == ["f raised for 0 with traceback"]
    await asyncio.sleep(61)
    count = "f raised 999 more errors within 60 s after the last traceback; the last one was ValueError"
    assert lines()[1:] == [count]
    report(errors, 1)
    assert lines()[2:] == ["f raised for 0 with traceback"]
    await asyncio.sleep(61)
    assert len(lines()) == 3


async def test_each_function_has_its_own_traceback(lines: Callable[[], list[str]]) -> None:
    errors = RepeatedErrors(_log)
    report(errors, 2, "f")
    report(errors, 2, "g", KeyError)
    assert lines() == ["f raised for 0 with traceback", "g raised for 0 with traceback"]


async def test_count_names_some_keys_and_the_last_error(lines: Callable[[], list[str]]) -> None:
    errors = RepeatedErrors(_log)
    for key in "abbcde":
        errors.report("f", ValueError() if key < "e" else KeyError(), "f raised", key=key)
    errors.close()
    assert lines()[1].endswith("; the last one was KeyError; keys such as b, c, d")


async def test_few_lines_of_each_subject_have_no_traceback(lines: Callable[[], list[str]]) -> None:
    errors = RepeatedErrors(_log)
    logged = [errors.report("f", ValueError(), "f %d", n, level=logging.WARNING, lines=2) for n in range(5)]
    errors.close()
    assert logged == [True, True, True, False, False]
    count = "f raised 2 more errors within 60 s after the last lines; the last one was ValueError"
    assert lines() == ["f 0", "f 1", "f 2", count]


async def test_same_error_of_a_key_is_logged_once(lines: Callable[[], list[str]]) -> None:
    errors = RepeatedErrors(_log)
    for text in ("no", "no", "never"):
        for key in "ab":
            errors.report("f", ValueError(text), "%s: %s", key, text, key=key, lines=5, once=True)
    assert lines() == ["a: no with traceback", "b: no", "a: never", "b: never"]
    errors.close()
    assert lines()[4].endswith(
        "f raised 2 more errors within 60 s after the last traceback; the last one was ValueError; keys such as a, b"
    )


async def test_close_logs_the_counts_and_leaves_no_timer(lines: Callable[[], list[str]]) -> None:
    errors = RepeatedErrors(_log)
    report(errors, 3)
    errors.close()
    assert "f raised 2 more errors" in lines()[1]
    await asyncio.sleep(120)
    assert len(lines()) == 2


def test_without_an_event_loop_the_next_traceback_has_the_count(
    lines: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("aioinformer.handlers.repeated.monotonic", lambda: now)
    errors = RepeatedErrors(_log)
    report(errors, 3)
    now = 61.0
    report(errors, 1)
    assert [line[:13] for line in lines()] == ["f raised for ", "f raised 2 mo", "f raised for "]
