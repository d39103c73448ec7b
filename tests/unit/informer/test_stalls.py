"""Functions that block the event loop are logged; awaiting functions are not."""

from __future__ import annotations

import asyncio
import functools
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import concurrency as slices
from aioinformer.handlers import stalls
from aioinformer.handlers.coalescing import CoalescingHandler
from aioinformer.handlers.notifications import FilteringResourceEventHandler
from aioinformer.handlers.threaded import ThreadedHandler
from aioinformer.informer.shared_informer import SharedIndexInformer
from tests.support.collection import Collection
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("queue")


class Blocks:
    """A clock that advances only when something blocks the loop."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def block(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Blocks:
    clock = Blocks()
    monkeypatch.setattr(stalls, "perf_counter", clock)
    monkeypatch.setattr(slices, "perf_counter", clock)
    return clock


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    return lambda: [record.getMessage() for record in caplog.records if record.name == "aioinformer.handlers"]


def of(function: Any) -> str:
    return f"at shell/test_stalls.py:{function.__code__.co_firstlineno}"


async def test_blocking_handler_is_logged(clock: Blocks, warnings: Callable[[], list[str]]) -> None:
    def on_add(obj: Any) -> None:
        clock.block(0.25 if obj.metadata.name == "b" else 0.0)

    informer = SharedIndexInformer(Collection("a", "b", "c"))
    informer.add_event_handler(on_add=on_add)
    async with informer:
        await settled()
    (line,) = warnings()
    assert line.startswith(
        f"informer of pods: handler 1 (on_add {of(on_add)}) blocked the event loop for 0.25 s with d"
    )
    assert "default/b" in line


@pytest.mark.parametrize("before", [0, 1, 2], ids=["no await", "one await", "two awaits"])
async def test_blocking_coroutine_is_logged_at_each_step(
    clock: Blocks, warnings: Callable[[], list[str]], before: int
) -> None:
    async def on_add(obj: Any) -> None:
        for _ in range(before):
            await asyncio.sleep(1)
        clock.block(0.25 if obj.metadata.name == "b" else 0.0)
        await asyncio.sleep(1)

    informer = SharedIndexInformer(Collection("a", "b", "c"))
    informer.add_event_handler(on_add=on_add)
    async with informer:
        await asyncio.sleep(20)
    (line,) = warnings()
    assert of(on_add) in line
    assert "0.25 s with default/b" in line


async def test_awaiting_is_not_blocking(warnings: Callable[[], list[str]]) -> None:
    async def on_add(obj: Any) -> None:
        await asyncio.sleep(20)

    informer = SharedIndexInformer(Collection("a", "b"))
    registration = informer.add_event_handler(on_add=on_add)
    async with informer:
        await registration.wait_for_sync()
    assert registration.longest_call == pytest.approx(20, abs=0.1)
    assert warnings() == []


async def test_many_quick_calls_are_not_logged(clock: Blocks, warnings: Callable[[], list[str]]) -> None:
    informer = SharedIndexInformer(Collection(*"abcdefgh"))
    informer.add_event_handler(on_add=lambda obj: clock.block(0.01))
    async with informer:
        await settled()
    assert warnings() == []


async def test_handler_is_logged_once_a_minute(clock: Blocks, warnings: Callable[[], list[str]]) -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    informer.add_event_handler(on_add=lambda obj: None, on_update=lambda old, new: clock.block(0.5))
    async with informer:
        for _ in range(240):
            await informer.wait_for_resource_version(pods.put("a"))
            await settled()
    assert len(warnings()) == 2


async def test_log_names_the_called_function(clock: Blocks, warnings: Callable[[], list[str]]) -> None:
    class Shop:
        def on_add(self, obj: Any) -> None: ...

        def on_update(self, old: Any, new: Any) -> None: ...

        def on_delete(self, obj: Any) -> None:
            clock.block(1)

    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    informer.add_event_handler(FilteringResourceEventHandler(lambda obj: True, Shop()))
    async with informer:
        await informer.wait_for_sync()
        pods.delete("a")
        await settled()
    (line,) = warnings()
    assert f"handler 1 (Shop.on_add {of(Shop.on_add)}), in Shop.on_delete {of(Shop.on_delete)}, blocked" in line


def decoder(clock: Blocks, raw: bytes) -> bytes:
    clock.block(0.3)
    return raw


def index(clock: Blocks, obj: Any) -> list[str]:
    clock.block(0.3)
    return []


def transform(clock: Blocks, obj: Any) -> Any:
    clock.block(0.3)
    return obj


@pytest.mark.parametrize(
    ("what", "function", "options"),
    [
        ("transform transform", transform, lambda part: {"transform": part}),
        ("decoder decoder", decoder, lambda part: {"decoder": part}),
        ("index function 'app', index", index, lambda part: {"indexers": {"app": part}}),
    ],
    ids=["transform", "decoder", "index function"],
)
async def test_blocking_functions_of_objects_are_logged(
    clock: Blocks, warnings: Callable[[], list[str]], what: str, function: Any, options: Any
) -> None:
    informer = SharedIndexInformer(Collection("a", "b"), **options(functools.partial(function, clock)))
    informer.add_event_handler(on_add=lambda obj: None)
    async with informer:
        await settled()
    (line,) = warnings()
    assert f"informer of pods: {what} {of(function)}" in line
    assert "blocked the event loop for 0.30 s with default/a" in line


async def test_slow_decoder_is_not_attributed_to_the_handler(clock: Blocks, warnings: Callable[[], list[str]]) -> None:
    armed = False

    def decode(raw: bytes) -> bytes:
        clock.block(0.3 if armed else 0)
        return bytes(raw)

    informer: SharedIndexInformer[Any] = SharedIndexInformer(Collection("a"), decoder=decode)
    lister = informer.lister()

    async def on_add(obj: Any) -> None:
        nonlocal armed
        armed = True
        await asyncio.sleep(0)
        lister.get("default/a")

    informer.add_event_handler(on_add=on_add)
    async with informer:
        await settled()
    assert [line for line in warnings() if "handler" in line] == []


async def test_threaded_handler_does_not_block(clock: Blocks, warnings: Callable[[], list[str]]) -> None:
    informer: SharedIndexInformer[Any] = SharedIndexInformer(Collection())
    with ThreadPoolExecutor(1) as executor:

        class Shop:
            def on_add(self, obj: Any) -> None: ...

        registration = informer.add_event_handler(ThreadedHandler(Shop(), executor))
        assert f"(Shop.on_add {of(Shop.on_add)})" in registration.name
    assert warnings() == []


async def test_blocking_coalescing_handler_is_logged(clock: Blocks, warnings: Callable[[], list[str]]) -> None:
    def on_add(obj: Any) -> None:
        clock.block(0.4)

    class Shop:
        pass

    shop = Shop()
    shop.on_add = on_add  # type: ignore[attr-defined]
    async with CoalescingHandler(shop) as latest:
        informer = SharedIndexInformer(Collection("a"))
        registration = informer.add_event_handler(latest)
        async with informer:
            await settled()
            await settled()
    assert f"(on_add {of(on_add)})" in registration.name
    (line,) = warnings()
    assert f"on_add {of(on_add)}" in line
    assert "default/a" in line
