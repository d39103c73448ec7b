"""The informer continues after failures of the server and of its transport, after bugs, and when memory runs out."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import Indexer, RunOptions, SharedIndexInformer
from aioinformer.cache import Index, ThreadSafeStore
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.record import Record, decode_record
from aioinformer.cache.waiters import KeyWaiters, VersionWaiters
from aioinformer.errors import ApiError, DecodeError, Expired, ProcessingError, TransportError
from aioinformer.handlers.backlog import Backlog, Batch
from aioinformer.handlers.processor import SharedProcessor
from aioinformer.informer.cache_updates import CacheUpdates
from aioinformer.informer.health import Undecodable
from aioinformer.queue import Delta, Deltas, DeltaType
from aioinformer.queue.fifo import FIFO
from aioinformer.reflector import Phase
from aioinformer.reflector.protocol.list_watch import ListWatchProtocol
from aioinformer.reflector.response_reader import PageParser, WatchParser
from aioinformer.reflector.value_stream import ValueStream
from aioinformer.reflector.watch_events import RecordDecoder
from tests.support.collection import PODS, Collection, Response, cut
from tests.support.recorder import informer_of, states_of
from tests.support.virtual_time import settled
from tests.support.witness import Witness, truth

if TYPE_CHECKING:
    from collections.abc import Callable


pytestmark = pytest.mark.usefixtures("queue")


FAILURES = [asyncio.CancelledError(), OSError("broken"), ValueError("odd"), MemoryError()]


def named(error: BaseException) -> str:
    return type(error).__name__


async def assert_follows(pods: Collection, informer: SharedIndexInformer[Any]) -> None:
    """Assert that the informer receives further changes."""
    await asyncio.sleep(60)
    assert informer.state.phase is Phase.WATCHING
    pods.put("new")
    await settled()
    assert "default/new" in informer.get_store().list_keys()


@pytest.mark.parametrize("error", FAILURES, ids=named)
@pytest.mark.parametrize("streaming", [False, True])
async def test_raising_request_is_retried(error: BaseException, streaming: bool) -> None:
    pods = Collection("a")
    refusal = Response(503)
    refusal.end(asyncio.CancelledError())
    pods.refusals.extend([error, refusal])
    async with informer_of(pods, options=RunOptions(streaming_list=streaming)) as (_, informer, _):
        await assert_follows(pods, informer)


@pytest.mark.parametrize("error", FAILURES, ids=named)
async def test_raising_watch_is_reopened(error: BaseException) -> None:
    async with informer_of("a") as (pods, informer, received):
        await asyncio.sleep(5)
        pods.responses[-1].end(error)
        await assert_follows(pods, informer)
    assert received == ["add! a 1", "add new 2"]


@pytest.mark.parametrize("error", FAILURES, ids=named)
async def test_unclosable_response_is_abandoned(
    error: BaseException, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def close(response: Response) -> None:
        response.closed = True
        raise error

    monkeypatch.setattr(Response, "close", close)
    async with informer_of("a", options=RunOptions(streaming_list=False)) as (pods, informer, _):
        await asyncio.sleep(5)
        pods.end_watches()
        await assert_follows(pods, informer)
    assert "a response could not be closed" in caplog.text


#: The methods that raise; a generator function does so when it is called.
PLACES = [
    (WatchParser, "parse"),
    (PageParser, "parse"),
    (ValueStream, "read"),
    (RecordDecoder, "from_list"),
    (RecordDecoder, "admit"),
    (ObjectType, "on_arrival"),
    (ListWatchProtocol, "receive"),
    (FIFO, "apply"),
    (FIFO, "replace_owned"),
    (FIFO, "batch"),
    (CacheUpdates, "handle_deltas"),
    (CacheUpdates, "_upsert_notification"),
    (CacheUpdates, "replace_all"),
    (CacheUpdates, "_missed_delete"),
    (ThreadSafeStore, "put"),
    (ThreadSafeStore, "delete"),
    (Index, "evaluate"),
    (Index, "add"),
    (Index, "_put_in"),
    (Index, "take_in"),
    (SharedProcessor, "distribute"),
    (SharedProcessor, "distribute_all"),
    (SharedProcessor, "flush"),
    (Backlog, "add"),
    (Batch, "of"),
    (KeyWaiters, "changed"),
    (VersionWaiters, "reached"),
    (Undecodable, "accept"),
]

#: Of these, any error but a MemoryError counts as one of the user.
USER_CODE = [(ObjectType, "on_arrival")]

MOST_CALLS = 12


def plant(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, nth: int, kind: type[Exception]) -> Counter[str]:
    """Make the nth call of a method, and only that, raise."""
    original: Callable[..., Any] = getattr(owner, name)
    calls: Counter[str] = Counter()
    static = isinstance(vars(owner)[name], classmethod)

    def raising(*args: Any, **options: Any) -> Any:
        calls["made"] += 1
        if calls["made"] == nth:
            calls["raised"] += 1
            raise kind
        return original(*(args[1:] if static else args), **options)

    monkeypatch.setattr(owner, name, classmethod(raising) if static else raising)
    return calls


@pytest.mark.parametrize("bug", [False, True], ids=["exhausted", "bug"])
@pytest.mark.parametrize(("owner", "name"), PLACES, ids=lambda each: getattr(each, "__name__", each))
async def test_raising_call_loses_nothing(owner: type, name: str, bug: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="aioinformer")
    for nth in range(1, MOST_CALLS + 1):
        # In user code, any other error means that the function fails for this object: it is skipped and reported.
        kind: type[Exception] = MemoryError if nth % 2 or name == "on_arrival" else RecursionError
        if bug and (owner, name) not in USER_CODE:
            kind = AssertionError
        with pytest.MonkeyPatch.context() as monkeypatch:
            calls = plant(monkeypatch, owner, name, nth, kind)
            await _story()
        if not calls["raised"]:
            break


async def _story() -> None:
    pods = Collection("a", "b", "c")
    informer: SharedIndexInformer[Any] = SharedIndexInformer(
        pods, indexers={"version": lambda pod: [pod.metadata.resource_version]}, transform=lambda pod: pod
    )
    followers = [Witness(), Witness()]
    for follower in followers:
        informer.add_event_handler(follower)
    async with informer:
        waiting = asyncio.create_task(informer.wait_for("default/d"), name="waits for d")
        await informer.wait_for_sync()
        assert len(informer.get_indexer()) == 3, "it has synced, and lacks an object"
        with pods.at_once():
            pods.put("a")
            pods.put("d")
            pods.delete("b")
        await settled()
        pods.put("e")
        await asyncio.sleep(120)
        _compare(informer, pods, followers)
        await asyncio.wait_for(waiting, 60)
        pods.put("a")
        pods.delete("c")
        await informer.wait_for_resource_version(str(pods.version))
        await asyncio.sleep(120)
        _compare(informer, pods, followers)
        assert informer.state.healthy


def _compare(informer: SharedIndexInformer[Any], pods: Collection, followers: list[Witness]) -> None:
    there = truth(list(pods.objects.values()))
    versions = {key: version for key, (_, version) in there.items()}
    indexer = informer.get_indexer()
    assert {
        key: obj.metadata.resource_version for key in indexer.list_keys() if (obj := indexer.get_by_key(key))
    } == versions
    assert sorted(indexer.list_index_func_values("version")) == sorted(versions.values())
    for key, version in versions.items():
        assert indexer.index_keys("version", version) == [key]
    assert sorted(indexer.index_keys("namespace", "default")) == sorted(there)
    for follower in followers:
        assert (follower.present, follower.violations) == (there, [])


def test_update_is_made_with_its_notification_or_not_at_all() -> None:
    memory = pytest.importorskip("_testcapi", reason="CPython's own tests of missing memory")
    objects: ObjectType[Any] = ObjectType(PODS)
    keys = [f"default/{name}" for name in "abcdefghijkl"]

    def record(key: str, version: int) -> Record:
        metadata = {"namespace": "default", "name": key.removeprefix("default/"), "resourceVersion": str(version)}
        return decode_record(json.dumps({"metadata": metadata}).encode())

    for allocation in range(1, 100):
        indexer: Indexer[Any] = Indexer(to_view=objects.to_view)
        processor: SharedProcessor[Any] = SharedProcessor()
        batches: list[Batch[Any]] = []
        processor.observers.append(batches.append)
        updates = CacheUpdates(indexer, objects, processor, KeyWaiters())
        for key in keys:
            indexer.store.put(key, record(key, 1))
        deltas = [Deltas([Delta(DeltaType.UPDATED, record(key, 2))]) for key in keys]
        memory.set_nomemory(allocation, allocation + 1)
        try:
            for each in deltas:
                updates.handle_deltas(each, False)
        except MemoryError:
            pass
        finally:
            memory.remove_mem_hooks()
        updates.flush()
        updated: Any = [each for batch in batches for each in batch.notifications]
        delivered = {f"default/{each.new.metadata.name}" for each in updated}
        changed = {key for key in keys if indexer.store.item(key).resource_version == "2"}
        assert delivered == changed, f"allocation {allocation}"


@pytest.mark.parametrize("kind", [MemoryError, AssertionError])
async def test_failure_is_reported_and_backed_off(kind: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    errors: list[Exception] = []
    async with informer_of("a", watch_error_handler=errors.append) as (pods, informer, _):
        before = len(pods.requests)
        plant(monkeypatch, ThreadSafeStore, "put", 1, kind)
        pods.put("b")
        await settled()
        assert str(informer.state) == f"backing_off: what was received could not be processed: {kind.__name__}"
        assert [type(error) for error in errors] == [ProcessingError]
        assert len(pods.requests) == before
        await informer.wait_for("default/b", timeout=60)
        await settled()
        assert str(informer.state) == "watching"


@pytest.mark.conformance("CTL-02")
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (ListWatchProtocol, "next_step"),
        (ListWatchProtocol, "receive"),
        (FIFO, "replace_owned"),
        (FIFO, "batch"),
        (CacheUpdates, "_upsert_notification"),
        (VersionWaiters, "reached"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)
async def test_bug_that_stays_is_shown_and_logged_sparingly(
    owner: type, name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **options: Any) -> Any:
        raise AssertionError("a bug")

    monkeypatch.setattr(owner, name, broken)
    pods, follower = Collection(*"abcdef"), Witness()
    informer = SharedIndexInformer(pods, indexers={"version": lambda pod: [pod.metadata.resource_version]})
    informer.add_event_handler(follower)
    states = states_of(informer)
    async with informer:
        waiting = asyncio.create_task(informer.wait_for_sync(), name="waits for the sync")
        await asyncio.sleep(300)
        pods.put("new")
        pods.delete("b")
        await asyncio.sleep(300)
        assert str(informer.state).endswith("could not be processed: AssertionError")
        assert len(states) <= 3, "the state alternates"
        assert not waiting.done()
        assert len(pods.requests) <= 40
        assert sum(record.exc_info is not None for record in caplog.records) <= 11
        assert len(caplog.records) <= 60
        monkeypatch.undo()
        await asyncio.wait_for(waiting, 120)
        await asyncio.sleep(120)  # what waited in the queue is enough for the sync, and the next list may come later
        assert informer.state.healthy
        _compare(informer, pods, [follower])


# Failures of the server, and idle watches: requests, state and cache.


PAGES = RunOptions(streaming_list=False)


@pytest.mark.conformance("REF-06", "REF-10")
async def test_unreachable_server_is_retried_with_backoff() -> None:
    pods = Collection("a")
    pods.refusals.extend(cut() for _ in range(50))
    informer = SharedIndexInformer(pods)
    async with informer:
        await asyncio.sleep(2)
        assert len(pods.requests) <= 3
        assert (informer.state.phase, informer.state.reason) == (Phase.BACKING_OFF, "the connection broke")
        await asyncio.sleep(600)
        assert 15 <= len(pods.requests) <= 30
        await informer.wait_for_sync()


@pytest.mark.conformance("WEAK-10")
@pytest.mark.parametrize(
    ("status", "phase"),
    [(401, Phase.UNAUTHORIZED), (403, Phase.FORBIDDEN), (404, Phase.NOT_FOUND), (500, Phase.BACKING_OFF)],
)
async def test_state_shows_a_refusal_until_it_ends(status: int, phase: Phase, caplog: pytest.LogCaptureFixture) -> None:
    pods, states = Collection("a"), list[str]()
    pods.refuse(status, "Whatever")
    async with informer_of(pods, states=states):
        pass
    assert states == ["syncing", f"{phase}: {status} Whatever", "watching", "stopped"]
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert warnings == [f"informer of pods: {states[1]}"]


async def test_endless_refusal_body_is_abandoned() -> None:
    pods = Collection("a")
    endless = Response(503)
    pods.refusals.append(endless)
    informer = SharedIndexInformer(pods)
    async with informer:
        await asyncio.sleep(10.1)
        assert informer.state.reason == "503 Service Unavailable: the body of the response did not come within 10 s"
        assert endless.closed
        await informer.wait_for_sync()


@pytest.mark.parametrize("breaks", [False, True], ids=["silent", "broken"])
async def test_refusal_without_body_keeps_retry_after(breaks: bool) -> None:
    pods = Collection("a")
    response = Response(503, {"Retry-After": "40"})
    if breaks:
        response.end(TransportError("the connection broke"))
    pods.refusals.append(response)
    async with SharedIndexInformer(pods):
        await asyncio.sleep(39.9)
        assert len(pods.requests) == 1


async def test_failing_request_is_retried_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    pods = Collection("a")
    pods.refusals.append(ZeroDivisionError("in a tweak function"))
    informer = SharedIndexInformer(pods)
    async with informer:
        await settled()
        assert informer.state.phase is Phase.BACKING_OFF
        assert "ZeroDivisionError" in informer.state.reason
        await informer.wait_for_sync()
        pods.end_watches(OSError("not in the protocol"))
        await settled()
        assert str(informer.state.phase) == "backing_off"
        await asyncio.sleep(10)
        assert informer.state.healthy
    assert "in a tweak function" in caplog.text
    assert "not in the protocol" in caplog.text


@pytest.mark.conformance("ARC-03", "ARC-07")
async def test_cache_stays_during_an_outage() -> None:
    uids: list[tuple[str, str]] = []
    async with informer_of("a", "b", on_update=lambda old, new: uids.append((old.metadata.uid, new.metadata.uid))) as (
        pods,
        informer,
        received,
    ):
        pods.refusals.extend(cut() for _ in range(5))
        pods.end_watches(cut())
        pods.delete("a")
        pods.put("a")
        pods.delete("b")
        pods.put("c")
        pods.unseen()
        await asyncio.sleep(5)
        assert sorted(informer.get_store().list_keys()) == ["default/a", "default/b"]
        await asyncio.sleep(300)
        assert sorted(informer.get_store().list_keys()) == ["default/a", "default/c"]
    assert received[:2] == ["add! a 1", "add! b 2"]
    assert sorted(received[2:]) == ["add c 6", "tombstone b 2", "update a 1 4"]
    assert uids == [("uid-1", "uid-4")]  # a missed recreation is one update


@pytest.mark.conformance("SI-09", "REF-48", "REF-41", "WEAK-10")
async def test_watch_error_handler_gets_every_failure(caplog: pytest.LogCaptureFixture) -> None:
    pods = Collection("a")
    pods.refuse(500, "InternalError")
    informer = SharedIndexInformer(pods)
    received: list[type[Exception]] = []

    def on_error(error: Exception) -> None:
        received.append(type(error))
        raise LookupError("of the handler")

    informer.set_watch_error_handler(lambda error: received.append(SystemError))  # the last handler that was set
    informer.set_watch_error_handler(on_error)
    async with informer:
        await informer.wait_for_sync()
        await settled()
        pods.end_watches(cut())
        await asyncio.sleep(20)
        pods.send(b"<html>\n")
        await asyncio.sleep(20)
        assert informer.state.phase is Phase.WATCHING
        pods.expire_watches()
        await asyncio.sleep(20)
    assert received == [ApiError, TransportError, DecodeError, Expired]
    assert "the watch error handler raised" in caplog.text


async def test_raising_state_handler_is_harmless(caplog: pytest.LogCaptureFixture) -> None:
    informer = SharedIndexInformer(Collection("a"))
    informer.add_state_handler(lambda state: [][1])
    states = states_of(informer)
    async with informer:
        await informer.wait_for_sync()
        await settled()
    assert states == ["syncing", "watching", "stopped"]
    assert "a state handler raised" in caplog.text


async def test_idle_watch_is_reopened_at_once_silently() -> None:
    states: list[str] = []
    async with informer_of("a", states=states) as (pods, _, _):
        await asyncio.sleep(89)
        assert len(pods.requests) == 1
        await asyncio.sleep(2)
        assert [request.resource_version for request in pods.requests] == ["", "1"]
        assert [response.closed for response in pods.responses] == [True, False]
    assert states == ["syncing", "watching", "stopped"]


async def test_quiet_collection_costs_one_request_in_10_minutes() -> None:
    states, errors = list[str](), list[Exception]()
    async with informer_of("a", options=PAGES, states=states, watch_error_handler=errors.append) as (pods, informer, _):
        await asyncio.sleep(3600)
        seconds = [request.timeout_seconds + 30 for request in pods.requests[2:]]
        assert [request.watch for request in pods.requests] == [False, True, *[True] * len(seconds)]
        assert min(seconds) >= 330
        assert len(seconds) <= 3600 / 330
        assert pods.open_watches == 1
        pods.put("a")
        await settled()
        assert informer.last_sync_resource_version == "2"
    assert states == ["syncing", "watching", "stopped"]
    assert errors == []


async def test_silent_restored_server_is_detected_by_version() -> None:
    states: list[str] = []
    async with informer_of(*"abcd", options=PAGES, states=states) as (pods, informer, _):
        pods.mute()
        pods.version = 2
        pods.delete("c")
        pods.version = 2
        pods.refusals.append(cut())
        pods.end_watches(cut())
        await asyncio.sleep(95)
        # A watch that was refused before, and is silent for 90 s; a check; a list; a watch.
        requests = [(request.watch, request.limit) for request in pods.requests[-4:]]
        assert requests == [(True, 0), (False, 1), (False, 500), (True, 0)]
        assert sorted(informer.get_store().list_keys()) == ["default/a", "default/b", "default/d"]
    assert states == ["syncing", "watching", "backing_off: the connection broke", "watching", "stopped"]
