"""How an informer follows the server through what goes wrong: what it asks when, and what it shows meanwhile."""

from __future__ import annotations

import asyncio
import logging

import pytest

from aioinformer.errors import ApiError, DecodeError, Expired, TransportError
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.reflector.options import ReflectorOptions
from aioinformer.reflector.state import InformerState, Phase
from tests.shell.collection import Answer, Collection, cut, line
from tests.shell.recorder import Recorder, states_of
from tests.shell.virtual_time import settled

PAGES = ReflectorOptions(streaming_list=False)


@pytest.mark.conformance("WEAK-10")
@pytest.mark.parametrize("options", [ReflectorOptions(), PAGES], ids=["stream", "pages"])
async def test_the_phases_of_a_life_without_trouble(options: ReflectorOptions) -> None:
    informer = SharedIndexInformer(Collection("a"), options=options)
    states = states_of(informer)
    async with informer:
        await informer.wait_for_sync()
        await settled()
    assert states == ["syncing", "watching", "stopped"]


@pytest.mark.conformance("REF-06", "REF-10")
async def test_a_server_that_cannot_be_reached_is_asked_ever_more_rarely_for_ever() -> None:
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
async def test_a_refusal_is_shown_until_the_server_accepts(status: int, phase: Phase) -> None:
    pods = Collection("a")
    pods.refuse(status, "Whatever")
    informer = SharedIndexInformer(pods)
    states = states_of(informer)
    async with informer:
        await informer.wait_for_sync()
        await settled()
    assert states == ["syncing", f"{phase}: {status} Whatever", "watching", "stopped"]


async def test_nothing_is_asked_before_the_time_that_the_server_named() -> None:
    pods = Collection("a")
    pods.refuse(429, "TooManyRequests", Retry_After="17")
    informer = SharedIndexInformer(pods)
    async with informer:
        await asyncio.sleep(16.9)
        assert len(pods.requests) == 1
        await asyncio.sleep(0.2)
        assert len(pods.requests) == 2


async def test_a_refusal_that_never_ends_is_given_up() -> None:
    pods = Collection("a")
    endless = Answer(503)
    pods.refusals.append(endless)
    informer = SharedIndexInformer(pods)
    async with informer:
        await asyncio.sleep(10.1)
        assert informer.state.reason == "503 Service Unavailable: then the server fell silent"
        assert endless.closed
        await informer.wait_for_sync()


@pytest.mark.parametrize("breaks", [False, True], ids=["silent", "broken"])
async def test_a_refusal_whose_body_does_not_come_names_the_next_time_all_the_same(breaks: bool) -> None:
    pods = Collection("a")
    answer = Answer(503, {"Retry-After": "40"})
    if breaks:
        answer.end(TransportError("the connection broke"))
    pods.refusals.append(answer)
    async with SharedIndexInformer(pods):
        await asyncio.sleep(39.9)
        assert len(pods.requests) == 1


async def test_a_request_that_cannot_be_made_is_tried_again_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    pods = Collection("a")
    pods.refusals.append(ZeroDivisionError("in a tweak function"))
    informer = SharedIndexInformer(pods)
    async with informer:
        await settled()
        assert informer.state.phase is Phase.BACKING_OFF
        assert "ZeroDivisionError" in informer.state.reason
        await informer.wait_for_sync()
    assert "in a tweak function" in caplog.text


async def test_an_answer_that_breaks_with_an_error_of_the_transports_own_is_a_broken_connection(
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
async def test_the_cache_and_the_handlers_keep_what_they_have_while_the_server_is_away() -> None:
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
    assert recorder.told[:2] == ["add! a 1", "add! b 2"]
    assert sorted(recorder.told[2:]) == ["add c 5", "tombstone b 2", "update a 1 3"]


@pytest.mark.conformance("ARC-03")
async def test_an_object_deleted_and_made_again_unseen_is_one_update_with_two_uids() -> None:
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


async def test_the_deletion_of_an_object_that_was_never_seen_tells_nothing() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with informer:
        await settled()
        pods.send(line("DELETED", {"metadata": {"name": "b", "namespace": "default", "resourceVersion": "2"}}))
        await settled()
        assert informer.last_sync_resource_version == "2"
    assert recorder.told == ["add! a 1"]


async def test_an_object_made_and_deleted_between_two_reads_is_told_as_both_or_not_at_all() -> None:
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
    assert recorder.told in ([], ["add a 1", "delete a 2"])


@pytest.mark.conformance("SI-09", "REF-48", "REF-41", "WEAK-10")
async def test_the_watch_error_handler_is_told_of_every_failure_and_may_raise(caplog: pytest.LogCaptureFixture) -> None:
    pods = Collection("a")
    pods.refuse(500, "InternalError")
    informer = SharedIndexInformer(pods)
    told: list[type[Exception]] = []

    def on_error(error: Exception) -> None:
        told.append(type(error))
        raise LookupError("of the handler")

    informer.set_watch_error_handler(lambda error: told.append(SystemError))  # the last one set counts
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
    assert told == [ApiError, TransportError, DecodeError, Expired]
    assert "the watch error handler raised" in caplog.text


async def test_a_state_handler_that_raises_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
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


async def test_what_goes_wrong_is_a_warning_in_the_log_and_what_goes_right_is_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pods = Collection("a")
    pods.refuse(403, "Forbidden")
    informer = SharedIndexInformer(pods)
    async with informer:
        await informer.wait_for_sync()
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert warnings == ["informer of pods: forbidden: 403 Forbidden"]
