"""Sources: keys from async iterables, and from timers."""

from __future__ import annotations

import asyncio
import logging
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.backoff import BackoffOptions
from aioinformer.controller import Every
from aioinformer.controller.inputs import Source
from aioinformer.controller.inputs.sources import source_of
from aioinformer.errors import OptionError, UsageError
from aioinformer.resources import ObjectName
from tests.support.virtual_time import settled
from tests.unit.controller.inputs.inputs import WIDGETS, Requests, widget

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable


def now() -> float:
    return asyncio.get_running_loop().time()


class Running:
    """A source that runs, and what it has enqueued."""

    def __init__(self, source: Source | Every, keys: Iterable[ObjectName] = ()) -> None:
        self.requests = Requests()
        self.times: dict[str, list[float]] = {}
        self._began = now()
        self._task = asyncio.create_task(source.run(self._add, lambda: keys, WIDGETS))

    def _add(self, key: ObjectName, cause: Any, priority: int) -> None:
        self.requests(key, cause, priority)
        self.times.setdefault(str(key), []).append(now() - self._began)

    async def __aenter__(self) -> Running:
        await settled()
        return self

    async def __aexit__(self, *error: object) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})

    @property
    def ended(self) -> bool:
        return self._task.done()


@pytest.mark.behaviour("C-33")
async def test_items_are_keys_objects_or_lists_of_them(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def webhooks() -> AsyncIterator[Any]:
        yield "shop/a"
        yield ObjectName("shop", "b")
        yield [widget("c"), "shop/d"]

    async with Running(source_of(webhooks)) as running:
        assert running.requests.taken() == [f"shop/{name}: webhooks source" for name in "abcd"]
        assert running.ended
    assert "source webhooks has ended; it is not restarted" in caplog.text


@pytest.mark.behaviour("C-33")
async def test_a_source_that_fails_is_restarted_with_backoff(caplog: pytest.LogCaptureFixture) -> None:
    class Broker:
        def __init__(self) -> None:
            self.connections: list[float] = []

        async def __aiter__(self) -> AsyncIterator[str]:
            self.connections.append(now())
            yield f"shop/{len(self.connections)}"
            raise ConnectionError("the broker has closed the connection")

    broker = Broker()
    backoff = BackoffOptions(initial=1, factor=3, cap=5)
    source = Source(broker, name="broker", backoff=backoff, random=lambda: 0.0)
    async with Running(source) as running:
        await asyncio.sleep(10)
    assert [at - broker.connections[0] for at in broker.connections] == [0, 1, 4, 9]
    assert running.requests.taken() == [f"shop/{number}: broker source" for number in (1, 2, 3, 4)]
    assert source.errors == 4
    assert "source broker failed; restarting it in 1.0 s" in caplog.text
    assert "the broker has closed the connection" in caplog.text


async def test_an_iterator_of_the_user_is_not_closed() -> None:
    class Stream:
        closed = False

        def __aiter__(self) -> Stream:
            return self

        async def __anext__(self) -> str:
            await asyncio.sleep(1)
            raise ConnectionError

        async def aclose(self) -> None:
            self.closed = True

    stream = Stream()
    async with Running(Source(stream)):
        await asyncio.sleep(10)
    assert not stream.closed


async def test_a_cancellation_inside_of_a_source_is_a_failure() -> None:
    async def items() -> AsyncIterator[str]:
        inner = asyncio.ensure_future(asyncio.sleep(3600))
        inner.cancel()
        await inner
        yield "shop/web"

    source = Source(items, random=lambda: 0.0)
    async with Running(source) as running:
        await asyncio.sleep(1.5)
        assert source.errors == 2
        assert not running.ended


@pytest.mark.behaviour("C-33")
async def test_invalid_items_are_skipped_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def items() -> AsyncIterator[Any]:
        for item in (7, "web", "north/south/web", {"name": "web"}, "shop/web"):
            yield item

    source = Source(items)
    async with Running(source) as running:
        assert running.requests.taken() == ["shop/web: items source"]
    assert source.errors == 4
    (error,) = caplog.records
    assert error.message.startswith("source items returned int; return keys")


@pytest.mark.behaviour("C-33")
async def test_a_cancelled_source_closes_its_iterator() -> None:
    closed: list[float] = []

    async def items() -> AsyncIterator[str]:
        try:
            yield "shop/web"
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(2)
            closed.append(now())

    async with Running(Source(items)) as running:
        begin = now()
    assert closed == [begin + 2]
    assert running.ended


async def test_a_source_that_never_waits_lets_others_run() -> None:
    async def items() -> AsyncIterator[str]:
        try:
            while len(enqueued) < 100_000:
                yield "shop/web"
        finally:
            closed.append(True)

    closed: list[bool] = []
    enqueued: list[ObjectName] = []
    task = asyncio.create_task(Source(items).run(lambda key, cause, priority: enqueued.append(key), lambda: ()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert 0 < len(enqueued) < 100_000
    task.cancel()
    await asyncio.wait({task})
    assert closed


def test_wrong_sources_are_refused() -> None:
    async def items() -> AsyncIterator[str]:
        yield "shop/web"

    async def coroutine() -> None: ...

    with pytest.raises(UsageError, match=r"pass the function items, not items\(\), which cannot be restarted"):
        Source(items())
    for wrong in (coroutine, ["shop/web"], 7):
        with pytest.raises(UsageError, match="expected an async iterable or an async generator function"):
            source_of(wrong)
    for seconds, jitter in ((0, 0.1), (-1, 0.1), (float("inf"), 0.1), (60, -1)):
        with pytest.raises(OptionError, match="Every: expected seconds > 0"):
            Every(seconds, jitter)


KEYS = [ObjectName("shop", f"web-{number}") for number in range(200)]


@pytest.mark.behaviour("C-34")
async def test_each_key_runs_once_in_each_period() -> None:
    async with Running(Every(60, jitter=0), KEYS) as running:
        await asyncio.sleep(179.9)
    assert len(running.times) == len(KEYS)
    for times in running.times.values():
        assert [round(at - times[0], 2) for at in times] == [0, 60, 120]
    assert running.requests.taken()[0].startswith("low shop/web-")
    seconds = [int(times[0]) for times in running.times.values()]
    assert max(seconds.count(second) for second in seconds) <= 10  # of 200 keys in 60 s
    assert len(set(seconds)) >= 50


@pytest.mark.behaviour("C-34")
async def test_jitter_makes_periods_longer_and_never_shorter() -> None:
    draws = iter([0.0, 1.0, 0.5] * 100)
    async with Running(Every(60, jitter=0.1, random=lambda: next(draws)), KEYS[:20]) as running:
        await asyncio.sleep(600)
    for times in running.times.values():
        gaps = [after - before for before, after in pairwise(times)]
        assert len(gaps) >= 8
        assert all(60 <= round(gap, 3) <= 66 for gap in gaps)
        assert len(set(gaps)) > 1


@pytest.mark.behaviour("C-34")
async def test_new_keys_run_and_deleted_ones_do_not() -> None:
    keys = KEYS[:10]
    async with Running(Every(60, jitter=0), keys) as running:
        await asyncio.sleep(59)
        keys[:] = KEYS[10:20]
        running.times.clear()
        await asyncio.sleep(68)
    assert sorted(running.times) == sorted(map(str, KEYS[10:20]))
