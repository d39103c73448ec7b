"""Idle watches: reopened at once, counted as failures, or checked."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.reflector.options import ReflectorOptions
from tests.support.collection import Collection, Response, cut
from tests.support.recorder import states_of
from tests.support.virtual_time import settled

pytestmark = pytest.mark.usefixtures("queue")

PAGES = ReflectorOptions(streaming_list=False)


async def test_idle_watch_is_reopened_at_once_silently() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    states = states_of(informer)
    async with informer:
        await asyncio.sleep(89)
        assert len(pods.requests) == 1
        await asyncio.sleep(2)
        assert [request.resource_version for request in pods.requests] == ["", "1"]
        assert [response.closed for response in pods.responses] == [True, False]
    assert states == ["syncing", "watching", "stopped"]


async def test_quiet_collection_costs_one_request_in_10_minutes() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods, options=PAGES)
    states, errors = states_of(informer), list[Exception]()
    informer.set_watch_error_handler(errors.append)
    async with informer:
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


async def test_quiet_watch_ended_by_the_server_is_reopened() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods, options=PAGES)
    states = states_of(informer)
    async with informer:
        await asyncio.sleep(200)
        for _ in range(5):
            requests = len(pods.requests)
            pods.end_watches()
            await settled()
            assert len(pods.requests) == requests + 1
            await asyncio.sleep(300)
            assert len(pods.requests) == requests + 1
    assert states == ["syncing", "watching", "stopped"]


async def test_any_byte_resets_the_count_of_idle_watches() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    states = states_of(informer)
    async with informer:
        for _ in range(3):
            await asyncio.sleep(91)
            pods.put("a")
            await settled()
        assert len(pods.requests) == 4
    assert states == ["syncing", "watching", "stopped"]


async def test_bookmarks_keep_a_quiet_watch_open() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    async with informer:
        for _ in range(5):
            await asyncio.sleep(60)
            pods.bookmark()
        assert len(pods.requests) == 1


async def test_silent_restored_server_is_detected_by_version() -> None:
    pods = Collection("a", "b", "c", "d")
    informer = SharedIndexInformer(pods, options=PAGES)
    states = states_of(informer)
    async with informer:
        await informer.wait_for_sync()
        await settled()
        pods.mute()
        pods.version = 2
        pods.delete("c")
        pods.version = 2
        pods.refusals.append(cut())
        pods.end_watches(cut())
        await asyncio.sleep(95)
        assert [(request.watch, request.limit) for request in pods.requests[-4:]] == [
            (True, 0),  # was refused before; then silent for 90 s
            (False, 1),
            (False, 500),
            (True, 0),
        ]
        assert sorted(informer.get_store().list_keys()) == ["default/a", "default/b", "default/d"]
    assert states == ["syncing", "watching", "backing_off: the connection broke", "watching", "stopped"]


async def test_silent_server_after_an_outage_is_checked_once() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods, options=PAGES)
    async with informer:
        await informer.wait_for_sync()
        await settled()
        pods.end_watches(cut())
        await asyncio.sleep(1000)
        lists = [request.limit for request in pods.requests if not request.watch]
        assert lists == [500, 1]


async def test_silent_streaming_list_falls_back_to_pages() -> None:
    pods = Collection("a")
    silent = Response()
    pods.refusals.append(silent)
    informer = SharedIndexInformer(pods, options=ReflectorOptions(stream_patience=1000))
    async with informer:
        await asyncio.wait_for(informer.wait_for_sync(), 95)
        assert [request.watch for request in pods.requests[:2]] == [True, False]
