"""Watches and continue tokens across compactions, and many watches that share events."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from aioinformer.testing import ApiServer
from tests.support.api import CONFIGMAPS, Api, names, told


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
    async with api.session.get(f"{CONFIGMAPS}?watch=true&resourceVersion={version}") as response:
        assert told([json.loads(await response.content.readline())]) == [("ADDED", "a")]


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


async def test_expired_continue_token_returns_a_usable_one(api: Api, server: ApiServer) -> None:
    for index in range(5):
        await api.create(f"c{index}")
    _, first = await api("GET", f"{CONFIGMAPS}?limit=2")
    await api.create("c25")
    server.compact()
    status, expired = await api("GET", f"{CONFIGMAPS}?limit=2&continue={first['metadata']['continue']}")
    assert (status, expired["reason"]) == (410, "Expired")
    assert expired["message"].startswith("The provided continue parameter is too old")
    _, rest = await api("GET", f"{CONFIGMAPS}?continue={expired['metadata']['continue']}")
    assert names(rest) == ["c2", "c25", "c3", "c4"]


def change(server: ApiServer, number: int, size: int = 0) -> int:
    """Change the ConfigMap `a`, or another one, and return the version."""
    data = {"number": str(number), "padding": "x" * size}
    server.update("configmaps", {"metadata": {"name": "a", "labels": {"even": str(number % 2 == 0)}}, "data": data})
    return int(server.resource_version)


async def versions(lines: aiohttp.StreamReader, last: int) -> list[int]:
    """Return the versions that a watch delivers, up to one of them."""
    told: list[int] = []
    while not told or told[-1] < last:
        told.append(int(json.loads(await lines.readline())["object"]["metadata"]["resourceVersion"]))
    return told


async def open_watch(server: ApiServer, query: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a watch on a plain socket, and read the head of the response."""
    address = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port, limit=1 << 16)
    writer.write(f"GET {CONFIGMAPS}?watch=true&{query} HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer


@pytest.fixture
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let watches get one change in each turn of the event loop."""
    monkeypatch.setattr("aioinformer.testing.http.reading.broadcasts._AT_ONCE", 1)


@pytest.mark.usefixtures("one_at_a_time")
async def test_concurrent_watches_deliver_every_change_once(server: ApiServer) -> None:
    server.create("configmaps", {"metadata": {"name": "a"}})
    first = int(server.resource_version)
    async with aiohttp.ClientSession(server.url, connector=aiohttp.TCPConnector(limit=0)) as session:

        async def follow(since: int, leave: bool) -> tuple[int, list[int]]:
            async with session.get(f"{CONFIGMAPS}?watch=true&resourceVersion={since}") as response:
                return since, await versions(response.content, since + 20 if leave else first + 200)

        async with (
            asyncio.TaskGroup() as group,
            session.get(f"{CONFIGMAPS}?watch=true&resourceVersion={first}") as pace,
        ):
            watches = []
            for number in range(200):
                version = change(server, number)
                if number % 5 == 0:
                    watches.append(group.create_task(follow(version, leave=number % 10 == 0 and number < 180)))
                if number % 3 == 0:
                    await versions(pace.content, version - 3)
    for watch in watches:
        since, told = watch.result()
        assert told == list(range(since + 1, told[-1] + 1))


@pytest.mark.usefixtures("one_at_a_time")
async def test_watch_between_two_changes_gets_the_second_only(server: ApiServer) -> None:
    server.create("configmaps", {"metadata": {"name": "a"}})
    first = int(server.resource_version)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(server.url, connector=connector) as session, AsyncExitStack() as stack:
        watch = f"{CONFIGMAPS}?watch=true&resourceVersion="
        before = [await stack.enter_async_context(session.get(f"{watch}{first}")) for _ in range(50)]
        change(server, 1)
        await asyncio.sleep(0)  # the turn begins, and takes fifty steps of the loop
        change(server, 2)
        late = await stack.enter_async_context(session.get(f"{watch}{first + 2}"))
        last = change(server, 3)
        assert await versions(late.content, last) == [last]
        for each in before:
            assert await versions(each.content, last) == [first + 1, first + 2, last]


async def test_watches_with_selectors_get_their_own_events(server: ApiServer) -> None:
    server.create("configmaps", {"metadata": {"name": "a", "labels": {"even": "True"}}})
    since = server.resource_version
    partial = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
    async with aiohttp.ClientSession(server.url) as session:
        watch = f"{CONFIGMAPS}?watch=true&resourceVersion={since}"
        async with (
            session.get(watch) as whole,
            session.get(watch, headers=partial) as metadata,
            session.get(f"{watch}&labelSelector=even%3DTrue") as even,
        ):
            change(server, 1)
            change(server, 2)
            events = [json.loads(await each.content.readline()) for each in (whole, metadata, even)]
            next_even = json.loads(await even.content.readline())
    assert [(event["type"], event["object"]["kind"]) for event in events] == [
        ("MODIFIED", "ConfigMap"),
        ("MODIFIED", "PartialObjectMetadata"),
        ("DELETED", "ConfigMap"),
    ]
    assert next_even["type"] == "ADDED"


async def test_stream_fault_reaches_watches_that_share_events(server: ApiServer) -> None:
    server.create("configmaps", {"metadata": {"name": "a"}})
    async with aiohttp.ClientSession(server.url) as session:
        watch = f"{CONFIGMAPS}?watch=true&resourceVersion={server.resource_version}"
        async with session.get(watch) as one, session.get(watch) as other:
            version = change(server, 1)
            assert await versions(one.content, version) == await versions(other.content, version) == [version]
            await server.fault("error_event", events=2)
            version = change(server, 2)
            for each in (one, other):
                assert [json.loads(line)["type"] async for line in each.content] == ["MODIFIED", "ERROR"]
    assert server.open_watches == 0


async def test_wire_fault_reaches_watches_that_share_events(server: ApiServer) -> None:
    server.create("configmaps", {"metadata": {"name": "a"}})
    async with aiohttp.ClientSession(server.url) as session:
        watch = f"{CONFIGMAPS}?watch=true&resourceVersion={server.resource_version}"
        async with session.get(watch) as one, session.get(watch) as other:
            version = change(server, 1)
            for each in (one, other):
                await versions(each.content, version)
            async with server.fault("slow", verbs=["watch"], seconds=0.0) as slow:
                version = change(server, 2)
                for each in (one, other):
                    await versions(each.content, version)
    assert slow.strikes == 2


async def test_unread_watch_is_bounded_and_blocks_no_others() -> None:
    async with ApiServer(history=20) as server, aiohttp.ClientSession(server.url) as session:
        server.create("configmaps", {"metadata": {"name": "a"}})
        since = server.resource_version
        slow = [await open_watch(server, f"resourceVersion={since}") for _ in range(5)]
        async with session.get(f"{CONFIGMAPS}?watch=true&resourceVersion={since}") as response:
            await versions(response.content, change(server, 0))
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            for number in range(300):
                version = change(server, number, 100_000)
                assert await versions(response.content, version) == [version]
            grown = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
        for _, writer in slow:
            writer.transport.abort()
    # Each watch was sent 30 MB; the history keeps 2 MB, each direction of a connection some hundred KB.
    assert grown < 10_000_000


async def test_late_reader_gets_buffered_events_then_the_end() -> None:
    async with ApiServer(history=5) as server:
        server.create("configmaps", {"metadata": {"name": "a"}})
        since = int(server.resource_version)
        reader, writer = await open_watch(server, f"resourceVersion={since}")
        for number in range(200):
            change(server, number, 100_000)
            await asyncio.sleep(0)
        body = await _dechunked(reader)
        writer.close()
        await writer.wait_closed()
    told = [int(json.loads(line)["object"]["metadata"]["resourceVersion"]) for line in body.splitlines()]
    assert told == list(range(since + 1, since + 1 + len(told)))
    assert 0 < len(told) < 200


async def _dechunked(reader: asyncio.StreamReader) -> bytes:
    parts: list[Any] = []
    while size := int(await reader.readline(), 16):
        parts.append(await reader.readexactly(size))
        await reader.readline()
    return b"".join(parts)
