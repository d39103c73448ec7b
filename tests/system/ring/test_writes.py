"""Which writes a replica of a ring sends, and which are refused before their bytes leave."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.controller import Owns, Request, apply_set, finalizing, set_status
from aioinformer.errors import AioinformerError, ApiError, ApiNotFound
from aioinformer.models import core_v1
from aioinformer.ring import SlotLost
from tests.system.ring.replicas import Replica, do_nothing, owners, settled, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Mapping

    from aioinformer.testing import ApiServer


def reference(server: ApiServer, key: str) -> dict[str, Any]:
    """Return the owner reference that makes a ConfigMap a controller."""
    name = key.rpartition("/")[2]
    uid = server.get("configmaps", name, "default")["metadata"]["uid"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "controller": True}


def secret(name: str, *references: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "ownerReferences": list(references)}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


@pytest.fixture
async def pair(server: ApiServer) -> AsyncIterator[list[Replica]]:
    """Provide two replicas that share the objects, and the Secrets that have any of them as an owner."""
    pair = [Replica(server, name, owns=[Owns(core_v1.SECRETS, controller_only=False)]) for name in "ab"]
    for each in pair:
        await each.start()
    await until(lambda: settled(server, *pair))
    yield pair
    for each in pair:
        each.transport.refused = ""
        await each.stop()
        await each.transport.aclose()


async def outcomes(writes: Mapping[str, Awaitable[Any]]) -> dict[str, BaseException | None]:
    results: dict[str, BaseException | None] = {}
    for name, write in writes.items():
        try:
            await write
            results[name] = None
        except AioinformerError as error:
            results[name] = error
    return results


@pytest.mark.behaviour("C-136")
async def test_writes_in_foreign_slots_are_refused(server: ApiServer, pair: list[Replica]) -> None:
    mine, theirs = (f"default/{min(owners(server)[name])}" for name in "ab")
    name = theirs.partition("/")[2]
    server.create("secrets", secret("theirs", reference(server, theirs)))
    server.create("secrets", secret("mine", reference(server, mine)))
    results: dict[str, BaseException | None] = {}
    foreign: dict[str, BaseException | None] = {}

    async def probe(request: Request[Any]) -> None:
        configmaps, secrets = request.client.core.v1.configmaps, request.client.core.v1.secrets
        whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
        foreign.update(
            await outcomes(
                {
                    "patch": configmaps.patch(theirs, {"data": {"probe": "1"}}),
                    "json patch": configmaps.patch(theirs, [{"op": "remove", "path": "/data"}], "json"),
                    "apply": configmaps.apply(whole),
                    "replace": configmaps.replace(whole),
                    "delete": configmaps.delete(theirs),
                    "collection": configmaps.delete_collection(namespace="default", label_selector="app=web"),
                    "child": secrets.patch("default/theirs", {"data": {"probe": "MQ=="}}),
                    "deletion of a child": secrets.delete("default/theirs"),
                    "new child": secrets.create(secret("new", reference(server, theirs))),
                    "children": secrets.delete_collection(namespace="default", label_selector="app=web"),
                }
            )
        )
        outside = request.client.outside_ring().core.v1
        results.update(
            await outcomes(
                {
                    "own child": secrets.patch("default/mine", {"data": {"probe": "MQ=="}}),
                    "new own child": secrets.create(secret("new", reference(server, mine))),
                    "no child": secrets.create(secret("free")),
                    "new object": configmaps.create({"metadata": {"name": "new", "namespace": "default"}}),
                    "outside": outside.configmaps.patch(theirs, {"data": {"probe": "outside"}}),
                    "child outside": outside.secrets.patch("default/theirs", {"data": {"probe": "MQ=="}}),
                }
            )
        )

    session = pair[0].manager._session
    assert session is not None
    cached = session.controllers["widgets"].active.inputs.of(core_v1.SECRETS).informer.get_indexer()
    await until(lambda: {"default/mine", "default/theirs"} <= set(cached.list_keys()))
    await pair[0].run(mine, probe)
    assert {what: type(error) for what, error in foreign.items()} == dict.fromkeys(foreign, SlotLost)
    assert len(foreign) == 10
    assert results == dict.fromkeys(results)
    assert server.get("configmaps", name, "default")["data"]["probe"] == "outside"


@pytest.mark.behaviour("C-136")
async def test_a_child_that_is_in_no_cache_is_read_before_it_is_written_to(server: ApiServer) -> None:
    pair = [Replica(server, name, owns=[Owns(core_v1.SECRETS)]) for name in "ab"]
    for each in pair:
        await each.start()
    await until(lambda: settled(server, *pair))
    mine, theirs = (f"default/{min(owners(server)[name])}" for name in "ab")
    server.create("secrets", secret("theirs", reference(server, theirs)))
    server.create("secrets", secret("free"))
    refused: dict[str, BaseException | None] = {}
    sent: dict[str, BaseException | None] = {}

    async def probe(request: Request[Any]) -> None:
        secrets = request.client.core.v1.secrets
        plain = {key: value for key, value in secret("theirs").items() if key != "metadata"}
        plain["metadata"] = {"name": "theirs", "namespace": "default"}
        refused.update(
            await outcomes(
                {
                    "patch": secrets.patch("default/theirs", {"data": {"probe": "MQ=="}}),
                    "adoption": secrets.patch(
                        "default/theirs", {"metadata": {"ownerReferences": [reference(server, mine)]}}
                    ),
                    "apply": secrets.apply(plain),
                    "replace": secrets.replace({**secret("theirs", reference(server, mine))}),
                    "delete": secrets.delete("default/theirs"),
                }
            )
        )
        async with server.fault("not_found", resources=["secrets"], verbs=["get"]):  # the server is starting
            refused.update(await outcomes({"not served": secrets.apply(plain)}))
        sent.update(
            await outcomes(
                {
                    "free": secrets.patch("default/free", {"data": {"probe": "MQ=="}}),
                    "new": secrets.apply({**secret("new", reference(server, mine))}),
                    "missing": secrets.delete("default/missing"),
                }
            )
        )

    await pair[0].run(mine, probe)
    assert type(refused.pop("not served")) is ApiNotFound
    assert {what: type(error) for what, error in refused.items()} == dict.fromkeys(refused, SlotLost)
    assert len(refused) == 5
    stored = server.get("secrets", "theirs", "default")
    assert ("data" in stored, stored["metadata"]["ownerReferences"]) == (False, [reference(server, theirs)])
    assert sent["free"] is None
    assert sent["new"] is None
    assert isinstance(sent["missing"], ApiNotFound)
    for each in pair:
        await each.stop()
        await each.transport.aclose()


@pytest.mark.behaviour("C-135")
async def test_no_write_after_the_renew_deadline(server: ApiServer, pair: list[Replica]) -> None:
    name = min(owners(server)["a"])
    late: dict[str, BaseException | None] = {}

    async def probe(request: Request[Any]) -> None:
        pair[0].transport.refused = "/leases"  # and nothing else: what is written would arrive
        while pair[0].ring["remaining"] > 0:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.05)
        child = secret("late")
        del child["metadata"]["ownerReferences"]

        async def finalize() -> None:
            async with finalizing(request, "example.com/late"):
                pass

        configmaps, outside = request.client.core.v1.configmaps, request.client.outside_ring().core.v1
        late.update(
            await outcomes(
                {
                    "own object": configmaps.patch(str(request.key), {"data": {"late": "1"}}),
                    "child": request.client.core.v1.secrets.create(child),
                    "set": apply_set(request, [child], resources=[core_v1.SECRETS]),
                    "empty set": apply_set(request, [], resources=[core_v1.SECRETS]),
                    "finalizer": finalize(),
                    "status": set_status(request, ready=True),
                    "outside": outside.configmaps.patch("default/other", {"data": {"late": "1"}}),
                }
            )
        )

    server.create("secrets", secret("old", reference(server, name)))
    server.create("configmaps", {"metadata": {"name": "other"}})
    await until(lambda: server.get("secrets", "old", "default"))
    await pair[0].run(f"default/{name}", probe)
    empty = late.pop("empty set")
    assert empty is None or isinstance(empty, SlotLost)  # it deletes nothing that it has not applied
    assert {what: type(error) for what, error in late.items()} == dict.fromkeys(late, SlotLost)
    assert "late" not in server.get("configmaps", "other", "default").get("data", {})
    assert {each["metadata"]["name"] for each in server.list("secrets")} == {"old"}


@pytest.mark.behaviour("C-136")
async def test_evictions_stay_in_the_slots(api_server: ApiServer) -> None:
    pods = [f"p{number:02}" for number in range(20)]

    def create(name: str, **labels: str) -> None:
        containers = [{"name": "c", "image": "c"}]
        api_server.create("pods", {"metadata": {"name": name, "labels": labels}, "spec": {"containers": containers}})

    for name in pods:
        create(name, app="web")
    async with Replica(api_server, "a", core_v1.PODS) as first, Replica(api_server, "b", core_v1.PODS) as second:
        for each in (first, second):
            each.instead = {f"default/{name}": do_nothing for name in pods}
        await until(lambda: len(first.ring["mine"]) == len(second.ring["mine"]) == 8)
        await until(lambda: len(first.runs.keys() | second.runs.keys()) == len(pods))
        keys = {each: sorted(each.cached()) for each in (first, second)}
        await until(lambda: sum(len(each.cached()) for each in keys) == len(pods))
        mine, theirs = (min(each.cached()) for each in (first, second))
        results: dict[str, BaseException | None] = {}

        async def probe(request: Request[Any]) -> None:
            api_server.delete("pods", request.name, "default")
            create(request.name)
            evicting = {"theirs": request.client.core.v1.pods.evict(theirs)}
            evicting["successor"] = request.client.core.v1.pods.evict(str(request.key))
            results.update(await outcomes(evicting))

        await first.run(mine, probe)
    assert isinstance(results["theirs"], SlotLost)
    assert isinstance(results["successor"], ApiError)
    assert {each["metadata"]["name"] for each in api_server.list("pods")} == set(pods)


@pytest.mark.behaviour("C-137")
@pytest.mark.parametrize("write", ["patch", "json patch", "delete", "apply", "replace"])
async def test_run_for_a_former_object_does_not_reach_its_successor(
    server: ApiServer, shared: list[Replica], write: str
) -> None:
    name = min(owners(server)["a"])
    result: list[Any] = []

    async def probe(request: Request[Any]) -> None:
        configmaps = request.client.core.v1.configmaps
        server.delete("configmaps", name, "default")
        server.create("configmaps", {"metadata": {"name": name}})  # it does not match the selector of the controller
        try:
            if write == "patch":
                await configmaps.patch(name, {"data": {"by": "former"}}, namespace="default")
            elif write == "json patch":
                patch = [{"op": "add", "path": "/data", "value": {"by": "former"}}]
                await configmaps.patch(name, patch, "json", namespace="default")
            elif write == "delete":
                await configmaps.delete(name, namespace="default")
            elif write == "apply":
                obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
                await configmaps.apply({**obj, "data": {"by": "former"}})
            else:
                await configmaps.replace({"metadata": {"name": name, "namespace": "default"}, "data": {"by": "former"}})
        except AioinformerError as error:
            result.append(error)
        else:
            result.append(None)

    shared[0].instead[f"default/{name}"] = probe
    shared[0].manager.enqueue(shared[0].manager.controllers["widgets"], f"default/{name}")
    await until(lambda: result)
    assert isinstance(result[0], ApiError)
    assert "data" not in server.get("configmaps", name, "default")


@pytest.mark.behaviour("C-136")
async def test_run_that_writes_in_a_foreign_slot_is_retried_with_backoff(
    server: ApiServer, pair: list[Replica], caplog: pytest.LogCaptureFixture
) -> None:
    first, _ = pair
    mine, theirs = (sorted(owners(server)[name])[0] for name in "ab")
    runs = 0

    async def reconcile(request: Request[Any]) -> None:
        nonlocal runs
        runs += 1
        first.instead[f"default/{mine}"] = reconcile
        await request.client.core.v1.configmaps.patch(f"default/{theirs}", {"data": {"by": "a"}})

    await first.run(f"default/{mine}", reconcile)
    await asyncio.sleep(0.5)
    assert 1 <= runs < 20
    first.instead.clear()
    assert "failed with SlotLost: patch configmaps" in caplog.text
