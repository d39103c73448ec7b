"""Managers over HTTP, with the API server of `aioinformer.testing`, and as programs."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from aioinformer import Resource, RunOptions, SharedInformerFactory
from aioinformer.backoff import BackoffOptions
from aioinformer.controller import LeaderElection, Manager, Request, Watch, apply_set, finalizing
from aioinformer.errors import UsageError
from aioinformer.models import ObjectMeta, core_v1
from aioinformer.prometheus import PrometheusMetrics
from tests.support.bench import CLEANUP, WIDGETS, definition
from tests.support.loopback import get
from tests.system.controller.processes import line, program

if TYPE_CHECKING:
    from aioinformer.errors import DecodeError
    from aioinformer.testing import ApiServer


def config_map(name: str, namespace: str = "default") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}}


async def test_reconciler_makes_a_child_and_sees_it(api_server: ApiServer) -> None:
    manager = Manager("shop", client=api_server.url)
    seen: asyncio.Queue[list[str]] = asyncio.Queue()

    @manager.controller(core_v1.CONFIG_MAPS, owns=[core_v1.SECRETS])
    async def maps(request: Request[Any]) -> None:
        if request.name != "parent":
            return
        children = [each.metadata.name for each in request.owned(core_v1.SECRETS)]
        seen.put_nowait(children)
        if not children:
            owner = {**request.reference.to_dict(), "controller": True}
            del owner["namespace"]
            await request.client.core.v1.secrets.create(
                {"metadata": {"name": "child", "namespace": request.namespace, "ownerReferences": [owner]}}
            )
            request.event("Created", "it made a child")

    async with manager:
        api_server.create("configmaps", config_map("parent"))
        assert await seen.get() == []
        assert await seen.get() == ["child"]
    (event,) = api_server.list("events")
    assert (event["involvedObject"]["name"], event["message"]) == ("parent", "it made a child")
    assert event["source"]["component"] == "shop"
    (entry,) = api_server.get("secrets", "child", "default")["metadata"]["managedFields"]
    assert entry["manager"] == "maps"


@pytest.mark.behaviour("C-117")
async def test_set_is_compared_with_what_the_controller_owns(api_server: ApiServer) -> None:
    manager = Manager("shop", client=api_server.url)
    applied: asyncio.Queue[int] = asyncio.Queue()
    others = Watch(core_v1.SECRETS, to=lambda obj: [], label_selector="nothing=has-it")

    @manager.controller(core_v1.CONFIG_MAPS, owns=[core_v1.SECRETS], watches=[others])
    async def maps(request: Request[Any]) -> None:
        if request.name == "parent":
            child = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "child"}}
            applied.put_nowait((await apply_set(request, [child], resources=[core_v1.SECRETS])).sent)

    async with manager:
        api_server.create("configmaps", config_map("parent"))
        assert (await applied.get(), await applied.get()) == (1, 0)


@pytest.mark.behaviour("C-70")
async def test_kind_that_is_not_served_delays_its_controller_alone(api_server: ApiServer) -> None:
    manager = Manager("shop", client=api_server.url)
    seen: asyncio.Queue[str] = asyncio.Queue()
    soon = RunOptions(backoff=BackoffOptions(initial=0.01, cap=0.02))

    @manager.controller(WIDGETS, informer={"options": soon})
    async def widgets(request: Request[Any]) -> None:
        seen.put_nowait(f"widget {request.name}")

    @manager.controller(core_v1.CONFIG_MAPS)
    async def maps(request: Request[Any]) -> None:
        if request.name == "other":
            seen.put_nowait(f"config map {request.name}")

    async with manager:
        api_server.create("configmaps", config_map("other"))
        assert await seen.get() == "config map other"
        assert manager.snapshot()["controllers"]["widgets"]["phase"] == "syncing"
        api_server.create("customresourcedefinitions", definition())
        api_server.create(WIDGETS, {"metadata": {"name": "it", "namespace": "default"}})
        assert await seen.get() == "widget it"


@pytest.mark.behaviour("C-71")
async def test_several_namespaces_are_watched_one_by_one(api_server: ApiServer) -> None:
    for namespace in ("one", "two", "three"):
        api_server.create("namespaces", {"metadata": {"name": namespace}})
        api_server.create("configmaps", config_map("it", namespace))
    manager = Manager("shop", client=api_server.url, namespaces=["one", "two"])
    seen: asyncio.Queue[str] = asyncio.Queue()

    @manager.controller(core_v1.CONFIG_MAPS)
    async def maps(request: Request[Any]) -> None:
        if request.name == "it":
            seen.put_nowait(request.namespace)

    async with manager:
        assert {await seen.get(), await seen.get()} == {"one", "two"}
        with pytest.raises(UsageError, match="does not watch the namespace of three/it"):
            manager.enqueue(maps, "three/it")
        api_server.delete("configmaps", "it", "three")
        api_server.delete("configmaps", "it", "two")
        assert await seen.get() == "two"
    paths = {entry.path for entry in api_server.requests if "configmaps" in entry.path}
    assert paths == {f"/api/v1/namespaces/{name}/configmaps" for name in ("one", "two")}


@pytest.mark.behaviour("C-66")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_program_lets_attempts_finish_after_a_signal(api_server: ApiServer, number: signal.Signals) -> None:
    api_server.create("configmaps", config_map("it"))
    async with program("slow", api_server.url) as process:
        while await line(process) != "begins it":
            pass
        process.send_signal(number)
        output, log = await process.communicate()
        assert process.returncode == 0
        assert "ends it" in output.decode()
        assert f"{number.name}: stopping within 3600 s" in log.decode()
        assert f"because of signal {number.name}: " in log.decode()


@pytest.mark.behaviour("C-66")
@pytest.mark.parametrize("mode", ["endless", "stubborn"])
async def test_second_signal_ends_the_program_at_once(api_server: ApiServer, mode: str) -> None:
    api_server.create("configmaps", config_map("it"))
    async with program(mode, api_server.url) as process:
        while await line(process) != "begins it":
            pass
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        while b"stopping within" not in await process.stderr.readline():
            pass
        process.send_signal(signal.SIGTERM)
        output, log = await process.communicate()
        assert process.returncode == 0
        assert "cancelled it" in output.decode()
        assert ("abandoned" in log.decode()) is (mode == "stubborn")


@pytest.mark.behaviour("C-66")
async def test_second_signal_ends_a_program_whose_event_loop_is_blocked(api_server: ApiServer) -> None:
    api_server.create("configmaps", config_map("it"))
    async with program("blocked", api_server.url) as process:
        await line(process)
        process.send_signal(signal.SIGINT)
        await asyncio.sleep(1.5)
        process.send_signal(signal.SIGINT)
        _, log = await process.communicate()
        assert process.returncode == 0
        assert "SIGINT again while the event loop is blocked at controller/program.py:" in log.decode()


@pytest.mark.behaviour("C-67")
async def test_program_exits_with_1_after_a_failure_for_good(api_server: ApiServer) -> None:
    api_server.create("configmaps", config_map("it"))
    async with program("fails", api_server.url) as process:
        _, log = await process.communicate()
        assert process.returncode == 1
        assert "manager program has failed: controller maps has failed: a bug" in log.decode()


async def test_program_without_a_cluster_exits_with_2() -> None:
    async with program("quick") as process:
        _, log = await process.communicate()
        assert process.returncode == 2
        assert "no cluster found" in log.decode()


async def test_standby_takes_over_and_runs_all_keys(api_server: ApiServer) -> None:
    api_server.create("configmaps", config_map("it"))
    seen: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def replica(name: str) -> Manager:
        manager = Manager("shop", client=api_server.url, leader_election=LeaderElection("shop", identity=name))

        @manager.controller(core_v1.CONFIG_MAPS)
        async def elected(request: Request[Any]) -> None:
            if request.name == "it" and request.term is not None:
                seen.put_nowait((name, "elected"))

        @manager.controller(core_v1.CONFIG_MAPS, elected=False)
        async def always(request: Request[Any]) -> None:
            if request.name == "it" and request.term is None:
                seen.put_nowait((name, "always"))

        return manager

    async with replica("first") as first:
        assert {await seen.get(), await seen.get()} == {("first", "elected"), ("first", "always")}
        second = replica("second")
        async with second:
            assert await seen.get() == ("second", "always")
            assert second.snapshot()["controllers"]["elected"]["phase"] in ("syncing", "standby")
            first.stop()
            assert await seen.get() == ("second", "elected")


class Spec(msgspec.Struct, frozen=True):
    size: int


class Widget(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: Spec


TYPED = Resource("example.com", "v1", "widgets", kind="Widget", decoder=Widget)


def widget(name: str, size: Any, *finalizers: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "finalizers": list(finalizers)}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": size}}


@pytest.mark.behaviour("C-126")
async def test_event_metric_and_probe_tell_of_a_widget(api_server: ApiServer, unused_tcp_port: int) -> None:
    api_server.create("customresourcedefinitions", definition())
    api_server.create("widgets", widget("bad", "a secret value"))
    options: dict[str, Any] = {"metrics": PrometheusMetrics(registry=CollectorRegistry())}
    manager = Manager("shop", client=api_server.url, health_host="127.0.0.1", health_port=unused_tcp_port, **options)
    sizes: asyncio.Queue[int] = asyncio.Queue()

    @manager.controller(TYPED)
    async def widgets(request: Request[Widget]) -> None:
        if request.object is not None:
            sizes.put_nowait(request.object.spec.size)

    async with asyncio.timeout(50), SharedInformerFactory(api_server.url) as factory, manager:
        events: asyncio.Queue[Any] = asyncio.Queue()
        factory.core.v1.events.informer().add_event_handler(on_add=events.put_nowait)
        factory.start()
        event = await events.get()
        assert (event.type, event.reason) == ("Warning", "Undecodable")
        assert event.involved_object.uid == api_server.get("widgets", "bad")["metadata"]["uid"]
        assert "spec.size" in event.message
        assert "secret" not in event.message
        status, text = await get(unused_tcp_port, "/readyz")
        assert status == 503
        assert "controller widgets failed: 1 object cannot be decoded (default/bad), and no handler" in text
        metrics = (await get(unused_tcp_port, "/metrics"))[1].splitlines()
        assert [each[-4:] for each in metrics if each.startswith("informer_undecodable_objects{")] == [" 1.0"]
        api_server.patch("widgets", "bad", {"spec": {"size": 3}})
        assert await sizes.get() == 3
        assert (await get(unused_tcp_port, "/readyz"))[0] == 200


@pytest.mark.behaviour("C-125")
async def test_handler_lets_a_deleted_widget_go(api_server: ApiServer) -> None:
    api_server.create("customresourcedefinitions", definition())
    api_server.create("widgets", widget("bad", "large", CLEANUP))
    api_server.delete("widgets", "bad")
    manager = Manager("shop", client=api_server.url)
    sizes: list[Any] = []

    @manager.controller(TYPED)
    async def widgets(request: Request[Widget]) -> None:
        if request.object is None:
            manager.stop()

    @widgets.undecodable
    async def release(request: Request[Any], error: DecodeError) -> None:
        async with finalizing(request, CLEANUP) as ending:
            if ending and request.object is not None:
                sizes.append(request.object["spec"]["size"])

    async with asyncio.timeout(50):
        await manager.run()
    assert (sizes, api_server.list("widgets")) == (["large"], [])
