"""Functions of users that raise: what the informer skips, reports and logs."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import ResourceEventHandlerFuncs
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.handlers import CoalescingHandler, FilteringResourceEventHandler, ThreadedHandler
from tests.support.collection import Collection
from tests.support.recorder import Recorder, informer_of
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import Callable


pytestmark = pytest.mark.usefixtures("queue")


def by_owner(pod: Any) -> list[str]:
    return [pod.metadata.labels["owner"]]


NAME = f"index owner ({__name__}.by_owner)"


async def test_state_names_function_and_keys_until_indexed() -> None:
    states: list[str] = []
    async with informer_of("a", "b", states=states, indexers={"owner": by_owner}) as (pods, informer, _):
        degraded = f"degraded: {NAME} raises for 2 objects (default/a, default/b)"
        assert str(informer.state) == states[-1] == degraded
        pods.put("a", metadata={"labels": {"owner": "x"}})
        await settled()
        assert str(informer.state) == states[-1] == f"degraded: {NAME} raises for 1 object (default/b)"
        assert [pod.metadata.name for pod in informer.get_indexer().by_index("owner", "x")] == ["a"]
        pods.delete("b")
        await settled()
        assert str(informer.state) == states[-1] == "watching"
        assert informer.state.healthy


@pytest.mark.parametrize(
    "function",
    [
        lambda pod: [[]],
        lambda pod: [{}],
        lambda pod: "text",
        lambda pod: [1],
        lambda pod: 1 / 0,
        lambda pod: (_ for _ in ()).throw(GeneratorExit),
    ],
    ids=["list", "dict", "text", "number", "raises", "exits"],
)
async def test_invalid_index_values_degrade(function: Callable[[Any], Any]) -> None:
    async with informer_of("a", indexers={"bad": function}) as (_, informer, _):
        assert informer.state.phase == "degraded"
        assert "default/a" in informer.state.reason
        assert [pod.metadata.name for pod in informer.get_indexer().list()] == ["a"]


@pytest.mark.parametrize("sliced", [True, False])
async def test_failing_index_added_later_degrades_at_once(sliced: bool) -> None:
    states: list[str] = []
    async with informer_of("a", states=states) as (_, informer, _):
        if sliced:
            await informer.add_indexers_in_slices({"owner": by_owner})
        else:
            informer.add_indexers({"owner": by_owner})
        assert str(informer.state) == states[-1] == f"degraded: {NAME} raises for 1 object (default/a)"


async def test_failing_index_for_an_object_of_a_later_list_degrades() -> None:
    pods = Collection()
    pods.put("a", metadata={"labels": {"owner": "x"}})
    async with informer_of(pods, indexers={"owner": by_owner}) as (_, informer, _):
        pods.mute()
        pods.put("b")
        pods.unmute()
        pods.expire_watches()
        await informer.wait_for("default/b", timeout=60)
        await settled()
        assert str(informer.state) == f"degraded: {NAME} raises for 1 object (default/b)"


async def test_reader_with_an_invalid_object_degrades_nothing() -> None:
    pods = Collection()
    pods.put("a", metadata={"labels": {"owner": "x"}})
    async with informer_of(pods, indexers={"owner": by_owner}) as (_, informer, _):
        assert informer.get_indexer().index("owner", {"metadata": {"name": "z"}}) == []
        assert informer.state.healthy


@pytest.fixture
def hidden(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The states whose view fails, such as "a 1"."""
    states: set[str] = set()
    to_view: Any = ObjectType.to_view

    def fickle(self: ObjectType[Any]) -> Any:
        def shown(record: Any) -> Any:
            if f"{record.name} {record.resource_version}" in states:
                raise ValueError("not again")
            return to_view.fget(self)(record)

        return shown

    monkeypatch.setattr(ObjectType, "to_view", property(fickle))
    return states


async def test_late_handler_gets_the_others_and_syncs(hidden: set[str]) -> None:
    errors: list[Exception] = []
    async with informer_of("a", "b", "c", watch_error_handler=errors.append) as (_, informer, _):
        hidden.add("b 2")
        recorder = Recorder()
        late = informer.add_event_handler(recorder)
        await late.wait_for_sync()
        assert recorder.received == ["add! a 1", "add! c 3"]
        assert (late.errors, informer.skipped, informer.is_stopped()) == (1, 1, False)
    assert [str(error) for error in errors] == ["default/b cannot be decoded: ValueError"]


async def test_failing_update_is_not_delivered_or_cached(hidden: set[str]) -> None:
    hidden.add("a 2")
    async with informer_of("a") as (pods, informer, received):
        pods.put("a")
        pods.put("b")
        await settled()
        assert sorted(pod.metadata.resource_version for pod in informer.get_store().list()) == ["1", "3"]
        pods.put("a")
        await settled()
    assert received == ["add! a 1", "add b 3", "update a 1 4"]


