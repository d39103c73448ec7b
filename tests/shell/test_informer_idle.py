"""Watches on which nothing comes: which are opened again at once, which are failures, and which are doubted."""

from __future__ import annotations

import asyncio

from aioinformer.options import ReflectorOptions
from aioinformer.shared_informer import SharedIndexInformer
from aioinformer.state import Phase
from tests.shell.collection import Answer, Collection
from tests.shell.recorder import states_of
from tests.shell.virtual_time import settled

PAGES = ReflectorOptions(streaming_list=False)


async def test_an_idle_watch_is_opened_again_at_once_from_the_last_version_and_shows_nothing() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    states = states_of(informer)
    async with informer:
        await asyncio.sleep(89)
        assert len(pods.requests) == 1
        await asyncio.sleep(2)
        assert [request.resource_version for request in pods.requests] == ["", "1"]
        assert [answer.closed for answer in pods.answers] == [True, False]
    assert states == ["syncing", "watching", "stopped"]


async def test_the_second_idle_watch_in_a_row_is_a_failure_and_shown() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    async with informer:
        await asyncio.sleep(180.5)
        assert informer.state.phase is Phase.BACKING_OFF
        assert "no event came for 90 s" in informer.state.reason
        assert len(pods.requests) == 2
        await asyncio.sleep(2)
        assert len(pods.requests) == 3


async def test_a_byte_in_between_makes_the_next_idle_watch_the_first() -> None:
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


async def test_a_version_that_brings_nothing_for_four_idle_watches_is_doubted_and_the_list_is_asked() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods, options=PAGES)
    async with informer:
        await informer.wait_for_sync()
        pods.mute()
        pods.put("b")
        await asyncio.sleep(4 * 90 + 60)
        assert [request.watch for request in pods.requests[:6]] == [False, True, True, True, True, False]
        assert sorted(informer.get_store().list_keys()) == ["default/a", "default/b"]


async def test_a_stream_that_falls_silent_before_its_end_is_followed_by_pages() -> None:
    pods = Collection("a")
    silent = Answer()
    pods.refusals.append(silent)
    informer = SharedIndexInformer(pods, options=ReflectorOptions(stream_patience=1000))
    async with informer:
        await asyncio.wait_for(informer.wait_for_sync(), 95)
        assert [request.watch for request in pods.requests[:2]] == [True, False]
