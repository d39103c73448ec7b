"""Waiting for an object, for a version, and for the sync of several informers."""

from __future__ import annotations

import asyncio
import gc
import logging
import re
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes_asyncio.client import V1ConfigMap, V1ObjectMeta

from aioinformer import SharedIndexInformer, SharedInformerFactory, wait_for_cache_sync
from aioinformer.client import Status
from aioinformer.errors import DecodeError, InformerStopped, OptionError, TransportError, UsageError
from aioinformer.factory import DynamicInformer, MultiNamespaceInformer, ReselectingInformer
from aioinformer.handlers import SingleFileTracker
from aioinformer.informer import SyncResult
from aioinformer.models import core_v1
from tests.support.cluster import Cluster
from tests.support.collection import Collection
from tests.support.recorder import Recorder, informer_of
from tests.support.view_samples import view_of
from tests.support.virtual_time import settled
from tests.unit.informer.waiters import waiters_of

if TYPE_CHECKING:
    from collections.abc import Coroutine

pytestmark = pytest.mark.usefixtures("queue")


def running(pod: Any) -> bool:
    return pod is not None and pod.status is not None and pod.status.phase == "Running"


def version_of(pod: Any) -> str:
    return str(pod.metadata.resource_version)


@pytest.mark.conformance("TW-06")
async def test_wait_skips_states_that_do_not_match() -> None:
    async with informer_of() as (pods, informer, _):
        come, runs = (asyncio.ensure_future(informer.wait_for("default/a", each)) for each in (None, running))
        await settled()
        pods.put("b")
        await settled()
        assert not come.done()
        pods.put("a", status={"phase": "Pending"})
        assert version_of(await come) == "2"
        assert not runs.done()
        pods.put("a", status={"phase": "Running"})
        pods.put("a", status={"phase": "Succeeded"})
        assert version_of(await runs) == "3"
        gone = asyncio.ensure_future(informer.wait_for("default/a", lambda pod: pod is None))
        await settled()
        assert not gone.done()
        pods.delete("a")
        assert await gone is None


def absent(pod: Any) -> bool:
    return pod is None


async def ended(*waiting: asyncio.Future[Any]) -> list[Any]:
    """Return what waits have returned that are done by now; "waiting" for the others."""
    await settled()
    return [each.result() if each.done() else "waiting" for each in waiting]


async def test_absence_is_not_judged_before_the_sync() -> None:
    pods = Collection("a")
    pods.gate.clear()
    informer = SharedIndexInformer(pods)
    there, not_there = (asyncio.ensure_future(informer.wait_for(f"default/{name}", absent)) for name in "ab")
    assert await ended(there, not_there) == ["waiting", "waiting"]
    async with informer:
        assert await ended(there, not_there) == ["waiting", "waiting"]
        with pytest.raises(TimeoutError, match=r"absent within 3 s; the cache has not synced"):
            await informer.wait_for("default/b", absent, timeout=3)
        pods.gate.set()
        await informer.wait_for_sync()
        assert await ended(there, not_there) == ["waiting", None]
        pods.delete("a")
        assert await there is None
        assert await informer.wait_for("default/a", absent, timeout=0) is None
    assert waiters_of(informer) == 0


async def test_absence_is_not_judged_before_another_selection_is_listed() -> None:
    old, new = Collection("a"), Collection("b")
    new.gate.clear()
    informer = ReselectingInformer(old)
    async with informer:
        await informer.wait_for_sync()
        selecting = asyncio.ensure_future(informer.select(new))
        await settled()
        there, not_there = (asyncio.ensure_future(informer.wait_for(f"default/{name}", absent)) for name in "bc")
        assert await ended(there, not_there) == ["waiting", "waiting"]
        new.gate.set()
        await selecting
        assert await ended(there, not_there) == ["waiting", None]
        there.cancel()


async def test_absence_is_judged_for_each_namespace_once_it_is_listed() -> None:
    pods = {each: Collection() for each in ("", "default", "new")}
    pods["new"].put("a", "new")
    pods["new"].gate.clear()
    informer = MultiNamespaceInformer(pods.__getitem__, ["default"])
    async with informer:
        await informer.wait_for_sync()
        adding = asyncio.ensure_future(informer.add_namespace("new"))
        await settled()
        waiting = [asyncio.ensure_future(informer.wait_for(key, absent)) for key in ("default/a", "new/a", "new/b")]
        assert await ended(*waiting) == [None, "waiting", "waiting"]
        pods["new"].gate.set()
        await adding
        assert await ended(*waiting) == [None, "waiting", None]
        waiting[1].cancel()


