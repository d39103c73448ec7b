"""Informers of shards, on a server that ignores the selector and sends all objects."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any, cast

import pytest

from aioinformer import HttpTransport, Resource, RunOptions, SharedIndexInformer
from aioinformer.errors import DecodeError, FrameTooLarge
from aioinformer.reflector import (
    HASHES,
    ListOptions,
    ListPager,
    ShardedListWatch,
    ShardRange,
    ShardSelector,
    shard_hash,
    shard_selectors,
)
from aioinformer.testing import ApiServer
from tests.support.lease_server import Answer
from tests.support.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from aioinformer.transport import HttpRequest, Response, Transport

CONFIG_MAPS: Resource[Any] = Resource("", "v1", "configmaps", kind="ConfigMap", model="V1ConfigMap")
SHARDS = shard_selectors(3)
WAYS = {
    "streaming": RunOptions(),
    "pages": RunOptions(streaming_list=False, page_size=7),
    "whole": RunOptions(streaming_list=False, page_size=0),
    "metadata": RunOptions(),
}


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        yield server


@pytest.fixture
async def transport(server: ApiServer) -> AsyncIterator[HttpTransport]:
    async with HttpTransport(server.url) as transport:
        yield transport


class Scripted(Answer):
    """A transport that responds with a given body, in pieces."""

    def __init__(self, body: bytes, size: int = 10_000) -> None:
        super().__init__(200, body)
        self.pieces = [body[at : at + size] for at in range(0, len(body), size)]

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece

    async def request(self, request: HttpRequest) -> Response:
        return self


def make(server: ApiServer, *names: str) -> dict[str, str]:
    """Return the uids by name."""
    made = [server.create("configmaps", {"metadata": {"name": name, "namespace": "default"}}) for name in names]
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in made}


def everything() -> ShardSelector:
    return ShardSelector((ShardRange(0, HASHES),))


def informer_of(transport: Transport, shard: ShardSelector, **options: Any) -> SharedIndexInformer[Any]:
    return SharedIndexInformer(ShardedListWatch(transport, CONFIG_MAPS, shard), **options)


def names(informer: SharedIndexInformer[Any]) -> set[str]:
    return {each.metadata.name for each in informer.lister().list()}


@pytest.mark.conformance("SHD-02", "SHD-03")
@pytest.mark.parametrize("way", WAYS)
async def test_shards_together_have_all_objects(server: ApiServer, transport: HttpTransport, way: str) -> None:
    uids = make(server, *(f"map-{number}" for number in range(40)))
    storage = "metadata" if way == "metadata" else "bytes"
    informers = [informer_of(transport, shard, options=WAYS[way], storage=storage) for shard in SHARDS]
    async with informers[0], informers[1], informers[2]:
        for informer in informers:
            await informer.wait_for_sync()
        parts = [names(informer) for informer in informers]
        assert {request.query["shardSelector"] for request in server.requests if request.query} == set(map(str, SHARDS))
        for part, shard in zip(parts, SHARDS, strict=True):
            assert part == {name for name, uid in uids.items() if shard.matches(uid, "default")}
        assert all(parts)
        late = make(server, *(f"late-{number}" for number in range(10)))
        for name in list(uids)[:5]:
            server.delete("configmaps", name, "default")
        make(server, "last")
        version = server.resource_version
        for informer in informers:
            await informer.wait_for_resource_version(version)
        assert sorted(name for informer in informers for name in names(informer)) == sorted(
            {*list(uids)[5:], *late, "last"}
        )


@pytest.mark.parametrize("adopted", [False, True])
async def test_object_whose_owner_changes_leaves_the_cache(
    server: ApiServer, transport: HttpTransport, adopted: bool
) -> None:
    owners = {uid: name for name, uid in make(server, *(f"owner-{number}" for number in range(40))).items()}
    first, second = (next(uid for uid in owners if shard.matches(uid, "default")) for shard in SHARDS[:2])

    def owned_by(uid: str) -> dict[str, Any]:
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": owners.get(uid), "uid": uid, "controller": True}
        return {"metadata": {"name": "a", "namespace": "default", "ownerReferences": [owner] if uid else []}}

    list_watch: ShardedListWatch[Any] = ShardedListWatch(transport, CONFIG_MAPS, SHARDS[0], of_owner=True)
    informer: SharedIndexInformer[Any] = SharedIndexInformer(list_watch)
    deleted: list[Any] = []
    informer.add_event_handler(on_delete=deleted.append)
    server.create("configmaps", owned_by(first))
    async with informer:
        await informer.wait_for_sync()
        assert names(informer) == {"a"}
        server.update("configmaps", owned_by(second if adopted else ""))
        await informer.wait_for_resource_version(server.resource_version)
        assert names(informer) == set()
        server.update("configmaps", owned_by(first))
        await informer.wait_for_resource_version(server.resource_version)
        assert names(informer) == {"a"}
    (tombstone,) = deleted  # the object still exists, and its last state is that with the owner
    assert tombstone.key == "default/a"
    assert tombstone.obj.metadata.owner_references[0].uid == first


@pytest.mark.conformance("SHD-02")
async def test_changes_of_other_shards_advance_the_version(server: ApiServer, transport: HttpTransport) -> None:
    nothing = ShardSelector((ShardRange(0, 1),))
    informer = informer_of(transport, nothing)
    async with informer, asyncio.timeout(50):
        await informer.wait_for_sync()
        make(server, "a", "b")
        await informer.wait_for_resource_version(server.resource_version)
        assert names(informer) == set()
        assert isinstance(informer._sources.lister_watcher, ShardedListWatch)
        assert informer._sources.lister_watcher.left_out >= 2


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"",
        b'{"items":[{"metadata":{"name":"a"}}',
        b'{"kind":"Status","code":500}',
        b'{"items":[1]}',
        b"null",
    ],
)
async def test_other_bodies_pass_unchanged(body: bytes) -> None:
    with pytest.raises(DecodeError):
        await ListPager(ShardedListWatch(Scripted(body), CONFIG_MAPS, everything())).list()


@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_undecodable_item_is_passed_on(size: int) -> None:
    body = b'{"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"a","uid":7}},{"metadata":{"name":"b"}}]}'
    lister = ShardedListWatch(Scripted(body, size), CONFIG_MAPS, everything())
    response = await lister.request(ListOptions())
    left = json.loads(b"".join([chunk async for chunk in response.chunks()]))
    assert left["items"] == json.loads(body)["items"]
    assert left["metadata"]["resourceVersion"] == "5"


@pytest.mark.conformance("SHD-02")
@pytest.mark.parametrize("watch", [True, False])
async def test_deeply_nested_object_is_left_out(watch: bool) -> None:
    nested = b"[" * 20_000 + b"]" * 20_000
    deep = b'{"metadata":{"name":"a","uid":"u","resourceVersion":"8"},"spec":%b}' % nested
    body = b'{"type":"ADDED","object":%b}\n' if watch else b'{"metadata":{"resourceVersion":"9"},"items":[%b]}'
    lister = ShardedListWatch(Scripted(body % deep), CONFIG_MAPS, ShardSelector((ShardRange(0, 1),)))
    response = await lister.request(ListOptions(watch=watch))
    left = json.loads(b"".join([chunk async for chunk in response.chunks()]))
    assert left.get("items") == (None if watch else [])
    assert (left.get("type"), lister.left_out) == ("BOOKMARK" if watch else None, 1)


async def test_oversized_event_leads_to_a_list(server: ApiServer, transport: HttpTransport) -> None:
    async with informer_of(transport, everything(), options=RunOptions(max_frame=2000)) as informer:
        await informer.wait_for_sync()
        server.create("configmaps", {"metadata": {"name": "a", "namespace": "default"}, "data": {"x": "x" * 3000}})
        server.delete("configmaps", "a", "default")
        make(server, "b")
        await informer.wait_for("default/b", timeout=50)
        assert names(informer) == {"b"}


@pytest.mark.parametrize("watch", [True, False])
async def test_oversized_object_of_another_shard_is_refused(watch: bool) -> None:
    large = b'{"metadata":{"name":"a","uid":"u","resourceVersion":"8"},"data":{"x":"%b"}}' % (b"x" * 3000)
    body = b'{"type":"ADDED","object":%b}\n' if watch else b'{"metadata":{"resourceVersion":"9"},"items":[%b]}'
    lister = ShardedListWatch(Scripted(body % large, 500), CONFIG_MAPS, ShardSelector((ShardRange(0, 1),)))
    options = RunOptions(max_frame=2000)
    request = options.watch("7", 0.0) if watch else options.first_page("")
    response = await lister.request(request)
    with pytest.raises(FrameTooLarge, match="max_frame"):
        [chunk async for chunk in response.chunks()]


@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_watch_lines_are_passed_on_unchanged(size: int) -> None:
    odd = b'{"type":"ADDED","object":{"metadata":{"uid":7}}}\n<html>\n{"type":"ERROR","object":{"code":410}}\n{"cut'
    lister = ShardedListWatch(Scripted(odd, size), CONFIG_MAPS, ShardSelector((ShardRange(0, 1),)))
    response = await lister.request(ListOptions(watch=True))
    assert b"".join([chunk async for chunk in response.chunks()]) == odd


@pytest.mark.parametrize("watch", [True, False])
async def test_abandoned_body_leaves_no_open_generator(watch: bool) -> None:
    line = b'{"type":"ADDED","object":{"metadata":{"uid":"u"}}}\n'
    body = line * 9 if watch else b'{"metadata":{"resourceVersion":"5"},"items":[{"metadata":{}},{"metadata":{}}]}'
    response = await ShardedListWatch(Scripted(body, 20), CONFIG_MAPS, everything()).request(ListOptions(watch=watch))
    left: list[Any] = []
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(finalizer=left.append)
    try:
        chunks = cast("AsyncGenerator[bytes]", response.chunks())
        await anext(chunks)
        await anext(chunks)
        await chunks.aclose()
    finally:
        sys.set_asyncgen_hooks(*hooks)
    assert left == []


@pytest.mark.conformance("SHD-02")
@pytest.mark.parametrize("initial", [True, False])
async def test_bookmarks_replace_events_except_in_streaming_lists(initial: bool) -> None:
    other = b'{"type":"ADDED","object":{"metadata":{"uid":"u","resourceVersion":"8"}}}\n'
    end = (
        b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9",'
        b'"annotations":{"k8s.io/initial-events-end":"true"}}}}\n'
    )
    lister = ShardedListWatch(Scripted(other + end + other), CONFIG_MAPS, ShardSelector((ShardRange(0, 1),)))
    response = await lister.request(ListOptions(watch=True, send_initial_events=initial))
    lines = b"".join([chunk async for chunk in response.chunks()]).splitlines(keepends=True)
    bookmark = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8"}}}\n'
    assert lines == [end, bookmark] if initial else [bookmark, end, bookmark]


@pytest.mark.conformance("SHD-02")
async def test_one_bookmark_replaces_events_that_arrive_together_before_the_next_own_event() -> None:
    def event(uid: str, version: int, kind: str = "MODIFIED") -> bytes:
        return json.dumps(
            {"type": kind, "object": {"metadata": {"uid": uid, "resourceVersion": f"{version}"}}}
        ).encode()

    own = next(uid for uid in map(str, range(100)) if shard_hash(uid) < HASHES // 2)
    other = next(uid for uid in map(str, range(100)) if shard_hash(uid) >= HASHES // 2)
    lines = [event(other, 3), event(other, 4), event(own, 5), event(other, 6), event(other, 7), event(other, 7)]
    half = ShardSelector((ShardRange(0, HASHES // 2),))
    lister = ShardedListWatch(Scripted(b"\n".join(lines) + b"\n"), CONFIG_MAPS, half)
    response = await lister.request(ListOptions(watch=True))
    left = [json.loads(line) for line in b"".join([chunk async for chunk in response.chunks()]).splitlines()]
    shown = [(each["type"], each["object"]["metadata"]["resourceVersion"]) for each in left]
    assert shown == [("MODIFIED", "5"), ("BOOKMARK", "7")]
    assert lister.left_out == 5


class Nudged(Answer):
    """A transport that responds with what is put into a queue."""

    def __init__(self) -> None:
        super().__init__(200, b"")
        self.pieces: asyncio.Queue[bytes] = asyncio.Queue()

    def nudge(self) -> None:
        self.pieces.put_nowait(b"")

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            yield await self.pieces.get()

    async def request(self, request: HttpRequest) -> Response:
        return self


@pytest.mark.conformance("SHD-02")
def test_frequent_events_have_few_bookmarks() -> None:
    async def read() -> list[tuple[str, float]]:
        loop, answer, read = asyncio.get_running_loop(), Nudged(), list[tuple[str, float]]()
        lister = ShardedListWatch(answer, CONFIG_MAPS, ShardSelector((ShardRange(0, 1),)))
        response = await lister.request(ListOptions(watch=True))

        async def follow() -> None:
            async for chunk in response.chunks():
                read.append((json.loads(chunk)["object"]["metadata"]["resourceVersion"], loop.time()))

        began, following = loop.time(), asyncio.create_task(follow())
        for version in range(1, 26):
            event = {"type": "MODIFIED", "object": {"metadata": {"uid": "u", "resourceVersion": f"{version}"}}}
            answer.pieces.put_nowait(json.dumps(event).encode() + b"\n")
            await asyncio.sleep(0.01)
        await asyncio.sleep(10)
        following.cancel()
        await asyncio.wait([following])
        return [(version, round(at - began, 2)) for version, at in read]

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        shown = runner.run(read())
    assert shown[0] == ("1", 0.0)
    assert shown[-1] == ("25", 0.3)
    assert len(shown) == 4


async def test_version_of_frequent_events_is_reached(server: ApiServer, transport: HttpTransport) -> None:
    lister = ShardedListWatch(transport, CONFIG_MAPS, ShardSelector((ShardRange(0, 1),)))
    async with SharedIndexInformer(lister) as informer:
        await informer.wait_for_sync()
        for number in range(20):
            make(server, f"other-{number}")
            await asyncio.sleep(0.005)
        async with asyncio.timeout(50):
            while informer.last_sync_resource_version != server.resource_version:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    assert lister.left_out == 20


@pytest.mark.conformance("SHD-02")
@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_multiline_events_are_left_out(size: int) -> None:
    event = {"type": "ADDED", "object": {"metadata": {"name": "a", "uid": "u", "resourceVersion": "8"}}}
    body = json.dumps(event, indent=2).encode() * 2
    lister = ShardedListWatch(Scripted(body, size), CONFIG_MAPS, ShardSelector((ShardRange(0, 1),)))
    response = await lister.request(ListOptions(watch=True))
    left = b"".join([chunk async for chunk in response.chunks()]).splitlines()
    assert [json.loads(line)["type"] for line in left] == ["BOOKMARK"] * (1 if size > len(body) else 2)
    assert lister.left_out == 2
