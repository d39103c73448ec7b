"""The informer continues after failures of the server and of its transport, after bugs, and when memory runs out."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from contextlib import contextmanager, suppress
from functools import cache, reduce
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import aioinformer
from aioinformer import Indexer, RunOptions, SharedIndexInformer
from aioinformer.cache import ThreadSafeStore
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.record import Record, decode_record
from aioinformer.cache.waiters import KeyWaiters
from aioinformer.errors import ApiError, DecodeError, Expired, ProcessingError, TransportError
from aioinformer.handlers.processor import SharedProcessor
from aioinformer.informer.cache_updates import CacheUpdates
from aioinformer.queue import Delta, Deltas, DeltaType
from aioinformer.reflector import Phase
from tests.support.collection import PODS, Collection, Response, cut
from tests.support.recorder import informer_of, states_of
from tests.support.virtual_time import settled
from tests.support.witness import Witness, truth

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from contextlib import AbstractContextManager
    from types import CodeType, FrameType

    from aioinformer.handlers.backlog import Batch


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


class Seam(NamedTuple):
    """A function that one module of the package calls in another one.

    Attributes:
        module: that defines it.
        name: within the module, such as "ThreadSafeStore.put".
    """

    module: str
    name: str

    @contextmanager
    def checked(self, check: Callable[[], None]) -> Iterator[None]:
        """Call `check` before each call of the function that an informer makes by itself."""
        *path, leaf = self.name.split(".")
        owner: Any = reduce(getattr, path, sys.modules[self.module])
        original = vars(owner)[leaf]

        def checking(function: Any) -> Any:
            def checked(*arguments: Any, **options: Any) -> Any:
                if is_of_informer(sys._getframe(1)):
                    check()
                return function(*arguments, **options)

            return checked

        made: Any
        if isinstance(original, property):
            made = property(checking(original.fget))
        elif isinstance(original, classmethod):
            made = classmethod(checking(original.__func__))
        else:
            made = checking(original)
        importers = [module for name, module in sys.modules.items() if name.startswith("aioinformer.")]
        with pytest.MonkeyPatch.context() as monkeypatch:
            for place in [owner] if path else importers:
                if vars(place).get(leaf) is original:
                    monkeypatch.setattr(place, leaf, made)
            yield


class Bug(Exception):
    """The error of a bug in the package."""


PLANTED = (MemoryError, RecursionError, Bug)
MOST_CALLS = 12
PACKAGE = Path(aioinformer.__path__[0])
TESTS = Path(__file__).parents[2]

#: A call of such a function begins to run it, or goes on with it. It fails by what it calls.
SUSPENDED = CO_COROUTINE | CO_GENERATOR | CO_ASYNC_GENERATOR

#: In these rooms, a change that has begun ends without an error; their tests show how they undo one.
WHOLE = {"cache", "handlers"}


def is_of_informer(frame: FrameType | None) -> bool:
    """Return whether the informer makes this call in its own tasks and callbacks, and no test does."""
    while frame is not None and frame.f_globals["__name__"] != "asyncio.events":
        if is_of_tests(frame.f_code.co_filename):
            return False
        frame = frame.f_back
    return True


@cache
def is_of_tests(file: str) -> bool:
    return Path(file).is_relative_to(TESTS)


@cache
def room_of(file: str) -> str:
    """Return the room of a file; "" outside all rooms."""
    path = Path(file)
    return path.relative_to(PACKAGE).parts[0] if path.is_relative_to(PACKAGE) and path.parent != PACKAGE else ""


async def seams_of_the_story() -> list[Seam]:
    """Return the functions of rooms that another module of a room calls while an informer follows changes."""
    found: dict[CodeType, Seam] = {}

    def see(frame: FrameType, event: str, argument: Any) -> None:
        code, caller = frame.f_code, frame.f_back
        if event != "call" or code in found or caller is None or code.co_filename == caller.f_code.co_filename:
            return
        room, room_of_caller = room_of(code.co_filename), room_of(caller.f_code.co_filename)
        if not room or not room_of_caller or (room == room_of_caller and room in WHOLE):
            return
        if not code.co_flags & SUSPENDED and "<" not in code.co_qualname and is_of_informer(caller):
            found[code] = Seam(frame.f_globals["__name__"], code.co_qualname)

    @contextmanager
    def profile() -> Iterator[None]:
        sys.setprofile(see)
        try:
            yield
        finally:
            sys.setprofile(None)

    await _story(profile())
    return sorted(found.values())


@pytest.mark.parametrize(("kind", "slices"), [(MemoryError, "fine"), (RecursionError, "usual"), (Bug, "usual")])
async def test_raising_call_loses_nothing(
    kind: type[Exception], slices: str, caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest
) -> None:
    caplog.set_level(logging.CRITICAL, logger="aioinformer")
    if slices == "fine":
        request.getfixturevalue("fine_slices")
    seams = [*await seams_of_the_story(), Seam("aioinformer.cache.waiters", "_wake")]
    assert len(seams) > 50
    lost = []
    for seam in seams:
        for nth in range(1, MOST_CALLS + 1):
            failure, raised = await _failure_of(seam, nth, kind)
            if failure:
                lost.append(f"{seam.name}, call {nth}: {failure}")
            if not raised:
                break
    assert lost == []


async def _failure_of(seam: Seam, nth: int, kind: type[Exception]) -> tuple[str, bool]:
    """Let one call of a function raise; return what is wrong afterwards, and whether there was such a call."""
    calls = count(1)
    raised = False

    def check() -> None:
        nonlocal raised
        if next(calls) == nth:
            raised = True
            raise kind

    try:
        await _story(seam.checked(check))
    except Exception as error:
        return f"{type(error).__name__} {error}", raised
    return "", raised


async def _story(planted: AbstractContextManager[None]) -> None:
    """Follow some changes, and compare the cache and what two handlers got with the server.

    Args:
        planted: entered when the informer has started, and left before it stops.

    Raises:
        Exception: what is planted has ended the informer after its sync. Before that, this is no failure: the block of
            a user raises the error at once.
    """
    pods = Collection("a", "b", "c")
    informer: SharedIndexInformer[Any] = SharedIndexInformer(
        pods, indexers={"version": lambda pod: [pod.metadata.resource_version]}, transform=lambda pod: pod
    )
    followers = [Witness(), Witness()]
    for follower in followers:
        informer.add_event_handler(follower)
    synced = False

    async def wait(wanted: Awaitable[Any]) -> None:
        with suppress(*PLANTED):
            await wanted

    # The informer stops before a test may say that a wait has not ended.
    waits = [
        informer.wait_for("default/d"),
        informer.wait_for("default/b", lambda pod: pod is None),
        informer.wait_for_resource_version(str(pods.version + 2), timeout=None),
        informer.wait_for_resource_version(str(pods.version + 2), timeout=None),
    ]
    waiting = [asyncio.create_task(wait(each), name=f"wait {nth}") for nth, each in enumerate(waits)]
    try:
        async with informer:
            with planted:
                await informer.wait_for_sync()
                synced = True
                assert len(informer.get_indexer()) == 3, "it has synced, and lacks an object"
                with pods.at_once():
                    pods.put("a")
                    pods.put("d")
                    pods.delete("b")
                await settled()
                pods.put("e")
                await asyncio.sleep(120)
                _compare(informer, pods, followers)
                _, left = await asyncio.wait(waiting, timeout=60)
                assert not left, f"they still wait: {[each.get_name() for each in left]}"
                pods.put("a")
                pods.delete("c")
                await informer.wait_for_resource_version(str(pods.version))
                await asyncio.sleep(120)
                _compare(informer, pods, followers)
                assert informer.state.healthy
    except PLANTED:
        if synced:
            raise
    finally:
        for each in waiting:
            each.cancel()
        await asyncio.wait(waiting)


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


def raising_once(kind: type[Exception]) -> Callable[[], None]:
    """Return a function that raises such an exception when it is called for the first time."""
    planted = [kind]

    def check() -> None:
        if planted:
            raise planted.pop()

    return check


@pytest.mark.parametrize("kind", PLANTED)
async def test_failure_is_reported_and_backed_off(kind: type[Exception]) -> None:
    errors: list[Exception] = []
    put = Seam(ThreadSafeStore.__module__, "ThreadSafeStore.put")
    async with informer_of("a", watch_error_handler=errors.append) as (pods, informer, _):
        before = len(pods.requests)
        with put.checked(raising_once(kind)):
            pods.put("b")
            await settled()
            assert str(informer.state) == f"backing_off: what was received could not be processed: {kind.__name__}"
            assert [type(error) for error in errors] == [ProcessingError]
            assert len(pods.requests) == before
            await informer.wait_for("default/b", timeout=60)
        await settled()
        assert str(informer.state) == "watching"


async def test_state_is_healthy_again_when_the_cache_is_complete() -> None:
    seen: list[tuple[bool, bool]] = []
    put = Seam(ThreadSafeStore.__module__, "ThreadSafeStore.put")
    async with informer_of("a") as (pods, informer, _):
        store = informer.get_indexer()
        informer.add_state_handler(lambda state: seen.append((state.healthy, "default/b" in store)))
        with put.checked(raising_once(MemoryError)):
            pods.put("b")
            await settled()
            pods.put("c")
            await informer.wait_for("default/c", timeout=60)
        await settled()
    assert seen[:-1] == [(False, False), (True, True)]


@pytest.mark.conformance("CTL-02")
async def test_bug_that_stays_is_shown_and_logged_sparingly(caplog: pytest.LogCaptureFixture) -> None:
    shown = 0
    wrong = []
    for seam in await seams_of_the_story():
        caplog.clear()
        try:
            shown += await _shows(seam, caplog.records)
        except Exception as error:
            wrong.append(f"{seam.name}: {type(error).__name__} {error}")
    assert wrong == []
    assert shown > 40


async def _shows(seam: Seam, log: list[logging.LogRecord]) -> bool:
    """Let each call of a function raise for ten minutes. Return whether it is shown; otherwise, it has no effect."""

    def check() -> None:
        raise Bug

    pods, follower = Collection(*"abcdef"), Witness()
    informer = SharedIndexInformer(pods, indexers={"version": lambda pod: [pod.metadata.resource_version]})
    informer.add_event_handler(follower)
    states = states_of(informer)
    try:
        async with informer:
            with seam.checked(check):
                await asyncio.sleep(300)
                pods.put("new")
                pods.delete("b")
                await asyncio.sleep(300)
                shown = not informer.state.healthy
                if shown:
                    assert str(informer.state).endswith("could not be processed: Bug")
                    assert len(states) <= 6, "the state alternates"
                else:
                    _compare(informer, pods, [follower])
                assert len(pods.requests) <= 40
                assert sum(record.exc_info is not None for record in log) <= 11
                assert len(log) <= 60
            await asyncio.wait_for(informer.wait_for_sync(), 120)
            await asyncio.sleep(
                120
            )  # what waited in the queue is enough for the sync, and the next list may come later
            assert informer.state.healthy
            _compare(informer, pods, [follower])
    except Bug:  # the block ends at once
        return True
    return shown


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
