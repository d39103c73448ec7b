"""The `clock` of the server sets written times; delays use the time of the event loop."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import aiohttp

from aioinformer.testing import ApiServer
from tests.support.api import CONFIGMAPS

NOON = datetime(2001, 2, 3, 12, tzinfo=UTC).timestamp()


async def test_written_times_come_from_the_given_clock() -> None:
    now = NOON
    async with ApiServer(clock=lambda: now) as server, aiohttp.ClientSession(server.url) as session:
        created = server.create("configmaps", {"metadata": {"name": "a", "finalizers": ["example.com/wait"]}})
        now += 60
        deleted = server.delete("configmaps", "a")
        now += 3600
        table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        async with session.get(f"{CONFIGMAPS}/a", headers=table) as response:
            age = (await response.json())["rows"][0]["cells"][-1]
            date = response.headers["Date"]
        logged = server.requests[-1].at
    assert created["metadata"]["creationTimestamp"] == "2001-02-03T12:00:00Z"
    assert {entry["time"] for entry in created["metadata"]["managedFields"]} == {"2001-02-03T12:00:00Z"}
    assert deleted["metadata"]["deletionTimestamp"] == "2001-02-03T12:01:00Z"
    assert (age, date, logged) == ("61m", "Sat, 03 Feb 2001 13:01:00 GMT", now)


async def test_bookmarks_do_not_depend_on_the_given_clock() -> None:
    async with (
        ApiServer(clock=lambda: NOON, bookmark_interval=0.01, version_wait=0.01) as server,
        aiohttp.ClientSession(server.url) as session,
        asyncio.timeout(10),
    ):
        await server.fault("throttle", duration=0.01)
        while (await session.get(CONFIGMAPS)).status == 429:
            pass
        assert (await session.get(f"{CONFIGMAPS}?resourceVersion=999999")).status == 504
        query = f"watch=true&allowWatchBookmarks=true&resourceVersion={server.resource_version}"
        async with session.get(f"{CONFIGMAPS}?{query}") as response:
            assert b'"BOOKMARK"' in await response.content.readline()