async def test_absence_is_not_judged_before_a_served_again_resource_is_listed() -> None:
    pods = Collection("a")
    informer = DynamicInformer(pods)
    async with informer:
        await informer.wait_for_sync()
        informer.serve(False)
        assert await informer.wait_for("default/a", absent, timeout=1) is None
        pods.gate.clear()
        informer.serve(True)
        await settled()
        waiting = asyncio.ensure_future(informer.wait_for("default/a", absent))
        assert await ended(waiting) == ["waiting"]
        pods.gate.set()
        await informer.wait_for("default/a", timeout=5)
        assert await ended(waiting) == ["waiting"]
        waiting.cancel()


async def test_object_that_cannot_be_decoded_is_not_absent() -> None:
    pods = Collection()
    pods.put("a", metadata={"labels": 5, "uid": 7})
    async with informer_of(pods) as (_, informer, _):
        with pytest.raises(DecodeError, match="default/a"):
            await informer.wait_for("default/a", absent, timeout=1)
        pods.delete("a")
        await settled()
        assert await informer.wait_for("default/a", absent, timeout=1) is None


async def test_wait_for_a_complete_deletion_begins_with_the_sync() -> None:
    pods = Collection("a")
    pods.gate.clear()
    status = Status(status="Success", details={"kind": "pods", "uid": pods.objects["default/a"]["metadata"]["uid"]})
    informer = SharedIndexInformer(pods)
    async with informer:
        waiting = asyncio.ensure_future(informer.wait_for(status))
        assert await ended(waiting) == ["waiting"]
        pods.gate.set()
        await informer.wait_for_sync()
        assert await ended(waiting) == ["waiting"]  # the list is older than the deletion
        pods.delete("a")
        assert await waiting is None


@pytest.mark.conformance("TW-08")
async def test_timeout_names_the_condition_and_leaves_no_waiter() -> None:
    async with informer_of("a") as (_, informer, _):
        with pytest.raises(TimeoutError, match=r"informer of pods: default/b did not exist within 30 s"):
            await informer.wait_for("default/b", timeout=30)
        with pytest.raises(TimeoutError, match=r"default/a did not satisfy .*running within 30 s"):
            await informer.wait_for("default/a", running, timeout=30)
        assert waiters_of(informer) == 0


async def test_wait_may_begin_before_the_start() -> None:
    informer = SharedIndexInformer(Collection("a"))
    waiting: list[asyncio.Future[Any]] = [asyncio.ensure_future(informer.wait_for("default/a"))]
    waiting.append(asyncio.ensure_future(informer.wait_for_resource_version("1")))
    await settled()
    async with informer:
        await asyncio.wait_for(asyncio.gather(*waiting), 1)


async def test_predicate_error_reaches_its_caller_only() -> None:
    def picky(pod: Any) -> bool:
        if pod is not None:
            raise LookupError("not this one")
        return False

    async with informer_of() as (pods, informer, _):
        refused = asyncio.ensure_future(informer.wait_for("default/a", picky))
        served = asyncio.ensure_future(informer.wait_for("default/a"))
        await settled()
        pods.put("a")
        with pytest.raises(LookupError, match="not this one"):
            await refused
        assert version_of(await served) == "1"
        with pytest.raises(LookupError, match="not this one"):
            await informer.wait_for("default/a", picky)


@pytest.mark.parametrize("what", ["object", "version"])
async def test_cancelled_wait_leaves_no_waiter(what: str) -> None:
    async with informer_of() as (pods, informer, _):

        def wait() -> Coroutine[Any, Any, Any]:
            return informer.wait_for("default/a") if what == "object" else informer.wait_for_resource_version("9")

        cancelled, kept = asyncio.ensure_future(wait()), asyncio.ensure_future(wait())
        await settled()
        cancelled.cancel()
        await settled()
        assert waiters_of(informer) == 1
        for _ in range(9):
            pods.put("a")
        await kept
        assert waiters_of(informer) == 0


@pytest.mark.conformance("STO-13", "SI-08", "WEAK-19")
async def test_version_wait_ends_with_any_later_version() -> None:
    async with informer_of("a") as (pods, informer, _):
        waiting = [asyncio.ensure_future(informer.wait_for_resource_version(str(version))) for version in (5, 3, 4)]
        await settled()
        pods.put("a")
        await settled()
        assert [wait.done() for wait in waiting] == [False, False, False]
        with pods.at_once():
            pods.put("a")
            pods.put("b")
        await settled()
        assert [wait.done() for wait in waiting] == [False, True, True]
        pods.put("a")
        await asyncio.gather(*waiting)
        assert informer.last_sync_resource_version == "5"


