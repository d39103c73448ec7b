"""An informer during failures of the server: its requests, its state and its cache."""

from __future__ import annotations

import asyncio
import logging

import pytest

from aioinformer.errors import ApiError, DecodeError, Expired, TransportError
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.reflector.options import ReflectorOptions
from aioinformer.reflector.state import InformerState, Phase
from tests.support.collection import Collection, Response, cut, line
from tests.support.recorder import Recorder, states_of
from tests.support.virtual_time import settled

pytestmark = pytest.mark.usefixtures("queue")

PAGES = ReflectorOptions(streaming_list=False)


@pytest.mark.conformance("WEAK-10")
@pytest.mark.parametrize("options", [ReflectorOptions(), PAGES], ids=["stream", "pages"])
async def test_phases_without_failures(options: ReflectorOptions) -> None:
    informer = SharedIndexInformer(Collection("a"), options=options)
    states = states_of(informer)
    async with informer:
        await informer.wait_for_sync()
        await settled()
    assert states == ["syncing", "watching", "stopped"]


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
    [
        (401, Phase.UNAUTHORIZED),
        (403, Phase.FORBIDDEN),
        (404, Phase.NOT_FOUND),
        (500, Phase.BACKING_OFF),
    ],
)
async def test_state_shows_a_refusal_until_it_ends(status: int, phase: Phase) -> None:
    pods = Collection("a")
    pods.refuse(status, "Whatever")
    informer = SharedIndexInformer(pods)
    states = states_of(informer)
    async with informer:
        await informer.wait_for_sync()
        await settled()
    assert states == ["syncing", f"{phase}: {status} Whatever", "watching", "stopped"]


async def test_retry_after_is_respected() -> None:
    pods = Collection("a")
    pods.refuse(429, "TooManyRequests", Retry_After="17")
    informer = SharedIndexInformer(pods)
    async with informer:
        await asyncio.sleep(16.9)
        assert len(pods.requests) == 1
        await asyncio.sleep(0.2)
        assert len(pods.requests) == 2


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
    assert "in a tweak function" in caplog.text


async def test_foreign_transport_error_is_a_broken_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    async with informer:
        await informer.wait_for_sync()
        pods.end_watches(OSError("not in the protocol"))
        await settled()
        assert informer.state.phase is Phase.BACKING_OFF
        pods.put("b")
        await asyncio.wait_for(informer.wait_for("default/b"), 10)
    assert "not in the protocol" in caplog.text


@pytest.mark.conformance("ARC-07")
async def test_cache_stays_during_an_outage() -> None:
    pods = Collection("a", "b")
    informer = SharedIndexInformer(pods)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with informer:
        await settled()
        pods.refusals.extend(cut() for _ in range(5))
        pods.end_watches(cut())
        pods.put("a")
        pods.delete("b")
        pods.put("c")
        pods.unseen()
        await asyncio.sleep(5)
        assert sorted(informer.get_store().list_keys()) == ["default/a", "default/b"]
        await asyncio.sleep(300)
        assert sorted(informer.get_store().list_keys()) == ["default/a", "default/c"]
    assert recorder.received[:2] == ["add! a 1", "add! b 2"]
    assert sorted(recorder.received[2:]) == ["add c 5", "tombstone b 2", "update a 1 3"]


@pytest.mark.conformance("ARC-03")
async def test_missed_recreation_is_one_update_with_two_uids() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    uids: list[tuple[str, str]] = []
    informer.add_event_handler(on_update=lambda old, new: uids.append((old.metadata.uid, new.metadata.uid)))
    async with informer:
        await settled()
        pods.end_watches()
        pods.delete("a")
        pods.put("a")
        pods.unseen()
        await asyncio.sleep(20)
    assert uids == [("uid-1", "uid-3")]


async def test_deletion_of_an_unseen_object_is_not_delivered() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with informer:
        await settled()
        pods.send(line("DELETED", {"metadata": {"name": "b", "namespace": "default", "resourceVersion": "2"}}))
        await settled()
        assert informer.last_sync_resource_version == "2"
    assert recorder.received == ["add! a 1"]


async def test_short_lived_object_is_added_and_deleted_or_neither() -> None:
    pods = Collection()
    informer = SharedIndexInformer(pods)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with informer:
        await settled()
        with pods.at_once():
            pods.put("a")
            pods.delete("a")
        await settled()
    assert recorder.received in ([], ["add a 1", "delete a 2"])


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

    def broken(state: InformerState) -> None:
        raise LookupError

    informer.add_state_handler(broken)
    states = states_of(informer)
    async with informer:
        await informer.wait_for_sync()
        await settled()
    assert states == ["syncing", "watching", "stopped"]
    assert "a state handler raised" in caplog.text


async def test_only_failures_are_logged_as_warnings(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pods = Collection("a")
    pods.refuse(403, "Forbidden")
    informer = SharedIndexInformer(pods)
    async with informer:
        await informer.wait_for_sync()
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert warnings == ["informer of pods: forbidden: 403 Forbidden"]
