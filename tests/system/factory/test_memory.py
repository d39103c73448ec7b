"""What the caches take, and the warning at a limit."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import SharedInformerFactory
from aioinformer.cache.objects.record import decode_record
from aioinformer.errors import OptionError
from aioinformer.factory.memory import InformerMemory, MemoryLimit
from aioinformer.testing import ApiServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

OBJECTS, BYTES = 40, 5000


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    """Provide a server with Secrets of a known size."""
    async with ApiServer() as server:
        for number in range(OBJECTS):
            data = {"value": "QUFB" * (BYTES // 4)}
            server.create("secrets", {"metadata": {"name": f"s-{number}", "labels": {"app": "a"}}, "data": data})
        yield server


async def measured(server: ApiServer, read: int = 0, **options: Any) -> InformerMemory:
    async with SharedInformerFactory(server.url) as factory:
        informer: Any = factory.core.v1.secrets.informer(**options)
        (await factory.wait_for_cache_sync(timeout=30)).check()
        kept = [each.data for each in informer.lister().list()[:read]]
        found = await factory.memory()
        assert len(kept) == read
        return found["v1/secrets"]


async def test_objects_bytes_and_reads_are_measured(server: ApiServer) -> None:
    found = await measured(server, read=10)
    assert (found.resource, found.storage, found.objects, found.unread) == (
        "v1/secrets",
        "bytes",
        OBJECTS,
        OBJECTS - 10,
    )
    assert OBJECTS * BYTES < found.bytes < OBJECTS * (BYTES + 1500)
    assert found.metadata_bytes is not None
    assert found.metadata_bytes < OBJECTS * 1500
    assert str(found).startswith(
        "v1/secrets: 40 objects, 0.2 MB, 75 % never read; storage='metadata' would take 0.0 MB"
    )


@pytest.mark.parametrize("storage", ["metadata", "compressed", "dict", "stripped"])
async def test_each_tier_is_measured(server: ApiServer, storage: Any) -> None:
    whole, found = await measured(server), await measured(server, storage=storage)
    assert (found.storage, found.objects) == (storage, OBJECTS)
    assert (found.bytes < whole.bytes / 2) is (storage == "metadata") or storage == "compressed"
    assert (found.unread is None) is (storage in ("metadata", "dict"))


async def test_an_index_takes_memory(server: ApiServer) -> None:
    plain, indexed = await measured(server), await measured(server, indexers={"name": "metadata.name"})
    assert indexed.index_bytes > plain.index_bytes > 0


def taken(resource: str, size: int) -> InformerMemory:
    return InformerMemory(
        resource=resource,
        storage="bytes",
        objects=33_000,
        bytes=size,
        index_bytes=0,
        unread=31_700,
        metadata_bytes=9_000_000,
    )


def test_warning_names_the_largest_caches_and_the_remedy(caplog: pytest.LogCaptureFixture) -> None:
    limit = MemoryLimit(200_000_000)
    limit.check([taken("v1/secrets", 150_000_000)])
    assert caplog.messages == []
    limit.check([taken("v1/pods", 1_000_000), taken("v1/secrets", 214_000_000)])
    limit.check([taken("v1/secrets", 220_000_000)])  # no further warning for this growth
    (message,) = caplog.messages
    assert message.startswith(
        "the caches take 215 MB, more than memory_limit (200 MB): v1/secrets: 33,000 objects, 214 MB, 96 % never read; "
        "storage='metadata' would take 9.0 MB; v1/pods: 33,000 objects, 1.0 MB"
    )
    limit.check([taken("v1/secrets", 250_000_000)])
    assert len(caplog.messages) == 2


def test_caches_that_grow_beyond_the_limit_again_are_warned_of_again(caplog: pytest.LogCaptureFixture) -> None:
    limit = MemoryLimit(200_000_000)
    for megabytes in 300, 150, 210:
        limit.check([taken("v1/secrets", megabytes * 1_000_000)])
    assert [each.partition(",")[0] for each in caplog.messages] == ["the caches take 300 MB", "the caches take 210 MB"]


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure every 10 ms instead of every minute."""
    monkeypatch.setattr("aioinformer.factory.memory.PERIOD", 0.01)


@pytest.mark.usefixtures("often")
async def test_factory_warns_above_its_limit(server: ApiServer, caplog: pytest.LogCaptureFixture) -> None:
    async with SharedInformerFactory(server.url, memory_limit=100_000) as factory:
        factory.core.v1.secrets.informer()
        await factory.wait_for_cache_sync(timeout=30)
        async with asyncio.timeout(30):
            while not caplog.messages:  # noqa: ASYNC110 - a log has no event
                await asyncio.sleep(0.01)
    assert "v1/secrets: 40 objects" in caplog.messages[0]


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("error", [MemoryError(), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")])
async def test_failed_measurement_is_logged_and_ends_nothing(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    measurements: list[Any] = [error, error, taken("v1/secrets", 250_000_000), error]

    async def measure() -> dict[str, InformerMemory]:
        found = measurements.pop(0)
        if isinstance(found, Exception):
            raise found
        return {found.resource: found}

    watching = asyncio.create_task(MemoryLimit(200_000_000).watch(measure), name="memory")
    async with asyncio.timeout(30):
        while measurements:  # noqa: ASYNC110 - a log has no event
            await asyncio.sleep(0.01)
    assert not watching.done()
    watching.cancel()
    await asyncio.wait({watching})
    failed = "the caches could not be measured; the next attempt follows in 0.01 s"
    assert caplog.messages[0] == failed
    assert caplog.messages[1].startswith("the caches take 250 MB")
    assert caplog.messages[2:] == [failed]


async def test_object_without_readable_members_is_measured(server: ApiServer) -> None:
    async with SharedInformerFactory(server.url) as factory:
        informer: Any = factory.core.v1.secrets.informer()
        await factory.wait_for_cache_sync(timeout=30)
        store = informer.get_indexer().store
        store.put("default/odd", decode_record(b'{"metadata":{"name":"odd","namespace":"default"},"\xff":1}'))
        found = (await factory.memory())["v1/secrets"]
    assert found.objects == OBJECTS + 1


@pytest.mark.parametrize("limit", [0, -1, True, "200MB", 1e9])
def test_wrong_limit_is_refused(server: ApiServer, limit: Any) -> None:
    with pytest.raises(OptionError, match="memory_limit must be a number of bytes"):
        SharedInformerFactory(server.url, memory_limit=limit)
