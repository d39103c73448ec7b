"""Finalizers, dry runs and the status: the scope of a finalizer, and helpers in runs of a manager, over HTTP."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from aioinformer import Client, Condition, UsageError
from aioinformer.controller import Controller, Manager, Request, Result, RetryAfter, finalizing, set_status
from aioinformer.controller.errors import NothingToDo
from aioinformer.events import FakeRecorder
from tests.support.bench import CLEANUP, WIDGETS, Bench, definition, with_class

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.testing import ApiServer, FaultController


OTHER = "example.org/other"


class FewMetadata(msgspec.Struct, frozen=True):
    name: str
    namespace: str


class Few(msgspec.Struct, frozen=True):
    """A class that keeps neither finalizers nor the deletion."""

    metadata: FewMetadata


def finalizers(bench: Bench) -> list[str]:
    return list(bench.widget()["metadata"].get("finalizers", ()))


async def delete(bench: Bench, *held: str) -> None:
    """Delete the Widget while finalizers hold it."""
    bench.server.patch("widgets", "web", {"metadata": {"finalizers": list(held)}})
    bench.server.delete("widgets", "web")


@pytest.mark.behaviour("C-82")
async def test_finalizer_is_there_before_the_block(bench: Bench) -> None:
    request = await bench.request()
    async with finalizing(request, CLEANUP) as ending:
        assert not ending
        assert finalizers(bench) == [CLEANUP]
        assert request.object is not None
        assert request.object.to_dict() == bench.widget()
    assert bench.writes() == ["patch web"]
    async with finalizing(await bench.request(), CLEANUP) as ending:
        assert not ending
    assert bench.writes() == []


@pytest.mark.behaviour("C-82")
async def test_finalizers_of_others_are_kept(bench: Bench) -> None:
    behind = await bench.request()
    bench.server.patch("widgets", "web", {"metadata": {"finalizers": [OTHER]}})
    async with finalizing(behind, CLEANUP):
        assert finalizers(bench) == [OTHER, CLEANUP]
    bench.server.delete("widgets", "web")
    async with finalizing(request := await bench.request(), CLEANUP) as ending:
        assert ending
    assert finalizers(bench) == [OTHER, CLEANUP]
    await request.finish()
    assert finalizers(bench) == [OTHER]


@pytest.mark.behaviour("C-82")
async def test_nothing_runs_without_the_finalizer(bench: Bench) -> None:
    behind, later = await bench.request(), await bench.request()
    await delete(bench, OTHER)
    for request in (behind, await bench.request(), await bench.request(object=None)):
        with pytest.raises(NothingToDo):
            async with finalizing(request, CLEANUP):
                pytest.fail("the block ran")
    assert finalizers(bench) == [OTHER]
    bench.server.patch("widgets", "web", {"metadata": {"finalizers": []}})  # it vanishes
    with pytest.raises(NothingToDo):
        async with finalizing(later, CLEANUP):
            pytest.fail("the block ran")


@pytest.mark.parametrize(
    "error", [NothingToDo("it was never made"), ExceptionGroup("", [NothingToDo("it was never made")])]
)
async def test_nothing_to_do_in_a_cleanup_is_an_error(bench: Bench, error: Exception) -> None:
    async def reconcile(request: Any) -> None:
        async with finalizing(request, CLEANUP) as ending:
            if ending:
                raise error

    await delete(bench, CLEANUP)
    with pytest.raises(UsageError, match=f"leaves the finalizer {CLEANUP}"):
        await reconcile(await bench.request())
    assert finalizers(bench) == [CLEANUP]


async def test_block_that_ignores_the_deletion_is_an_error(bench: Bench) -> None:
    await delete(bench, CLEANUP)
    with pytest.raises(UsageError, match="if ending:"):
        async with finalizing(await bench.request(), CLEANUP):
            pass
    assert finalizers(bench) == [CLEANUP]


async def test_second_finalizer_of_a_run_is_an_error(bench: Bench) -> None:
    request = await bench.request()
    with pytest.raises(UsageError, match=CLEANUP):
        async with finalizing(request, CLEANUP), finalizing(request, "example.com/more"):
            pytest.fail("the block ran")
    with pytest.raises(UsageError, match="domain"):
        async with finalizing(request, "cleanup"):
            pytest.fail("the block ran")


@pytest.mark.behaviour("C-82")
async def test_class_without_finalizers_overwrites_none(api_server: ApiServer, bench: Bench) -> None:
    api_server.patch("widgets", "web", {"metadata": {"finalizers": [OTHER]}})
    few = Bench(api_server, bench.client(None), with_class(Few))  # type: ignore[arg-type]
    async with finalizing(await few.request(), CLEANUP) as ending:
        assert not ending
    assert finalizers(bench) == [OTHER, CLEANUP]
    api_server.delete("widgets", "web")
    async with finalizing(request := await few.request(), CLEANUP) as ending:
        assert ending
    await request.finish()
    assert finalizers(bench) == [OTHER]


@pytest.mark.behaviour("C-82")
async def test_finalizer_of_a_successor_stays(bench: Bench) -> None:
    few = Bench(bench.server, bench.client(None), with_class(Few))  # type: ignore[arg-type]
    await delete(bench, CLEANUP)
    async with finalizing(request := await few.request(), CLEANUP) as ending:
        assert ending
        bench.server.patch("widgets", "web", {"metadata": {"finalizers": None}})
        bench.server.create("widgets", {"metadata": {"name": "web"}})
        await delete(bench, CLEANUP)
    await request.finish()
    assert finalizers(bench) == [CLEANUP]


READY = Condition("Ready", "True", "There")


@asynccontextmanager
async def run(bench: Bench, reconcile: Any, **options: Any) -> AsyncIterator[Manager]:
    """Run a controller of the Widgets."""
    controller = Controller("widgets", WIDGETS, reconcile, **options)
    async with Manager("test", [controller], client=bench.server.url) as manager, asyncio.timeout(50):
        yield manager


def results_of(manager: Manager) -> dict[str, int]:
    return manager.snapshot()["controllers"]["widgets"]["results"]


async def results(manager: Manager, name: str) -> None:
    """Wait for a result of an attempt."""
    while name not in results_of(manager):  # noqa: ASYNC110 - they have no event
        await asyncio.sleep(0.01)


@pytest.fixture
def ending(bench: Bench) -> Bench:
    """Provide a Widget that is being deleted, with the finalizer of the controller."""
    bench.server.patch("widgets", "web", {"metadata": {"finalizers": [CLEANUP]}})
    bench.server.delete("widgets", "web")
    return bench


@pytest.mark.behaviour("C-106")
@pytest.mark.parametrize(
    "end", [None, Result(), NothingToDo("it is done"), ExceptionGroup("", [NothingToDo("it is done")])]
)
async def test_finalizer_is_removed_after_the_run(ending: Bench, end: Any) -> None:
    seen: list[list[str]] = []

    async def reconcile(request: Request[Any]) -> Result | None:
        async with finalizing(request, CLEANUP) as is_ending:
            assert is_ending
        await asyncio.sleep(0)
        seen.append(finalizers(ending))
        if isinstance(end, Exception):
            raise end
        return end if isinstance(end, Result) else None

    async with run(ending, reconcile) as manager:
        await results(manager, "success")
        assert ending.server.list("widgets") == []
    assert seen == [[CLEANUP]]


@pytest.mark.behaviour("C-106")
@pytest.mark.parametrize(
    ("end", "name"),
    [
        (Result(after=1000), "again"),
        (Result(parked="the bucket is not empty"), "parked"),
        (OSError("the bucket is not empty"), "error"),
        (RetryAfter(1000), "retry_after"),
    ],
)
@pytest.mark.parametrize("within", [True, False])
async def test_finalizer_stays_while_the_cleanup_goes_on(ending: Bench, end: Any, name: str, within: bool) -> None:
    def finish() -> Result | None:
        if isinstance(end, Exception):
            raise end
        return end if isinstance(end, Result) else None

    async def reconcile(request: Request[Any]) -> Result | None:
        async with finalizing(request, CLEANUP) as is_ending:
            if is_ending and within:
                return finish()
        return finish()

    async with run(ending, reconcile) as manager:
        await results(manager, name)
    assert finalizers(ending) == [CLEANUP]


@pytest.mark.behaviour("C-106")
async def test_failed_removal_of_a_finalizer_fails_the_attempt(ending: Bench, api_faults: FaultController) -> None:
    runs = 0

    async def reconcile(request: Request[Any]) -> None:
        nonlocal runs
        async with finalizing(request, CLEANUP) as is_ending:
            assert is_ending
        runs += 1

    await api_faults.start("forbidden", times=1, verbs=("patch",))
    async with run(ending, reconcile) as manager:
        await results(manager, "success")
        assert results_of(manager)["error"] == 1
    assert (runs, ending.server.list("widgets")) == (2, [])


@pytest.mark.behaviour("C-106")
async def test_finalizer_stays_after_a_timeout_that_is_swallowed(ending: Bench) -> None:
    async def reconcile(request: Request[Any]) -> None:
        async with finalizing(request, CLEANUP) as is_ending:
            assert is_ending
        if request.attempt == 1:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                assert finalizers(ending) == [CLEANUP]
        else:
            await asyncio.Event().wait()

    async with run(ending, reconcile, timeout=0.2) as manager:
        await results(manager, "timeout")
        assert finalizers(ending) == [CLEANUP]


# Dry runs.


@pytest.mark.behaviour("C-72")
@pytest.mark.behaviour("C-107")
async def test_dry_run_cleans_nothing_up(ending: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    recorder, outside, seen = FakeRecorder(), ["web", "new"], set()
    ending.server.create("widgets", {"metadata": {"name": "new"}, "spec": {"size": 3}})

    async def reconcile(request: Request[Any]) -> None:
        seen.add((request.name, request.dry_run))
        async with finalizing(request, CLEANUP) as is_ending:
            if is_ending:
                outside.remove(request.name)
                return
            request.event("Made", "it is there")
            await set_status(request, [READY], size=3)

    controller = Controller("widgets", WIDGETS, reconcile)
    manager = Manager("test", [controller], client=ending.server.url, dry_run=True, recorder=recorder)
    ending.writes()
    async with manager, asyncio.timeout(50):
        while results_of(manager).get("success", 0) < 2:  # noqa: ASYNC110 - they have no event
            await asyncio.sleep(0.01)
    assert seen == {("web", True), ("new", True)}
    assert (outside, recorder.events, ending.writes()) == (["web", "new"], [], [])
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0].startswith("manager test: this is a dry run: writes and Events are logged and not sent")
    assert "calls of your own code to other systems" in lines[0]
    assert (
        f"widgets default/web: dry run: the object is being deleted; the cleanup for the finalizer {CLEANUP}"
        in caplog.text
    )
    assert f"widgets default/new: dry run: the finalizer {CLEANUP} is not added" in caplog.text
    assert "dry run: event Normal Made about Widget default/new is not sent: it is there" in lines
    changes = [each.partition(":   ")[2] for each in lines if each.startswith("widgets default/new:   ")]
    assert {"+ status.conditions.0.type", "+ status.size"} <= set(changes)


# The status.


@pytest.mark.behaviour("C-109")
@pytest.mark.parametrize("stated", [(), ("status",)])
async def test_missing_subresource_is_no_deletion(
    api_server: ApiServer, client: Client, stated: tuple[str, ...]
) -> None:
    api_server.create("customresourcedefinitions", definition(subresource=False))
    api_server.create("widgets", {"metadata": {"name": "web"}, "spec": {"size": 3}})
    sizes: asyncio.Queue[int] = asyncio.Queue()

    async def reconcile(request: Request[Any]) -> None:
        widget: Any = request.object
        await set_status(request, size=widget["spec"]["size"])
        sizes.put_nowait(widget["spec"]["size"])

    controller = Controller("widgets", msgspec.structs.replace(WIDGETS, subresources=stated), reconcile)
    async with Manager("test", [controller], client=api_server.url) as manager, asyncio.timeout(50):
        assert await sizes.get() == 3
        api_server.patch("widgets", "web", {"spec": {"size": 4}})
        while await sizes.get() != 4:
            pass
        assert "stale" not in results_of(manager)
    assert api_server.get("widgets", "web")["status"]["size"] == 4
