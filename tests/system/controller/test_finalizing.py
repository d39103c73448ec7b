"""The scope of a finalizer: it is there before the first side effect, and until the cleanup is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from aioinformer import UsageError
from aioinformer.controller import NothingToDo, RetryAfter, finalizing
from tests.support.bench import CLEANUP, Bench, with_class

if TYPE_CHECKING:
    from aioinformer.testing import ApiServer

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
async def test_object_is_gone_after_the_cleanup(bench: Bench) -> None:
    async def reconcile(request: Any) -> bool:
        async with finalizing(request, CLEANUP) as ending:
            if ending:
                assert finalizers(bench) == [CLEANUP]
                return True
        return False

    assert not await reconcile(await bench.request())
    bench.server.delete("widgets", "web")
    request = await bench.request()
    assert await reconcile(request)
    await request.finish()
    assert bench.server.list("widgets") == []


@pytest.mark.behaviour("C-82")
@pytest.mark.parametrize("error", [RetryAfter(5), OSError("the bucket is not empty")])
async def test_finalizer_stays_if_the_cleanup_fails(bench: Bench, error: Exception) -> None:
    async def reconcile(request: Any) -> None:
        async with finalizing(request, CLEANUP) as ending:
            if ending:
                raise error

    await delete(bench, CLEANUP)
    with pytest.raises(type(error)):
        await reconcile(request := await bench.request())
    await request.finish()
    assert finalizers(bench) == [CLEANUP]


@pytest.mark.behaviour("C-82")
async def test_nothing_runs_without_the_finalizer(bench: Bench) -> None:
    behind = await bench.request()
    await delete(bench, OTHER)
    for request in (behind, await bench.request(), await bench.request(object=None)):
        with pytest.raises(NothingToDo):
            async with finalizing(request, CLEANUP):
                pytest.fail("the block ran")
    assert finalizers(bench) == [OTHER]


@pytest.mark.behaviour("C-82")
async def test_object_that_vanished_is_nothing_to_do(bench: Bench) -> None:
    behind = await bench.request()
    bench.server.delete("widgets", "web")
    with pytest.raises(NothingToDo):
        async with finalizing(behind, CLEANUP):
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
