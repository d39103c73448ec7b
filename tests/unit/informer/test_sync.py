"""Waiting until several caches and handlers have synced."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import pytest

from aioinformer.errors import InformerStopped, OptionError, TransportError, UsageError
from aioinformer.factory.factory import SharedInformerFactory
from aioinformer.handlers.synctrack import SingleFileTracker
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.informer.sync import SyncResult, wait_for_cache_sync
from tests.support.cluster import Cluster
from tests.support.collection import Collection
from tests.support.recorder import Recorder


def informers() -> tuple[SharedIndexInformer[Any], SharedIndexInformer[Any], Collection]:
    """Return an informer that syncs, and one whose server does not answer."""
    silent = Collection("b")
    silent.gate.clear()
    return SharedIndexInformer(Collection("a"), name="quick"), SharedIndexInformer(silent, name="slow"), silent


@pytest.mark.conformance("WAIT-01")
async def test_wait_ends_with_the_last_sync() -> None:
    quick, slow, server = informers()
    handler = slow.add_event_handler(Recorder(pace=5))
    async with quick, slow:
        wait = asyncio.create_task(wait_for_cache_sync(quick, slow, handler))
        await asyncio.sleep(10)
        assert not wait.done()
        server.gate.set()
        await asyncio.sleep(1)
        assert slow.has_synced()
        assert not wait.done()
        assert await wait
    assert handler.has_synced()


@pytest.mark.conformance("WAIT-02", "WAIT-03")
async def test_timeout_names_and_logs_what_is_pending(caplog: pytest.LogCaptureFixture) -> None:
    quick, slow, _ = informers()
    other = SingleFileTracker("another")
    async with quick, slow:
        result = await wait_for_cache_sync(slow, quick, other, name="controller", timeout=5)
    assert result == {"slow": False, "quick": True, "another": False}
    assert (result.synced, result.pending) == (("quick",), ("another", "slow"))
    assert not result
    warnings = [record.getMessage() for record in caplog.records if record.name == "aioinformer.informer"]
    assert warnings == ["controller: not synced within 5 s: another, slow"]


@pytest.mark.conformance("WAIT-02", "WAIT-03", "RF-19")
async def test_named_wait_logs_each_sync(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "aioinformer.informer")
    done, later = SingleFileTracker("done"), SingleFileTracker("later")
    done.upstream_has_synced()
    wait = asyncio.create_task(wait_for_cache_sync(later, done, name="controller"))
    await asyncio.sleep(1)
    later.upstream_has_synced()
    await wait
    assert caplog.messages == ["controller: done has synced", "controller: later has synced"]


@pytest.mark.conformance("WAIT-03")
async def test_synced_informers_count_with_a_timeout_of_zero() -> None:
    done = SingleFileTracker()
    done.upstream_has_synced()
    assert await wait_for_cache_sync(done, timeout=0)
    assert not await wait_for_cache_sync(done, SingleFileTracker("never"), timeout=0)


@pytest.mark.conformance("WAIT-03")
async def test_wait_for_nothing_has_synced() -> None:
    assert await wait_for_cache_sync()


@pytest.mark.conformance("WAIT-03")
async def test_wait_takes_no_longer_than_its_informers() -> None:
    tracker = SingleFileTracker()
    loop = asyncio.get_running_loop()
    loop.call_later(0.03, tracker.upstream_has_synced)
    began = loop.time()
    await wait_for_cache_sync(tracker, timeout=100)
    assert loop.time() - began == pytest.approx(0.03)


async def test_stopped_informer_fails_the_wait() -> None:
    quick, slow, _ = informers()
    async with quick:
        wait = asyncio.create_task(wait_for_cache_sync(quick, slow))
        async with slow:
            await asyncio.sleep(1)
        with pytest.raises(InformerStopped, match="slow has stopped"):
            await wait


async def test_wait_can_be_cancelled() -> None:
    wait = asyncio.create_task(wait_for_cache_sync(SingleFileTracker(), SingleFileTracker()))
    await asyncio.sleep(1)
    wait.cancel()
    with pytest.raises(asyncio.CancelledError):
        await wait


@pytest.mark.conformance("WAIT-04")
def test_check_raises_with_the_pending_names() -> None:
    SyncResult({"a": True}).check()
    with pytest.raises(TimeoutError, match=r"not synced in time: b, c$"):
        SyncResult({"c": False, "a": True, "b": False}).check()


@pytest.mark.parametrize(
    ("choose", "remedy"),
    [
        (lambda informer: informer.has_synced, "not method; pass the informer itself, not its has_synced"),
        (lambda informer: informer.has_synced(), "not bool; pass the informer itself, not its has_synced"),
        (lambda informer: "pods", r"not str; pass the result of informer\(\) or add_event_handler\(\)"),
        (lambda informer: SharedInformerFactory(Cluster()), r"call its own wait_for_cache_sync\(\)"),
    ],
)
async def test_invalid_argument_is_refused(choose: Any, remedy: str) -> None:
    quick, _, _ = informers()
    with pytest.raises(UsageError, match=remedy):
        await wait_for_cache_sync(choose(quick))


async def test_invalid_timeout_is_refused() -> None:
    quick, _, _ = informers()
    timeout: Any = "5s"
    with pytest.raises(OptionError, match="timeout must be a number of seconds, 0 or more, not '5s'"):
        await wait_for_cache_sync(quick, timeout=timeout)


async def test_pending_informers_have_reasons(caplog: pytest.LogCaptureFixture) -> None:
    refusing = Collection("a")
    refusing.refusals.extend(TransportError("api:6443 refused the connection") for _ in range(50))
    async with SharedIndexInformer(refusing, name="pods") as informer:
        result = await wait_for_cache_sync(informer, timeout=5)
    assert result == {"pods": False}
    reason = r"pods \(backing_off: api:6443 refused the connection\)$"
    with pytest.raises(TimeoutError, match=f"not synced in time: {reason}"):
        result.check()
    assert re.search(f"not synced within 5 s: {reason}", caplog.text, re.MULTILINE)
