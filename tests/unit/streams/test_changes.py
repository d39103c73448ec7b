"""`informer.changes()`: kinds, views, cursors and the life of a hub."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import itertools
import logging
import tracemalloc
from functools import partial
from typing import Annotated, Any

import msgspec
import pydantic
import pytest

from aioinformer import RunOptions, SharedIndexInformer
from aioinformer.errors import InformerStopped, SelectorError, UsageError
from aioinformer.models import core_v1
from aioinformer.streams import Changes, StreamChange, hub, hubs
from tests.support.collection import Collection
from tests.support.limits import limit_hubs
from tests.support.virtual_time import settled


def text_of(change: StreamChange[Any]) -> str:
    name = change.key.removeprefix("default/")
    return " ".join(str(part) for part in (change.kind, name, change.object) if part not in ("", None))


async def take(changes: Changes[Any], count: int) -> list[str]:
    async with asyncio.timeout(10):
        return [text_of(await anext(changes)) for _ in range(count)]


async def nothing_follows(changes: Changes[Any]) -> bool:
    try:
        async with asyncio.timeout(1):
            await anext(changes)
    except TimeoutError:
        return True
    return False


@pytest.mark.usefixtures("queue")
async def test_cached_objects_then_synced_then_changes() -> None:
    pods = Collection("a", "b")
    async with SharedIndexInformer(pods) as informer, informer.changes() as changes:
        assert await take(changes, 3) == ["put a 1", "put b 2", "synced"]
        pods.put("a")
        pods.put("c")
        assert await take(changes, 2) == ["put a 3", "put c 4"]
        pods.delete("a")
        assert await take(changes, 1) == ["delete a"]


async def test_empty_collection_is_synced() -> None:
    async with SharedIndexInformer(Collection()) as informer, informer.changes() as changes:
        assert await take(changes, 1) == ["synced"]


async def test_reader_before_the_start_waits_for_the_sync() -> None:
    informer = SharedIndexInformer(Collection("a"))
    async with informer.changes() as changes:
        assert await nothing_follows(changes)
        async with informer:
            assert await take(changes, 2) == ["put a 1", "synced"]
        with pytest.raises(StopAsyncIteration):
            await anext(changes)


async def test_unread_changes_of_an_object_are_one() -> None:
    pods = Collection("a", "b")
    async with SharedIndexInformer(pods) as informer, informer.changes() as changes:
        await take(changes, 3)
        for _ in range(50):
            pods.put("a")
            pods.put("b")
            await settled()
        pods.put("came")
        pods.delete("came")
        await settled()
        assert await take(changes, 2) == ["put a 101", "put b 102"]
        assert await nothing_follows(changes)


async def test_missed_deletion_is_a_delete() -> None:
    pods = Collection("a", "b")
    options = RunOptions(streaming_list=False)
    async with SharedIndexInformer(pods, options=options) as informer, informer.changes() as changes:
        await take(changes, 3)
        pods.unseen()
        pods.delete("a")
        pods.expire_watches()
        assert await take(changes, 1) == ["delete a"]


async def test_objects_enter_and_leave_the_selection() -> None:
    pods = Collection()
    pods.put("a", metadata={"labels": {"app": "web"}})
    pods.put("b", metadata={"labels": {"app": "db"}})
    pods.put("c", "other", metadata={"labels": {"app": "web"}})
    informer = SharedIndexInformer(pods)
    async with informer, informer.changes(namespace="default", selector="app=web") as changes:
        assert await take(changes, 2) == ["put a 1", "synced"]
        pods.put("a", metadata={"labels": {"app": "db"}})
        pods.put("b", metadata={"labels": {"app": "web"}})
        assert await take(changes, 2) == ["delete a", "put b 5"]
        pods.delete("a")
        pods.put("c", "other", metadata={"labels": {"app": "db"}})
        assert await nothing_follows(changes)


def phase(pod: Any) -> str | None:
    return pod.status.phase if pod.status is not None else None


async def test_readers_at_one_position_get_their_own_selections() -> None:
    pods = Collection()
    pods.put("x", "a")
    pods.put("y", "b", metadata={"labels": {"app": "web"}})
    async with (
        SharedIndexInformer(pods) as informer,
        informer.changes(namespace="a") as first,
        informer.changes(namespace="b") as second,
        informer.changes(selector="app=web") as third,
    ):
        assert await take(first, 2) == ["put a/x 1", "synced"]
        assert await take(second, 2) == await take(third, 2) == ["put b/y 2", "synced"]
        pods.put("x", "a")
        pods.delete("y", "b")
        assert await take(first, 1) == ["put a/x 3"]
        assert await take(second, 1) == await take(third, 1) == ["delete b/y"]


async def test_object_that_came_in_a_part_and_went_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_hubs(monkeypatch, batch=1)
    pods = Collection()
    async with SharedIndexInformer(pods) as informer, informer.changes() as slow, informer.changes() as quick:
        assert await take(slow, 1) == await take(quick, 1) == ["synced"]
        pods.put("a")
        pods.put("b")
        await settled()
        assert await take(slow, 1) == ["put a 1"]
        assert await take(quick, 2) == ["put a 1", "put b 2"]
        pods.delete("a")
        assert await take(quick, 1) == ["delete a"]
        assert await take(slow, 2) == ["put b 2", "delete a"]


async def test_equal_view_is_no_change_and_none_leaves_an_object_out() -> None:
    pods = Collection("without")
    pods.put("a", status={"phase": "Running"})
    async with SharedIndexInformer(pods) as informer, informer.changes(view=phase) as changes:
        assert await take(changes, 2) == ["put a Running", "synced"]
        pods.put("a", status={"phase": "Running", "message": "no part of the view"})
        pods.put("a", status={"phase": "Running"}, spec={"nodeName": "n"})
        assert await nothing_follows(changes)
        pods.put("a")
        assert await take(changes, 1) == ["delete a"]


async def test_view_is_called_once_for_all_readers() -> None:
    called: list[str] = []

    def view(pod: Any) -> str:
        called.append(pod.metadata.name)
        return str(pod.metadata.resource_version)

    pods = Collection("a")
    async with SharedIndexInformer(pods) as informer, informer.changes(view=view) as one:
        await take(one, 2)
        async with informer.changes(view=view) as two, informer.changes(view=view, selector="!x") as three:
            await take(two, 2)
            await take(three, 2)
            pods.put("a")
            for each in (one, two, three):
                assert await take(each, 1) == ["put a 2"]
    assert called == ["a", "a"]


class StructRow(msgspec.Struct):
    node: Annotated[str | None, "spec.nodeName"] = None
    app: Annotated[str | None, "metadata.labels.app"] = None


@dataclasses.dataclass(frozen=True)
class DataRow:
    node: Annotated[str | None, "spec.nodeName"] = None
    app: Annotated[str | None, "metadata.labels.app"] = None


class PydanticRow(pydantic.BaseModel):
    node: Annotated[str | None, "spec.nodeName"] = None
    app: Annotated[str | None, "metadata.labels.app"] = None


@pytest.mark.parametrize("row", [StructRow, DataRow, PydanticRow])
async def test_class_as_a_view_has_the_values_at_its_paths(row: Any) -> None:
    pods = Collection("empty")
    pods.put("a", spec={"nodeName": "n1"}, metadata={"labels": {"app": "web"}})
    async with SharedIndexInformer(pods) as informer, informer.changes(view=row) as changes:
        first, second = [await anext(changes) for _ in range(2)]
        assert (first.object, second.object) == (row(), row(node="n1", app="web"))
        assert isinstance(second.object, row)


async def test_view_class_with_wrong_fields_is_refused() -> None:
    class Row(msgspec.Struct):
        node: str | None

    class Empty(msgspec.Struct):
        pass

    async def coroutine(pod: Any) -> str:
        return str(pod)

    informer: SharedIndexInformer[Any] = SharedIndexInformer(Collection())
    with pytest.raises(UsageError, match=r'no member \'node\'.*node: Annotated\[..., "spec.node"\]'):
        informer.changes(view=Row)
    with pytest.raises(UsageError, match="no field"):
        informer.changes(view=Empty)
    with pytest.raises(UsageError, match="expected a msgspec, dataclass or pydantic class"):
        informer.changes(view=int)
    with pytest.raises(UsageError, match="coroutine"):
        informer.changes(view=coroutine)
    with pytest.raises(SelectorError, match="selector"):
        informer.changes(selector="a=(")
    with pytest.raises(UsageError, match="namespace"):
        informer.changes(namespace="A B")
    with pytest.raises(UsageError, match="empty"):
        informer.changes(namespace=[])
    nodes = SharedIndexInformer(Collection(resource=_nodes()))
    with pytest.raises(UsageError, match="cluster-scoped"):
        nodes.changes(namespace="default")


def _nodes() -> Any:
    return core_v1.NODES


async def test_failing_view_is_logged_once_and_the_object_is_deleted(caplog: pytest.LogCaptureFixture) -> None:
    def view(pod: Any) -> str:
        return str(pod.status.phase)

    pods = Collection()
    pods.put("a", status={"phase": "Running"})
    async with SharedIndexInformer(pods) as informer, informer.changes(view=view) as changes:
        await take(changes, 2)
        pods.put("a")
        assert await take(changes, 1) == ["delete a"]
        for _ in range(20):
            pods.put("a")
            await settled()
        pods.put("a", status={"phase": "Failed"})
        assert await take(changes, 1) == ["put a Failed"]
    lines = [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR]
    assert len(lines) == 1
    assert "view view at" in lines[0]
    assert "default/a" in lines[0]


async def test_cursor_continues_without_a_gap() -> None:
    pods = Collection("a", "b", "c")
    async with SharedIndexInformer(pods) as informer:
        async with informer.changes() as changes:
            for _ in range(4):
                last = await anext(changes)
        pods.put("a")
        pods.delete("b")
        pods.put("came")
        pods.delete("came")
        await settled()
        async with informer.changes(after=last.cursor) as changes:
            assert await take(changes, 3) == ["put a 4", "delete b", "synced"]


async def test_cursor_within_the_first_objects_continues_there() -> None:
    pods = Collection("a", "b", "c")
    async with SharedIndexInformer(pods) as informer:
        await informer.wait_for_sync()
        async with informer.changes() as changes:
            first = await anext(changes)
        pods.put("b")
        pods.delete("c")
        await settled()
        async with informer.changes(after=first.cursor) as changes:
            assert await take(changes, 3) == ["put b 4", "delete c", "synced"]


async def test_wrong_cursor_is_a_reset() -> None:
    pods = Collection("a")
    whole = ["reset", "put a 1", "synced"]
    async with SharedIndexInformer(pods) as informer, SharedIndexInformer(pods) as other:
        async with informer.changes() as changes:
            await anext(changes)
            synced = await anext(changes)
        for made in (
            informer.changes(after="nonsense"),
            informer.changes(after="ä" * 70),
            informer.changes(after=synced.cursor, selector="!x"),
            informer.changes(after=synced.cursor, namespace="default"),
            informer.changes(after=synced.cursor, view=lambda pod: pod.metadata.resource_version),
            other.changes(after=synced.cursor),
        ):
            async with made as changes:
                assert await take(changes, 3) == whole


async def test_reader_that_is_too_far_behind_is_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_hubs(monkeypatch, limit=3000)
    pods = Collection(*(f"p{number}" for number in range(20)))
    async with SharedIndexInformer(pods) as informer, informer.changes() as changes, informer.changes() as other:
        await take(changes, 21)
        for number in range(19):
            pods.delete(f"p{number}")
        assert len(await take(other, 2)) == 2
        await settled()
        assert await take(changes, 3) == ["reset", "put p19 20", "synced"]


async def test_log_is_kept_for_a_while_and_then_costs_nothing() -> None:
    pods = Collection("a")
    async with SharedIndexInformer(pods) as informer:
        assert not informer.observers
        async with informer.changes() as changes:
            await anext(changes)
            synced = await anext(changes)
        await asyncio.sleep(hubs.LINGER - 1)
        assert informer.observers
        pods.put("a")
        await settled()
        async with informer.changes(after=synced.cursor) as changes:
            assert await take(changes, 2) == ["put a 2", "synced"]
        await asyncio.sleep(hubs.LINGER + 1)
        assert not informer.observers
        async with informer.changes(after=synced.cursor) as changes:
            assert await take(changes, 3) == ["reset", "put a 2", "synced"]


async def test_views_that_are_made_anew_do_not_pile_up() -> None:
    async with SharedIndexInformer(Collection("a")) as informer:
        for _ in range(40):
            async with informer.changes(view=lambda pod: 1) as changes:
                await take(changes, 2)
        assert len(informer.observers) <= 8


async def test_cancelled_reader_leaves_the_others_alone() -> None:
    pods = Collection("a")
    async with SharedIndexInformer(pods) as informer, informer.changes() as changes:
        await take(changes, 2)

        async def read() -> None:
            async with informer.changes() as other:
                async for _ in other:
                    pass

        reading = [asyncio.create_task(read(), name="reader") for _ in range(3)]
        await settled()
        reading[1].cancel()
        await settled()
        pods.put("a")
        assert await take(changes, 1) == ["put a 2"]
        for task in reading:
            task.cancel()
        await asyncio.wait(reading)


async def test_misuse_is_a_clear_error() -> None:
    informer = SharedIndexInformer(Collection("a"))
    changes = informer.changes()
    with pytest.raises(UsageError, match="enter the changes first"):
        aiter(changes)
    async with informer:
        async with changes:
            pass
        with pytest.raises(UsageError, match="once"):
            async with changes:
                pass
    with pytest.raises(InformerStopped, match="stopped"):
        async with informer.changes():
            pass


async def test_model_without_metadata_is_followed() -> None:
    class Body(msgspec.Struct):
        status: dict[str, str] = {}

    pods = Collection()
    pods.put("a", status={"phase": "Running"})
    informer = SharedIndexInformer(pods, decoder=Body)
    async with informer, informer.changes(view=lambda body: body.status.get("phase")) as changes:
        assert await take(changes, 2) == ["put a Running", "synced"]
        pods.put("a", status={"phase": "Failed"})
        assert await take(changes, 1) == ["put a Failed"]
        pods.delete("a")
        assert await take(changes, 1) == ["delete a"]


async def test_idle_reader_takes_two_kib_at_most() -> None:
    count = 1000

    async def read(informer: SharedIndexInformer[Any]) -> None:
        async with informer.changes() as changes:
            async for _ in changes:
                pass

    async def wait() -> None:
        await asyncio.get_running_loop().create_future()

    async with SharedIndexInformer(Collection("a")) as informer, informer.changes() as first:
        await take(first, 2)
        running = len(asyncio.all_tasks())
        taken = []
        tasks: list[asyncio.Task[None]] = []
        tracemalloc.start()
        try:
            for make in (wait, partial(read, informer)):
                gc.collect()
                before = tracemalloc.get_traced_memory()[0]
                tasks += [asyncio.create_task(make(), name="reader") for _ in range(count)]
                await asyncio.sleep(0.1)
                gc.collect()
                taken.append(tracemalloc.get_traced_memory()[0] - before)
        finally:
            tracemalloc.stop()
        assert len(asyncio.all_tasks()) == running + 2 * count  # no task of a reader's own
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    assert (taken[1] - taken[0]) / count <= 2048


async def test_parts_of_many_selections_do_not_pile_up() -> None:
    async with SharedIndexInformer(Collection("a")) as informer, informer.changes() as changes:
        await take(changes, 2)
        for number in range(500):
            async with informer.changes(selector=f"app!=x{number}") as other:
                await take(other, 2)
        kept = [each for each in gc.get_objects() if isinstance(each, hub.Part)]
        assert len(kept) < 200


async def test_reader_misses_nothing_after_a_failure_of_the_log() -> None:
    left = itertools.count(1, -1)

    def fail(record: logging.LogRecord) -> bool:
        if next(left) > 0:
            raise ValueError("a filter of the log raises")
        return True

    def view(pod: Any) -> str:
        return str(pod.status.phase)

    pods = Collection()
    pods.put("b", status={"phase": "Running"})
    log = logging.getLogger("aioinformer.streams")
    log.addFilter(fail)
    try:
        async with SharedIndexInformer(pods) as informer, informer.changes(view=view) as changes:
            await take(changes, 2)
            reading = asyncio.create_task(take(changes, 2))
            await settled()
            with pods.at_once():
                pods.put("b")  # the view raises, and so does the log
                pods.put("c", status={"phase": "Pending"})
            assert sorted(await reading) == ["delete b", "put c Pending"]
    finally:
        log.removeFilter(fail)
