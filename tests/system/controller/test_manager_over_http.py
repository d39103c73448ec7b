"""Managers over HTTP, with the API server of `aioinformer.testing`, and as programs."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import Resource
from aioinformer.backoff import BackoffOptions
from aioinformer.controller import LeaderElection, Manager, Request, Watch, apply_set
from aioinformer.errors import UsageError
from aioinformer.models import core_v1
from aioinformer.reflector.options import ReflectorOptions

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator

    from aioinformer.testing import ApiServer

WIDGETS = Resource("example.com", "v1", "widgets", kind="Widget")
DEFINITION = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


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
    soon = ReflectorOptions(backoff=BackoffOptions(initial=0.01, cap=0.02))

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
        assert widgets.snapshot()["phase"] == "syncing"
        api_server.create("customresourcedefinitions", DEFINITION)
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
            maps.enqueue("three/it")
        api_server.delete("configmaps", "it", "three")
        api_server.delete("configmaps", "it", "two")
        assert await seen.get() == "two"
    paths = {entry.path for entry in api_server.requests if "configmaps" in entry.path}
    assert paths == {f"/api/v1/namespaces/{name}/configmaps" for name in ("one", "two")}


@asynccontextmanager
async def program(mode: str, *arguments: str) -> AsyncIterator[Process]:
    root = Path(__file__).parents[3]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.system.controller.program", *arguments, mode),
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def line(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


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
            assert second.controllers["elected"].snapshot()["phase"] in ("syncing", "standby")
            first.stop()
            assert await seen.get() == ("second", "elected")
