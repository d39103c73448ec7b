"""The next run of a key waits until the caches show the key's own writes."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import Resource
from aioinformer.controller.errors import StaleCache
from aioinformer.errors import AlreadyExists, ApiError, TransportError
from aioinformer.resources import ObjectName
from tests.support.virtual_time import VirtualTimeLoop, settled
from tests.support.written_collection import CONFIG_MAPS, DEPLOYMENTS, PODS, Server
from tests.unit.controller.writes.support import KEY, config_map, running, settling

if TYPE_CHECKING:
    from aioinformer import Client
    from aioinformer.client import ResourceClient

#: As if the server had this subresource.
WITHOUT_RESIZE: Resource[Any] = Resource("", "v1", "configmaps", "ConfigMap")
DELAY = 2.0
#: The clock moves a little on the way.
WAIT = DELAY - 0.1


@pytest.mark.behaviour("C-37")
async def test_other_keys_and_unchanged_objects_do_not_wait(server: Server) -> None:
    async with running(server) as writes:
        await maps_of(writes.client(KEY)).patch("a", {"metadata": {"labels": {"app": "x"}}})
        assert not writes.pending(KEY)
        await maps_of(writes.client(KEY)).create(config_map("b"))
        assert not writes.pending(ObjectName("shop", "b"))
        writes.forget(KEY)
        assert not writes.pending(KEY)


@pytest.fixture
def server() -> Server:
    """Return a server whose events take two seconds, with one ConfigMap."""
    server = Server()
    server.put("configmaps", config_map("a", labels={"app": "x"}))
    server.delay = lambda: DELAY
    return server


def maps_of(client: Client) -> ResourceClient[Any]:
    return client.resource(CONFIG_MAPS).namespaced("shop")


# Answered writes.


@pytest.mark.behaviour("C-37")
@pytest.mark.parametrize("verb", ["create", "patch", "replace", "apply"])
async def test_next_run_waits_for_the_write(server: Server, verb: str) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    changed = config_map("b" if verb == "create" else "a", annotations={"seen": "yes"})
    async with running(server, field_manager="test") as writes:
        write = getattr(maps_of(writes.client(KEY)), verb)
        assert not writes.pending(KEY)
        await (write("a", changed) if verb == "patch" else write(changed))
        turns = loop.turns
        assert await settling(writes) > WAIT
        assert loop.turns - turns < 20  # it does not poll
        assert len(writes) == 0
        assert server.reads == []


@pytest.mark.parametrize("verb", ["patch", "delete"])
async def test_late_answer_of_an_earlier_write_is_ignored(server: Server, verb: str) -> None:
    async with running(server, informer := server.informer()) as writes:
        maps = maps_of(writes.client(KEY))
        delays = iter((1.0, 3.0))
        server.delay = lambda: next(delays)
        late = server.hold_answers()
        first = asyncio.create_task(maps.patch("a", {"data": {"n": "1"}}))
        await settled()
        server.hold_answers().set()
        await (maps.delete("a") if verb == "delete" else maps.patch("a", {"data": {"n": "2"}}))
        late.set()
        await first
        await settling(writes)
        cached = [obj.data["n"] for obj in informer.lister().list()]
        assert cached == ([] if verb == "delete" else ["2"])


async def test_write_during_the_wait_for_an_earlier_one_is_awaited(server: Server) -> None:
    async with running(server, informer := server.informer()) as writes:
        maps = maps_of(writes.client(KEY))
        delays = iter((1.0, 3.0))
        server.delay = lambda: next(delays)
        await maps.patch("a", {"data": {"n": "1"}})
        first = asyncio.create_task(writes.settle(KEY))
        await settled()
        await maps.patch("a", {"data": {"n": "2"}})
        await first
        await settling(writes)
        assert [obj.data["n"] for obj in informer.lister().list()] == ["2"]


@pytest.mark.behaviour("C-39")
async def test_stale_cache_is_reported_after_five_seconds(server: Server) -> None:
    server.delay = lambda: 7.0
    async with running(server) as writes:
        await maps_of(writes.client(KEY)).create(config_map("b"))
        server.delay = lambda: 30.0
        server.put("configmaps", config_map("b", labels={"by": "another"}))
        begun = asyncio.get_running_loop().time()
        message = r"shop/a: .* within 5 s: version 2 of configmaps shop/b, the informer of configmaps is at 1$"
        with pytest.raises(StaleCache, match=message):
            await writes.settle(KEY)
        assert 5 <= asyncio.get_running_loop().time() - begun < 5.1
        assert writes.pending(KEY)
        await settling(writes)
        assert 6.9 < asyncio.get_running_loop().time() - begun < 7.1
        assert len(server.reads) == 1


async def test_keys_that_never_run_again_are_forgotten(server: Server) -> None:
    async with running(server) as writes:
        for number in range(50):
            key = ObjectName("shop", f"{number}")
            await maps_of(writes.client(key)).create(config_map(f"b{number}"))
        assert len(writes) == 50
        await asyncio.sleep(DELAY + 1)
        for number in range(30):
            await maps_of(writes.client(KEY)).create(config_map(f"c{number}"))
        assert len(writes) <= 16


async def test_write_under_way_is_awaited(server: Server) -> None:
    async with running(server) as writes:
        server.answers.clear()
        writing = asyncio.create_task(maps_of(writes.client(KEY)).create(config_map("b")))
        await settled()
        waiting = asyncio.create_task(settling(writes))
        await asyncio.sleep(DELAY + 1)
        assert not waiting.done()
        server.answers.set()
        await writing
        assert await waiting > WAIT


# Unknown outcomes.


@pytest.mark.behaviour("C-40")
@pytest.mark.parametrize("verb", ["create", "patch", "delete"])
@pytest.mark.parametrize("fault", ["after", "before", "500", "cancelled"])
async def test_unknown_outcome_is_settled_by_a_live_read(server: Server, verb: str, fault: str) -> None:
    async with running(server, informer := server.informer()) as writes:
        arguments: dict[str, Any] = {"create": (config_map("b"),), "patch": ("a", {"data": {"n": "1"}}), "delete": "a"}
        server.fault = lambda request: fault if fault != "cancelled" else ""
        server.answers.clear()
        writing = asyncio.create_task(getattr(maps_of(writes.client(KEY)), verb)(*arguments[verb]))
        await settled()
        writing.cancel()
        server.answers.set()
        with pytest.raises((asyncio.CancelledError, TransportError, ApiError)):
            await writing
        assert writes.pending(KEY)
        assert (await settling(writes) > WAIT) == (fault in ("after", "cancelled"))
        name = "b" if verb == "create" else "a"
        assert [dict(request.query)["fieldSelector"] for request in server.reads] == [f"metadata.name={name}"]
        there = {key: obj["metadata"]["resourceVersion"] for key, obj in server.objects["configmaps"].items()}
        cached = {f"shop/{obj.metadata.name}": obj.metadata.resource_version for obj in informer.lister().list()}
        assert cached == there


@pytest.mark.behaviour("C-40")
async def test_write_that_a_gateway_has_passed_on_is_settled_by_a_live_read(server: Server) -> None:
    async with running(server) as writes:
        for fault in ("502", "504"):
            server.fault = lambda request, fault=fault: fault  # type: ignore[misc]
            with pytest.raises(ApiError, match=fault):
                await maps_of(writes.client(KEY)).create(config_map(f"b{fault}"))
            assert writes.pending(KEY)
            await settling(writes)
            assert dict(server.reads[-1].query)["fieldSelector"] == f"metadata.name=b{fault}"


@pytest.mark.behaviour("C-40")
async def test_refused_write_needs_no_read(server: Server) -> None:
    async with running(server) as writes:
        maps = maps_of(writes.client(KEY))
        for fault in ("unsent", "422", "429", "busy"):
            server.fault = lambda request, fault=fault: fault  # type: ignore[misc]
            with pytest.raises((TransportError, ApiError)):
                await maps.create(config_map("b"), retry=False)
        server.fault = lambda request: ""
        with pytest.raises(ApiError, match="404"):
            await writes.client(KEY).resource(WITHOUT_RESIZE).subresource("resize").patch("shop/a", {})
        assert not writes.pending(KEY)


@pytest.mark.behaviour("C-40")
async def test_object_that_exists_already_is_awaited(server: Server) -> None:
    async with running(server, informer := server.informer()) as writes:
        server.put("configmaps", config_map("b"))
        for name in ("a", "b"):
            with pytest.raises(AlreadyExists):
                await maps_of(writes.client(KEY)).create(config_map(name))
        assert await settling(writes) > WAIT
        assert informer.lister().get("shop/b").metadata.name == "b"


@pytest.mark.behaviour("C-41")
@pytest.mark.parametrize("others", [0, 600])
@pytest.mark.parametrize("fault", ["before", "after"])
async def test_lost_create_with_a_generated_name_is_found(server: Server, fault: str, others: int) -> None:
    for number in range(others):
        server.put("configmaps", config_map(f"b{number}"))
    async with running(server, informer := server.informer()) as writes:
        server.fault = lambda request: fault
        labels = {} if others else {"app": "y"}
        with pytest.raises(TransportError):
            await maps_of(writes.client(KEY)).create({"metadata": {"generateName": "b-", "labels": labels}})
        await settling(writes)
        assert len(informer.get_indexer().list_keys()) == others + 1 + (fault == "after")
        assert {dict(request.query).get("labelSelector") for request in server.reads} == {None if others else "app=y"}


@pytest.mark.behaviour("C-40")
async def test_failed_live_read_is_repeated_by_the_next_wait(server: Server) -> None:
    async with running(server) as writes:
        server.fault = lambda request: "after"
        with pytest.raises(TransportError):
            await maps_of(writes.client(KEY)).create(config_map("b"))
        server.refuse_reads = 500
        with pytest.raises(StaleCache, match=r"shop/a: the caches do not show its own writes: 500"):
            await writes.settle(KEY)
        assert writes.pending(KEY)
        server.refuse_reads = 0
        assert await settling(writes) > 0


async def test_live_reads_after_an_outage_are_few_at_a_time(server: Server) -> None:
    keys = [ObjectName("shop", str(number)) for number in range(50)]
    async with running(server) as writes:
        server.fault = lambda request: "before"
        for key in keys:
            with suppress(TransportError):
                await maps_of(writes.client(key)).create(config_map(key.name))
        server.reading.clear()
        waits = [asyncio.create_task(writes.settle(key)) for key in keys]
        await settled()
        assert len(server.reads) == 4
        server.reading.set()
        await asyncio.gather(*waits)
        assert (len(server.reads), len(writes)) == (50, 0)


async def test_write_that_fails_during_the_read_is_read_again(server: Server) -> None:
    async with running(server) as writes:
        maps = maps_of(writes.client(KEY))
        server.fault = lambda request: "after"
        server.reading.clear()
        with pytest.raises(TransportError):
            await maps.patch("a", {"data": {"n": "1"}})
        waiting = asyncio.create_task(writes.settle(KEY))
        await settled()
        with pytest.raises(TransportError):
            await maps.patch("a", {"data": {"n": "2"}})
        server.reading.set()
        await waiting
        await settling(writes)
        assert len(server.reads) == 2


async def test_object_that_cannot_be_decoded_is_no_proof(server: Server) -> None:
    def decode(raw: bytes) -> Any:
        if b'"new"' in raw:
            raise ValueError
        return json.loads(raw)

    async with running(server, server.informer(decoder=decode)) as writes:
        await maps_of(writes.client(KEY)).create(config_map("new"))
        for _ in range(2):
            with pytest.raises(StaleCache, match="shop/new exists and cannot be decoded"):
                await writes.settle(KEY)


# Deletions.


@pytest.mark.behaviour("C-42")
@pytest.mark.parametrize("answer", ["status", "bare", "object", "eviction"])
async def test_deleted_object_must_leave_the_cache(server: Server, answer: str) -> None:
    server.deleted = answer
    server.put("pods", config_map("a"))
    resource = PODS if answer == "eviction" else CONFIG_MAPS
    async with running(server, informer := server.informer(resource)) as writes:
        if answer == "eviction":
            await writes.client(KEY).core.v1.pods.evict("shop/a")
        else:
            await maps_of(writes.client(KEY)).delete("a")
        assert await settling(writes) > (0 if answer == "eviction" else WAIT)
        assert informer.get_indexer().list_keys() == []
        assert len(server.reads) == (answer == "eviction")


@pytest.mark.behaviour("C-44", "C-45")
async def test_selection_of_an_informer_decides_what_is_awaited(server: Server) -> None:
    informers = server.informer(label_selector="app=x"), server.informer(label_selector="app=y")
    async with running(server, *informers) as writes:
        await maps_of(writes.client(KEY)).patch("a", {"data": {"n": "1"}})
        assert await settling(writes) > WAIT
        await maps_of(writes.client(KEY)).patch("a", {"metadata": {"labels": {"app": "z"}}})
        assert await settling(writes) > WAIT
        assert informers[0].get_indexer().list_keys() == []


@pytest.mark.parametrize("opaque", [False, True], ids=["after a restore", "without an order"])
async def test_version_that_never_arrives_is_settled_by_a_live_read(server: Server, opaque: bool) -> None:
    server.opaque = opaque
    server.put("configmaps", config_map("a"))
    version = server.objects["configmaps"]["shop/a"]["metadata"]["resourceVersion"]
    async with running(server) as writes:
        if opaque:
            await maps_of(writes.client(KEY)).patch("a", {"data": {"n": "1"}})
            assert await settling(writes) > WAIT
        server.delay = lambda: 1e6
        await maps_of(writes.client(KEY)).patch("a", {"data": {"n": "2"}})
        server.objects["configmaps"]["shop/a"]["metadata"]["resourceVersion"] = "x3" if opaque else version
        with pytest.raises(StaleCache):
            await writes.settle(KEY)
        assert await settling(writes) < 1


@pytest.mark.behaviour("C-42")
async def test_deletion_mark_ends_the_wait(server: Server) -> None:
    server.put("configmaps", config_map("a", finalizers=["example.com/x"]))
    async with running(server, informer := server.informer()) as writes:
        maps = maps_of(writes.client(KEY))
        await maps.delete("a")
        assert await settling(writes) > WAIT
        assert informer.lister().get("shop/a").metadata.deletion_timestamp
        await maps.patch("a", {"metadata": {"finalizers": None}})
        assert await settling(writes) > WAIT
        assert informer.get_indexer().list_keys() == []


@pytest.mark.behaviour("C-42")
async def test_object_that_is_gone_already_must_leave_the_cache(server: Server) -> None:
    async with running(server, informer := server.informer()) as writes:
        server.remove("configmaps", "shop/a")
        for name in ("a", "never"):
            with pytest.raises(ApiError, match="404"):
                await maps_of(writes.client(KEY)).delete(name)
        assert await settling(writes) > 0
        assert informer.get_indexer().list_keys() == []


@pytest.mark.behaviour("C-42")
@pytest.mark.parametrize("delay", [DELAY, 7.0])
async def test_object_deleted_after_its_creation_does_not_come_back(server: Server, delay: float) -> None:
    server.delay = lambda: delay
    async with running(server, informer := server.informer()) as writes:
        maps = maps_of(writes.client(KEY))
        await maps.create(config_map("b"))
        await maps.delete("b")
        added: list[Any] = []
        if delay > 5:
            with pytest.raises(StaleCache):
                await writes.settle(KEY)
        await settling(writes)
        informer.add_event_handler(on_add=added.append)
        await asyncio.sleep(10)
        assert [obj.metadata.name for obj in added] == ["a"]


@pytest.mark.behaviour("C-42")
async def test_object_created_again_is_another_one(server: Server) -> None:
    async with running(server, informer := server.informer()) as writes:
        maps = maps_of(writes.client(KEY))
        await maps.delete("a")
        made = await maps.create(config_map("a"))
        await settling(writes)
        assert informer.lister().get("shop/a").metadata.uid == made.metadata.uid


@pytest.mark.behaviour("C-42")
@pytest.mark.parametrize("fault", ["", "after", "late"])
async def test_deleted_collection_is_awaited_object_by_object(server: Server, fault: str) -> None:
    server.put("configmaps", config_map("a", labels={"app": "x"}, finalizers=["example.com/x"]))
    server.put("configmaps", config_map("b", labels={"app": "x"}))
    server.put("configmaps", config_map("c"))
    server.put("configmaps", {"metadata": {"name": "d", "namespace": "office", "labels": {"app": "x"}}})
    async with running(server, informer := server.informer()) as writes:
        delays = iter((7.0, 8.0) if fault == "late" else (1.0, 2.0))
        server.delay = lambda: next(delays)
        server.fault = lambda request: fault if fault == "after" else ""
        with suppress(TransportError):
            await maps_of(writes.client(KEY)).delete_collection({"app": "x"})
        server.put("pods", config_map("web-0"))  # a version that no informer of ConfigMaps receives
        assert dict(server.writes[0].query)["labelSelector"] == "app=x"
        if fault == "late":
            with pytest.raises(StaleCache):
                await writes.settle(KEY)
        await settling(writes)
        assert sorted(informer.get_indexer().list_keys()) == ["office/d", "shop/a", "shop/c"]
        assert informer.lister().get("shop/a").metadata.deletion_timestamp
        assert dict(server.reads[0].query)["labelSelector"] == "app=x"


@pytest.mark.behaviour("C-42")
async def test_new_object_of_a_deleted_collection_must_go(server: Server) -> None:
    delays = iter((1.0, 3.0, 3.0))
    async with running(server, informer := server.informer()) as writes:
        server.delay = lambda: next(delays)
        maps = maps_of(writes.client(KEY))
        await maps.create(config_map("b"))
        await maps.delete_collection()
        await settling(writes)
        assert informer.get_indexer().list_keys() == []


# Subresources.


@pytest.mark.behaviour("C-43")
@pytest.mark.parametrize("subresource", ["status", "scale"])
async def test_write_of_a_subresource_counts_for_its_object(server: Server, subresource: str) -> None:
    server.put("deployments", {**config_map("web", labels={"app": "x"}), "spec": {"replicas": 1}})
    async with running(server, informer := server.informer(DEPLOYMENTS, label_selector="app=x")) as writes:
        client = writes.client(KEY).resource(DEPLOYMENTS).namespaced("shop")
        await client.subresource(subresource).patch("web", {"spec": {"replicas": 3}})
        assert await settling(writes) > WAIT
        assert informer.lister().get("shop/web").spec.replicas == 3
        assert len(server.reads) == (subresource == "scale")


# What is watched.


@pytest.mark.behaviour("C-44")
@pytest.mark.parametrize("verb", ["create", "delete", "lost"])
async def test_what_no_informer_watches_is_not_awaited(server: Server, verb: str) -> None:
    server.put("pods", config_map("web-0"))
    server.put("configmaps", {"metadata": {"name": "out", "namespace": "office"}})
    informers = [server.informer(namespace="shop")]
    if verb != "lost":
        informers.append(server.informer(label_selector="app=x"))
    async with running(server, *informers) as writes:
        client = writes.client(KEY)
        match verb:
            case "create":
                await client.core.v1.configmaps.create({"metadata": {"name": "b", "namespace": "office"}})
                await client.core.v1.pods.create(config_map("web-1"))
                await client.with_options(dry_run=True).core.v1.configmaps.create(config_map("c"))
            case "delete":
                await client.core.v1.configmaps.delete("office/out")
                await client.core.v1.pods.delete("shop/web-0")
            case "lost":
                server.fault = lambda request: "after"
                with pytest.raises(TransportError):
                    await client.core.v1.pods.delete("shop/web-0")
                with pytest.raises(TransportError):
                    await client.core.v1.configmaps.delete("office/out")
        assert not writes.pending(KEY)
        assert len(writes) == 0


@pytest.mark.behaviour("C-45")
async def test_every_informer_of_the_resource_must_show_the_write(server: Server) -> None:
    delays = iter((1.0, 4.0))
    beta: Resource[Any] = Resource("", "v1beta1", "configmaps", "ConfigMap")
    informers = [server.informer(), server.informer(beta), server.informer(PODS)]
    async with running(server, *informers) as writes:
        server.delay = lambda: next(delays)
        await maps_of(writes.client(KEY)).create(config_map("b"))
        assert await settling(writes) >= 4
        assert all(informer.get_indexer().get_by_key("shop/b") for informer in informers[:2])


# Versions that never arrive.


@pytest.mark.behaviour("C-44")
async def test_late_write_causes_no_read_of_what_is_not_watched(server: Server) -> None:
    server.delay = lambda: 7.0
    async with running(server, server.informer(namespace="shop")) as writes:
        await maps_of(writes.client(KEY)).create(config_map("b"))
        await writes.client(KEY).core.v1.configmaps.create({"metadata": {"name": "b", "namespace": "office"}})
        with pytest.raises(StaleCache):
            await writes.settle(KEY)
        await settling(writes)
        assert [read.path for read in server.reads] == ["/api/v1/namespaces/shop/configmaps"]


async def test_stopped_informer_is_no_proof(server: Server) -> None:
    informers = [server.informer()]
    async with running(server, informers[0]) as writes:
        writes._inputs = lambda group, plural: informers
        await maps_of(writes.client(KEY)).create(config_map("b"))
        await informers[0].__aexit__(None, None, None)
        with pytest.raises(StaleCache, match="has stopped"):
            await writes.settle(KEY)
        async with server.informer(label_selector="app=x") as informers[0]:
            await settling(writes)