@pytest.mark.parametrize("version", ["", None, 7])
async def test_invalid_version_is_refused(version: Any) -> None:
    with pytest.raises(UsageError, match="resource_version must be the server"):
        await SharedIndexInformer(Collection()).wait_for_resource_version(version)


async def test_waits_after_the_stop_are_answered_from_the_cache() -> None:
    informer = SharedIndexInformer(Collection("a"))
    async with informer:
        await informer.wait_for_sync()
    assert version_of(await informer.wait_for("default/a")) == "1"
    await informer.wait_for_resource_version("1")
    with pytest.raises(InformerStopped):
        await informer.wait_for("default/b")
    with pytest.raises(InformerStopped):
        await informer.wait_for_resource_version("2")


async def test_wait_cancelled_at_its_end_leaves_no_exception() -> None:
    def raises(pod: Any) -> bool:
        if pod is not None:
            waiting.cancel()
            raise LookupError
        return False

    async with informer_of() as (pods, informer, _):
        waiting = asyncio.ensure_future(informer.wait_for("default/a", raises))
        await settled()
        pods.put("a")
        await asyncio.wait({waiting})
        assert waiting.cancelled()
        assert waiters_of(informer) == 0
    gc.collect()


@pytest.mark.conformance("WAIT-03")
async def test_wait_takes_no_longer_than_needed() -> None:
    done, later = SingleFileTracker(), SingleFileTracker()
    done.upstream_has_synced()
    loop = asyncio.get_running_loop()
    began = loop.time()
    assert await wait_for_cache_sync()
    assert await wait_for_cache_sync(done, timeout=0)
    assert not await wait_for_cache_sync(done, later, timeout=0)
    loop.call_later(0.03, later.upstream_has_synced)
    await wait_for_cache_sync(later, timeout=100)
    assert loop.time() - began == pytest.approx(0.03)
    with pytest.raises(OptionError, match="timeout must be a number of seconds, 0 or more, not '5s'"):
        await wait_for_cache_sync(done, timeout="5s")  # type: ignore[arg-type]


def written(kind: str, api_version: str = "v1", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": api_version, "metadata": {"name": "a", "resourceVersion": "9"}, **more}


@pytest.mark.parametrize(
    "other",
    [
        written("ConfigMap"),
        written("Pod", "example.com/v1"),
        view_of({"metadata": {"name": "a", "resourceVersion": "9"}}, core_v1.CONFIG_MAPS),
        V1ConfigMap(api_version="v1", kind="ConfigMap", metadata=V1ObjectMeta(name="a", resource_version="9")),
        Status(status="Success", details={"kind": "configmaps", "uid": "u"}),
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "details": {"group": "x", "kind": "pods", "uid": "u"}},
    ],
    ids=["mapping", "group", "view", "model", "Status", "decoded Status"],
)
async def test_wait_for_an_object_of_another_resource_is_refused(other: Any) -> None:
    informer = SharedIndexInformer(Collection())
    with pytest.raises(UsageError, match=r"is not of v1/pods; wait with an informer"):
        await informer.wait_for(other, timeout=0.01)


@pytest.mark.parametrize("seconds", [None, float("inf")])
async def test_wait_without_a_limit(seconds: float | None) -> None:
    informer = SharedIndexInformer(Collection("a"))
    async with informer:
        assert await wait_for_cache_sync(informer, timeout=seconds)
        assert await informer.wait_for("default/a", timeout=seconds) is not None
        waits = [
            asyncio.create_task(informer.wait_for("ns/b", timeout=seconds)),
            asyncio.create_task(informer.wait_for_resource_version("1000", timeout=seconds)),
        ]
        await settled()
        assert not any(wait.done() for wait in waits)
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


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


async def test_each_of_several_with_one_name_is_in_the_result() -> None:
    trackers = [SingleFileTracker("it") for _ in range(4)]
    trackers[2].upstream_has_synced()
    result = await wait_for_cache_sync(*trackers, timeout=0)
    assert result == {"it": False, "it (2)": False, "it (3)": True, "it (4)": False}


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


async def test_stopped_informer_fails_the_wait() -> None:
    quick, slow, _ = informers()
    async with quick:
        cancelled = asyncio.create_task(wait_for_cache_sync(quick, slow))
        wait = asyncio.create_task(wait_for_cache_sync(quick, slow))
        async with slow:
            await asyncio.sleep(1)
            cancelled.cancel()
            await asyncio.wait({cancelled})
        with pytest.raises(InformerStopped, match="slow has stopped"):
            await wait
    assert cancelled.cancelled()


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
