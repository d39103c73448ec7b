"""Streams without a framework: requests, events, rights, limits and ends, in virtual time."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import logging
import tracemalloc
from typing import Annotated, Any

import msgspec
import pydantic
import pytest

from aioinformer.authorization import EVERYBODY
from aioinformer.errors import UsageError
from aioinformer.models import core_v1
from aioinformer.web import Opened, Problem, StreamCore
from aioinformer.web import Problem as AnyProblem
from tests.support.collection import PODS, Collection
from tests.support.virtual_time import settled
from tests.unit.web.service import Rights, Service, asked
from tests.unit.web.sse import Client, read

NODES: Any = core_v1.NODES
SECRETS: Any = core_v1.SECRETS


async def opened(core: StreamCore, user: str = "", peer: str = "", after: str = "", **query: str) -> Opened:
    answer = await asked(core, user, peer, after, **query)
    assert isinstance(answer, Opened), answer
    return answer


async def refused(core: StreamCore, user: str = "", **query: str) -> Problem:
    answer = await asked(core, user, **query)
    assert isinstance(answer, AnyProblem), answer
    return answer


async def test_stream_begins_with_the_cache_and_continues_with_changes() -> None:
    pods = Collection("a", "b")
    async with Service(pods=pods) as service:
        core = service.core()
        client = Client()
        stream = await opened(core)
        assert await read(stream, client) == ["retry", "reset v1/pods", "put default/a", "put default/b", "synced"]
        assert 1000 <= client.retry <= 5000
        pods.put("a")
        pods.delete("b")
        assert await read(stream, client) == ["put default/a", "delete default/b"]
        assert client.copy["v1/pods"] == {"default/a": "3"}
        assert stream.headers == {
            "Content-Type": "text/event-stream",
            "Cache-Control": "no-cache, no-transform",
            "X-Accel-Buffering": "no",
        }
        await stream.aclose()
        await stream.aclose()
        assert core.open_streams == 0


class Row(pydantic.BaseModel):
    node: Annotated[str | None, "spec.nodeName"] = None


@dataclasses.dataclass
class DataRow:
    node: Annotated[str | None, "spec.nodeName"] = None


class StructRow(msgspec.Struct):
    node: Annotated[str | None, "spec.nodeName"] = None


@pytest.mark.parametrize("row", [Row, DataRow, StructRow, lambda pod: {"node": pod.spec.node_name}])
async def test_event_has_the_view_and_nothing_else(row: Any) -> None:
    pods = Collection()
    pods.put("a", spec={"nodeName": "n\n1"}, status={"message": "private"})
    async with Service(pods=pods) as service:
        stream = await opened(service.core({PODS: row}))
        assert (await anext(stream)).startswith(b"retry: ")
        events = b""
        while b"synced" not in events:
            events += await anext(stream)
        await stream.aclose()
    lines = [line for line in events.split(b"\n") if not line.startswith(b"id: ")]
    reset = [b"event: reset", b'data: {"resource":"v1/pods"}', b""]
    data = b'data: {"resource":"v1/pods","key":"default/a","object":{"node":"n\\n1"}}'
    assert lines == [*reset, b"event: put", data, b"", b"event: synced", b"data: {}", b"", b""]
    assert b"\ndata: {}\nid: " in events


async def test_streams_of_several_resources_have_one_cursor() -> None:
    pods = Collection("a")
    nodes = Collection(resource=NODES)
    async with Service(pods=pods, nodes=nodes) as service:
        core = service.core()
        client = Client()
        stream = await opened(core)
        assert await read(stream, client) == ["retry", "reset v1/pods", "reset v1/nodes", "put default/a", "synced"]
        await stream.aclose()
        pods.put("b")
        nodes.put("n")
        await settled()
        stream = await opened(core, after=client.cursor)
        assert await read(stream, client) == ["retry", "put default/b", "put default/n", "synced"]
        await stream.aclose()
        stream = await opened(core, after=client.cursor, resource="nodes")
        assert await read(stream, client) == ["retry", "reset v1/nodes", "put default/n", "synced"]
        await stream.aclose()


async def test_cursor_of_another_user_or_selection_is_a_reset() -> None:
    who = Rights(("ann", "pods", "*"), ("bob", "pods", "*"))
    pods = Collection("a")
    async with Service(pods=pods) as service:
        core = service.core(who=who)
        client = Client()
        stream = await opened(core, "ann")
        await read(stream, client)
        await stream.aclose()
        whole = ["retry", "reset v1/pods", "put default/a", "synced"]
        for user, cursor, query in (
            ("bob", client.cursor, {}),
            ("ann", client.cursor, {"selector": "!x"}),
            ("ann", client.cursor, {"namespace": "default"}),
            ("ann", client.cursor[:-2] + "AA", {}),
            ("ann", "\udcff\n" * 40, {}),
        ):
            stream = await opened(core, user, after=cursor, **query)
            assert await read(stream, Client()) == whole
            await stream.aclose()
        stream = await opened(core, "ann", after=client.cursor)
        assert await read(stream, Client()) == ["retry", "synced"]
        await stream.aclose()


@pytest.mark.parametrize("events", [1, 2])
async def test_object_of_a_torn_run_of_events_is_deleted(events: int) -> None:
    pods = Collection("a")
    async with Service(pods=pods) as service:
        core = service.core()
        client = Client()
        stream = await opened(core)
        await read(stream, client)
        with pods.at_once():
            for name in ("b", "c", "d"):
                pods.put(name)
        run = await anext(stream)
        await stream.aclose()
        client.feed(b"\n\n".join(run.split(b"\n\n")[:events]) + b"\n\nevent: put")
        assert client.take() == ["put default/b", "put default/c"][:events]
        for name in ("b", "c"):
            pods.delete(name)
        pods.put("new")
        pods.delete("new")
        await settled()
        client.lose()
        stream = await opened(core, after=client.cursor)
        told = await read(stream, client)
        await stream.aclose()
    assert client.copy["v1/pods"] == {"default/a": "1", "default/d": "4"}
    assert "reset v1/pods" not in told
    assert "delete default/new" not in told


async def test_lost_namespace_is_deleted_within_ttl() -> None:
    who = Rights(("ann", "pods", "a"), ("ann", "pods", "b"))
    pods = Collection()
    pods.put("x", "a")
    pods.put("y", "b")
    async with Service(pods=pods) as service:
        core = service.core(who=who)
        client = Client()
        stream = await opened(core, "ann", namespace="a|b")
        assert await read(stream, client) == ["retry", "reset v1/pods", "put a/x", "put b/y", "synced"]
        who.rights.remove(("ann", "pods", "b"))
        pods.put("x", "a")
        assert await read(stream, client, who.ttl) == ["put a/x", "delete b/y"]
        pods.put("new", "b")
        pods.delete("y", "b")
        assert set(await read(stream, client, 60)) == {"comment"}
        who.rights.add(("ann", "pods", "b"))
        assert await read(stream, client, who.ttl) == ["reset v1/pods", "put a/x", "put b/new", "synced"]
        await stream.aclose()


async def test_namespace_lost_between_two_streams_is_deleted() -> None:
    who = Rights(("ann", "pods", "a"), ("ann", "pods", "b"))
    pods = Collection()
    pods.put("x", "a")
    pods.put("y", "b")
    pods.put("z", "b")
    async with Service(pods=pods) as service:
        core = service.core(who=who)
        client = Client()
        stream = await opened(core, "ann", namespace="a|b")
        await read(stream, client)
        await stream.aclose()
        who.rights.remove(("ann", "pods", "b"))
        pods.put("new", "b")
        pods.delete("z", "b")
        pods.put("x", "a")
        await settled()
        stream = await opened(core, "ann", after=client.cursor, namespace="a|b")
        assert await read(stream, client) == ["retry", "delete b/y", "delete b/z", "put a/x", "synced"]
        assert client.copy["v1/pods"] == {"a/x": "6"}
        await stream.aclose()
        stream = await opened(core, "ann", after=client.cursor, namespace="a|b")
        assert await read(stream, client) == ["retry", "synced"]
        await stream.aclose()
        assert (await refused(core, "ann", namespace="a|b")).status == 403
        who.rights.clear()
        assert (await refused(core, "ann", after=client.cursor, namespace="a|b")).status == 403


async def test_rights_that_cannot_be_found_out_are_lost(caplog: pytest.LogCaptureFixture) -> None:
    who = Rights(("ann", "pods", "*"))
    async with Service(pods=Collection("a")) as service:
        stream = await opened(service.core(who=who), "ann")
        client = Client()
        await read(stream, client)
        who.error = OSError("no route")
        assert await read(stream, client, who.ttl) == ["delete default/a"]
        assert set(await read(stream, client, 40)) == {"comment"}
        who.error = None
        assert await read(stream, client, who.ttl) == ["reset v1/pods", "put default/a", "synced"]
        await stream.aclose()
    assert len([each for each in caplog.records if each.levelno >= logging.ERROR]) == 1


async def test_refusals_say_what_to_do() -> None:
    who = Rights(("ann", "pods", "a"))
    async with Service(pods=Collection()) as service:
        core = service.core(who=who)
        for user, query, status, text in (
            ("", {}, 401, "Authorization"),
            ("ann", {}, 403, "namespace"),
            ("ann", {"namespace": "b"}, 403, "'b'"),
            ("ann", {"namespace": "A B"}, 400, "namespace"),
            ("ann", {"namespace": "|".join(f"n{each}" for each in range(21))}, 400, "at most 20"),
            ("ann", {"namespace": "a", "selector": "a=("}, 400, "selector"),
            ("ann", {"namespace": "a", "selector": "a|b"}, 400, "selector"),
            ("ann", {"namespace": "a", "resource": "nodes"}, 400, "v1/pods"),
            ("ann", {"namespace": "a", "fields": "x"}, 400, "fields"),
        ):
            answer = await refused(core, user, **query)
            assert answer.status == status
            assert text in answer.detail
        assert core.open_streams == 0


async def test_one_user_and_all_users_have_limits() -> None:
    who = Rights(("ann", "pods", "*"), ("bob", "pods", "*"), ("eve", "pods", "*"))
    async with Service(pods=Collection("a")) as service:
        core = service.core(who=who, per_user=2, most=3)
        streams = [await opened(core, "ann") for _ in range(2)]
        answer = await refused(core, "ann")
        assert (answer.status, answer.headers["Retry-After"]) == (429, "5")
        streams.append(await opened(core, "bob"))
        assert (await refused(core, "eve")).status == 429
        await streams.pop(0).aclose()
        streams.append(await opened(core, "eve"))
        who.rights.clear()
        for _ in range(10):  # a refusal takes no place
            assert (await refused(core, "bob")).status in (403, 429)
        for stream in streams:
            await stream.aclose()
        assert core.open_streams == 0


async def test_ten_thousand_streams_of_one_user_are_twenty_and_refusals() -> None:
    who = Rights(("ann", "pods", "*"), ("bob", "pods", "*"))
    pods = Collection("a")
    async with Service(pods=pods) as service:
        core = service.core(who=who)
        other = await opened(core, "bob")
        client = Client()
        await read(other, client)
        streams = [await opened(core, "ann") for _ in range(20)]
        await refused(core, "ann")
        gc.collect()
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(9_979):
                answer = await refused(core, "ann")
                assert (answer.status, answer.headers["Retry-After"]) == (429, "5")
            gc.collect()
            assert tracemalloc.get_traced_memory()[0] - before < 64 << 10
        finally:
            tracemalloc.stop()
        assert core.open_streams == 21
        pods.put("b")
        await read(other, client)
        assert len(client.copy["v1/pods"]) == 2
        for stream in [other, *streams]:
            await stream.aclose()
        assert core.open_streams == 0


async def test_anonymous_users_are_counted_by_address() -> None:
    async with Service(pods=Collection()) as service:
        core = service.core(per_user=1)
        one = await opened(core, peer="10.0.0.1")
        assert (await asked(core, peer="10.0.0.1")).__class__ is AnyProblem
        two = await opened(core, peer="10.0.0.2")
        await one.aclose()
        await two.aclose()


async def test_silent_stream_has_heartbeats_and_ends_after_some_minutes() -> None:
    async with Service(pods=Collection()) as service:
        core = service.core()
        stream = await opened(core)
        client = Client()
        began = asyncio.get_running_loop().time()
        comments = [each for each in await read(stream, client, 900) if each == "comment"]
        lasted = asyncio.get_running_loop().time() - began
        assert 300 <= lasted <= 601
        assert lasted // 15.3 - 1 <= len(comments) <= lasted // 15
        await stream.aclose()


async def test_client_that_takes_nothing_is_cut_off() -> None:
    pods = Collection("a")
    aborted: list[str] = []
    async with Service(pods=pods) as service:
        core = service.core()

        async def adapter(name: str, taken: int) -> None:
            stream = await core.open({}, [], name, abort=lambda: aborted.append(name))
            assert isinstance(stream, Opened)
            try:
                async for _ in stream:
                    taken -= 1
                    if not taken:
                        await asyncio.get_running_loop().create_future()  # the client takes nothing any more
            finally:
                await stream.aclose()

        slow = asyncio.create_task(adapter("slow", 2), name="slow")
        good = asyncio.create_task(adapter("good", 10**9), name="good")
        await asyncio.sleep(29)
        assert core.open_streams == 2
        await asyncio.sleep(2)
        assert aborted == ["slow"]
        assert slow.cancelled()
        assert core.open_streams == 1
        stuck = asyncio.create_task(adapter("stuck", 1), name="stuck")
        await asyncio.sleep(1)
        core.end_streams()
        await asyncio.sleep(1.5)
        assert good.done()
        assert not good.cancelled()
        assert stuck.cancelled()
        assert core.open_streams == 0


async def test_streams_end_with_the_informers() -> None:
    service = Service(pods=Collection("a"))
    async with service:
        stream = await opened(service.core())
        client = Client()
        await read(stream, client)
    assert await read(stream, client) == []
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    await stream.aclose()


async def test_slow_reader_is_reset_and_the_others_are_not_delayed() -> None:
    pods = Collection(*(f"p{number}" for number in range(50)))
    async with Service(pods=pods) as service:
        core = service.core()
        slow = await opened(core)
        fast = await opened(core)
        slow_client = Client()
        fast_client = Client()
        await read(slow, slow_client)
        await read(fast, fast_client)
        for _ in range(20):
            for number in range(50):
                pods.put(f"p{number}")
            await settled()
            assert len(await read(fast, fast_client, 0.01)) == 50
        assert len(await read(slow, slow_client)) == 50
        assert slow_client.copy == fast_client.copy
        await slow.aclose()
        await fast.aclose()


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Named(pydantic.BaseModel):
    metadata: dict[str, Any]
    password: Annotated[str, "data.password"]


class Whole(pydantic.BaseModel):
    metadata: dict[str, Any]


class Applied(pydantic.BaseModel):
    applied: Annotated[str, f"metadata.annotations['{LAST_APPLIED}']"]


@pytest.mark.parametrize(
    ("view", "shown"),
    [
        (None, []),
        (lambda secret: secret, []),
        (lambda secret: [secret, {"in": secret.to_dict()}], []),
        (lambda secret: secret.metadata, []),
        (lambda secret: secret.metadata.annotations, []),
        (Whole, []),
        (Named, ["VALUE"]),
        (lambda secret: secret.data["password"], ["VALUE"]),
        (Applied, ["APPLIED"]),
    ],
)
async def test_values_of_secrets_leave_only_if_a_view_names_them(view: Any, shown: list[str]) -> None:
    secrets = Collection(resource=SECRETS)
    secrets.put(
        "s",
        metadata={"annotations": {LAST_APPLIED: '{"data":"APPLIED"}', "other": "kept"}},
        data={"password": "VALUE"},
        stringData={"password": "VALUE"},
    )
    async with Service(secrets=secrets) as service:
        stream = await opened(service.core({SECRETS: view}))
        text = ""
        while "synced" not in text:
            text += (await anext(stream)).decode()
        await stream.aclose()
    assert "default/s" in text
    assert [each for each in ("VALUE", "APPLIED") if each in text] == shown


def test_wrong_declarations_are_refused() -> None:
    service: Any = Service(pods=Collection())
    with pytest.raises(UsageError, match="who="):
        StreamCore(service, {PODS: None}, who=None)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="name the resources"):
        StreamCore(service, {}, who=EVERYBODY)
    with pytest.raises(UsageError, match="not among the resources"):
        StreamCore(service, {NODES: None}, who=EVERYBODY)
    with pytest.raises(UsageError, match="per_user"):
        StreamCore(service, {PODS: None}, who=EVERYBODY, per_user=0)


async def test_error_while_a_stream_opens_leaves_no_reader_behind() -> None:
    pods = Collection("a")
    service = Service(pods=pods, nodes=Collection(resource=NODES))
    core = service.core()
    async with service.running[PODS] as informer:
        async with service.running[NODES]:
            pass
        assert isinstance(await asked(core), AnyProblem)
        assert core.open_streams == 0
        await asyncio.sleep(61)
        assert not informer.observers


async def test_idle_reader_takes_two_kib_at_most() -> None:
    count = 1000
    pods = Collection("a")
    async with Service(pods=pods) as service:
        core = service.core(per_user=2 * count)
        chunks: list[bytes] = []

        async def send(stream: Opened) -> None:
            async for chunk in stream:
                chunks.append(chunk)

        async def wait(future: asyncio.Future[None]) -> None:
            await future

        async def memory_of(make: Any) -> tuple[int, list[asyncio.Task[None]]]:
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
            tasks = [asyncio.create_task(await make(), name="adapter") for _ in range(count)]
            await asyncio.sleep(0.1)
            chunks.clear()
            gc.collect()
            return tracemalloc.get_traced_memory()[0] - before, tasks

        async def idle() -> Any:
            return wait(asyncio.get_running_loop().create_future())

        async def reader() -> Any:
            return send(await opened(core))

        first = asyncio.create_task(await reader(), name="adapter")  # it pays for what all share
        await asyncio.sleep(0.1)
        running = len(asyncio.all_tasks())
        tracemalloc.start()
        try:
            of_responses, waiting = await memory_of(idle)
            of_readers, reading = await memory_of(reader)
        finally:
            tracemalloc.stop()
        assert len(asyncio.all_tasks()) == running + 2 * count  # no task of a reader's own
        pods.put("a")
        await asyncio.sleep(0.1)
        assert len(chunks) == count + 1
        core.end_streams()
        for task in waiting:
            task.cancel()
        await asyncio.wait([*waiting, *reading, first])
    assert (of_readers - of_responses) / count <= 2048
