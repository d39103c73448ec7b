"""An informer during failures of the server, and idle watches: requests, state and cache."""

from __future__ import annotations

import asyncio
import logging

import pytest

from aioinformer.errors import ApiError, DecodeError, Expired, TransportError
from aioinformer.informer.options import RunOptions
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.reflector.state import Phase
from tests.support.collection import Collection, Response, cut
from tests.support.recorder import informer_of, states_of
from tests.support.virtual_time import settled

pytestmark = pytest.mark.usefixtures("queue")


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