async def test_failing_old_state_is_left_out(hidden: set[str]) -> None:
    deleted: list[Any] = []
    async with informer_of("a", "b", on_delete=deleted.append) as (pods, _, received):
        hidden |= {"a 1", "b 4"}
        pods.put("a")
        pods.delete("b")
        await settled()
    assert received[2] == "add a 3"
    assert [(gone.key, gone.obj) for gone in deleted] == [("default/b", None)]


def refuse(body: bytes) -> Any:
    raise ValueError


async def test_resync_skips_failing_objects(hidden: set[str]) -> None:
    async with informer_of("a", "b", resync_period=10) as (_, _, received):
        hidden.add("a 1")
        await asyncio.sleep(15)
        assert received[2:] == ["update b 2 2"]


@pytest.mark.parametrize(
    "options",
    [{"indexers": {"owner": by_owner}}, {"transform": by_owner}, {"decoder": refuse}, {"on_add": by_owner}],
    ids=["index function", "transform", "decoder", "handler"],
)
async def test_function_that_raises_for_each_object_logs_few_lines(
    caplog: pytest.LogCaptureFixture, options: dict[str, Any]
) -> None:
    caplog.set_level("INFO")
    async with informer_of(*(f"p{number}" for number in range(300)), **options) as (pods, _, _):
        assert sum(record.exc_info is not None for record in caplog.records) == ("decoder" not in options)
        assert len(caplog.records) < 20
        before = len(caplog.records)
        for number in range(200):
            pods.put(f"q{number}")
            await settled()
        assert len(caplog.records) == before
    if "decoder" not in options:
        assert "raised 499 more errors within 60 s" in caplog.text


async def test_doubled_number_of_undecodable_objects_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with informer_of("a", transform=by_owner) as (pods, _, _):
        for number in range(9):
            pods.put(f"p{number}")
            await settled()
    logged = [record.getMessage() for record in caplog.records if "degraded" in record.getMessage()]
    assert [line.split(": ")[2].split()[0] for line in logged] == ["1", "2", "4", "8"]


def leave(*arguments: Any) -> Any:
    raise GeneratorExit


async def leave_later(*arguments: Any) -> None:
    await asyncio.sleep(0)
    raise GeneratorExit


async def test_other_user_functions_fail_alone() -> None:
    async with informer_of("a", indexers={"bad": leave}, watch_error_handler=leave) as (pods, informer, received):
        informer.add_state_handler(leave)
        with pytest.raises(GeneratorExit):
            await informer.wait_for("default/b", leave)
        pods.end_watches(ConnectionError())
        pods.put("b")
        await asyncio.sleep(60)
        assert received == ["add! a 1", "add b 2"]


@pytest.mark.parametrize("option", ["transform", "decoder"])
async def test_object_that_a_function_exits_for_is_refused(option: str) -> None:
    async with informer_of("a", **{option: leave}) as (_, informer, _):
        assert informer.get_indexer().list_keys() == []
        assert "default/a" in informer.state.reason


def test_raising_threaded_handler_gets_the_next_event() -> None:
    async def run() -> int:
        with ThreadPoolExecutor(1) as executor:
            handler: ThreadedHandler[Any] = ThreadedHandler(ResourceEventHandlerFuncs(on_add=leave), executor)
            async with informer_of("a", "b") as (_, informer, _):
                registration = informer.add_event_handler(handler)
                await registration.wait_for_sync()
        return registration.errors

    assert asyncio.run(run()) == 2


def failed() -> asyncio.Future[None]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    loop.call_soon(future.set_exception, GeneratorExit())
    return future


async def await_failed_future(*arguments: Any) -> None:
    await failed()


async def await_it_deep_down(*arguments: Any) -> None:
    await asyncio.wait_for(failed(), 5)


@pytest.mark.parametrize(
    "handler",
    [
        *(
            ResourceEventHandlerFuncs(on_add=each)
            for each in (leave, leave_later, await_failed_future, await_it_deep_down)
        ),
        FilteringResourceEventHandler(leave, ResourceEventHandlerFuncs(on_add=print)),
        FilteringResourceEventHandler(lambda pod: True, ResourceEventHandlerFuncs(on_add=leave_later)),
    ],
)
@pytest.mark.parametrize("coalescing", [False, True])
async def test_handler_after_a_generator_exit_gets_the_next_event(handler: Any, coalescing: bool) -> None:
    async with CoalescingHandler(handler) as latest, informer_of("a", "b") as (pods, informer, received):
        raising = informer.add_event_handler(latest if coalescing else handler)
        await raising.wait_for_sync()
        pods.put("c")
        await asyncio.sleep(5)
        assert (latest if coalescing else raising).errors == 3
        assert received == ["add! a 1", "add! b 2", "add c 3"]
        assert informer.state.healthy
