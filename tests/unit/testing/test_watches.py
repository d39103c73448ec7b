from __future__ import annotations

import json

import aiohttp
import pytest

from aioinformer.testing import ApiServer
from tests.support.api import CONFIGMAPS, Api, told


@pytest.mark.conformance("FK-07", "WEAK-29")
async def test_watch_before_the_compaction_gets_an_expired_event(api: Api, server: ApiServer) -> None:
    version = server.resource_version
    await api.create("a")
    floor = server.compact()
    events = await api.events(f"resourceVersion={version}")
    assert [event["type"] for event in events] == ["ERROR"]
    assert events[0]["object"]["code"] == 410
    assert events[0]["object"]["message"] == f"too old resource version: {version} ({floor})"


async def test_watch_from_the_compacted_version_continues(api: Api, server: ApiServer) -> None:
    version = server.compact()
    await api.create("a")
    assert told(await api.events(f"resourceVersion={version}")) == [("ADDED", "a")]


@pytest.mark.conformance("FK-04", "WEAK-29")
async def test_bookmarks_have_the_server_version_at_their_interval() -> None:
    async with ApiServer(bookmark_interval=0.02) as server:
        version = server.resource_version

        async with aiohttp.ClientSession(server.url) as session:
            query = f"watch=true&allowWatchBookmarks=true&resourceVersion={version}"
            async with session.get(f"{CONFIGMAPS}?{query}") as response:
                server.create("secrets", {"metadata": {"name": "elsewhere"}})
                event = json.loads(await response.content.readline())
                while event["object"]["metadata"]["resourceVersion"] == version:
                    event = json.loads(await response.content.readline())
    assert event["type"] == "BOOKMARK"
    assert int(event["object"]["metadata"]["resourceVersion"]) == int(version) + 1


async def test_stop_ends_watches_cleanly(api: Api, server: ApiServer) -> None:
    async with api.session.get(f"{CONFIGMAPS}?watch=true") as response:
        await server.stop()
        assert await response.content.read() == b""


async def test_slow_watch_ends_once_its_history_is_gone() -> None:

    async with ApiServer(history=3) as server, aiohttp.ClientSession(server.url) as session:
        version = server.resource_version
        for index in range(5):
            server.create("configmaps", {"metadata": {"name": f"c{index}"}})
        events = await Api(session).events(f"resourceVersion={version}")
    assert events[0]["object"]["reason"] == "Expired"
