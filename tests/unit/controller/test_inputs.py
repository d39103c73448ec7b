"""Inputs of controllers, in virtual time: what runs a reconciler, and what a run may read."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from aioinformer import SharedInformerFactory
from aioinformer.controller import Controller, Every, Manager, Owns, QueueOptions, Request, Watch
from aioinformer.controller.inputs import Source
from aioinformer.errors import UsageError
from tests.support.managers import (
    CONFIG_MAPS,
    PODS,
    Runs,
    config_map,
    manager_of,
    pod,
    server_with,
    settled,
    snapshot_of,
    started,
)


async def test_owned_watched_and_external_objects_run_the_reconciler() -> None:
    server, runs = server_with("a"), Runs()
    tells: asyncio.Queue[str] = asyncio.Queue()

    async def hook() -> Any:
        while True:
            yield await tells.get()

    controller = Controller(
        "it",
        CONFIG_MAPS,
        runs,
        owns=[Owns(PODS)],
        watches=[Watch(PODS, to=lambda pod: "default/watching", label_selector="app=web")],
        sources=[Source(hook), Every(600)],
    )
    async with manager_of(server, controller):
        await started()
        uid = server.objects["configmaps"]["default/a"]["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": uid, "controller": True}
        server.put("pods", {"metadata": {"name": "p", "namespace": "default", "ownerReferences": [owner]}})
        await settled()
        server.put("pods", {"metadata": {"name": "q", "namespace": "default", "labels": {"app": "web"}}})
        await settled()
        tells.put_nowait("default/told")
        await settled()
        assert runs.names == ["a", "a", "watching", "told"]
        assert [request.causes[0].trigger for request in runs.requests] == ["initial", "added", "added", "source"]
        assert [pod.metadata.name for pod in runs.requests[1].owned(PODS)] == ["p"]
        await asyncio.sleep(1200)
        assert runs.requests[-1].causes[0].trigger == "resync"


async def test_resync_period_of_the_manager_is_the_default() -> None:
    runs, own = Runs(), Runs()
    controllers = [Controller("it", CONFIG_MAPS, runs), Controller("own", PODS, own, sources=[Every(1000)])]
    server = server_with("a")
    server.put("pods", pod("p"))
    async with manager_of(server, *controllers, resync_period=60):
        await asyncio.sleep(150)
        assert [each.causes[0].trigger for each in runs.requests] == ["initial", "resync", "resync"]
        assert own.names == ["p"]  # its timer replaces the resyncs of the manager


async def test_informers_of_an_embedding_service_are_used() -> None:
    server, runs = server_with("a"), Runs()
    async with SharedInformerFactory(server) as factory:
        informer = factory.informer_for(CONFIG_MAPS)
        factory.start()
        async with manager_of(server, Controller("it", CONFIG_MAPS, runs), factory=factory):
            await started()
            assert runs.names == ["a"]
        assert informer.is_ready()
        server.put("configmaps", config_map("b"))
        await settled()
        assert runs.names == ["a"]
        manager = Manager("again", [Controller("it", CONFIG_MAPS, runs)], factory=factory)
        async with manager:
            await started()
            assert runs.names == ["a", "a", "b"]


@pytest.mark.behaviour("C-30")
@pytest.mark.behaviour("C-118")
async def test_snapshot_counts_errors_of_mapping_functions_and_lost_changes() -> None:
    def broken(pod: Any) -> str:
        raise KeyError

    server = server_with("a")
    watches = [Watch(PODS, to=broken), Watch(PODS, to=broken)]
    async with manager_of(server, Controller("it", CONFIG_MAPS, Runs(), watches=watches)) as manager:
        await started()
        for number in range(9):
            server.put("pods", pod(f"p{number}"))
        await settled()
        snapshot = manager.snapshot()
        assert snapshot["controllers"]["it"]["input_errors"] == {"Watch(pods)": 18}
        assert snapshot["controllers"]["it"]["lost_changes"] == {}
        assert snapshot["informers"] is not None
        handlers = snapshot["informers"]["informers"]["v1/pods"]["handlers"]
        assert [each["errors"] for each in handlers] == [9, 9]  # metrics show these
        await asyncio.sleep(300)
        assert manager.snapshot()["controllers"]["it"]["lost_changes"] == {"Watch(pods)": 18}


@pytest.mark.behaviour("C-50")
async def test_no_run_before_all_inputs_have_synced() -> None:
    server, runs = server_with("a"), Runs()
    slow = asyncio.Event()
    answer = server.request

    async def request(request: Any) -> Any:
        if "pods" in request.path:
            await slow.wait()
        return await answer(request)

    server.request = request  # type: ignore[method-assign]
    controller = Controller("it", CONFIG_MAPS, runs, owns=[PODS])
    async with manager_of(server, controller) as manager:
        await asyncio.sleep(60)
        assert snapshot_of(manager)["phase"] == "syncing"
        assert snapshot_of(manager)["waits_for"] == ["informer of pods: syncing"]
        assert runs.names == []
        slow.set()
        await started()
        assert runs.names == ["a"]


@pytest.mark.parametrize("which", ["group", "when", "to"])
async def test_functions_of_users_are_called_by_the_task_of_the_handler(which: str) -> None:
    """So a slow one is named in the log, and does not hold up the informer."""
    server, tasks = server_with("a"), set[str]()

    def noted(*arguments: Any) -> Any:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task.get_name())
        return "default/a"

    queue = QueueOptions(group=noted) if which == "group" else None
    when = noted if which == "when" else None
    watches = [Watch(PODS, to=noted)] if which == "to" else []
    controller = Controller("it", CONFIG_MAPS, Runs(), when=when, queue=queue, watches=watches)
    async with manager_of(server, controller):
        await started()
        server.put("configmaps", config_map("a", size="2"))
        server.put("pods", pod("b"))
        await settled()
    assert tasks
    assert all(re.search(r"handler \d+ .*: run$", each) for each in tasks), tasks


@pytest.mark.behaviour("C-57")
async def test_keys_outside_of_the_namespaces_do_not_run() -> None:
    runs = Runs()
    elsewhere = Watch(PODS, to=lambda pod: ["other/a", "default/b"])
    controller = Controller("it", CONFIG_MAPS, runs, watches=[elsewhere], informer={"namespace": "default"})
    server = server_with("a")
    server.put("pods", {"metadata": {"name": "p", "namespace": "default"}})
    async with manager_of(server, controller) as manager:
        await started()
        with pytest.raises(UsageError, match="controller it does not watch the namespace of other/a"):
            manager.enqueue(controller, "other/a")
        with pytest.raises(UsageError, match="controller it: 'a' is no key of configmaps, which are namespaced"):
            manager.enqueue(controller, "a")
        assert sorted(f"{each.namespace}/{each.name}" for each in runs.requests) == ["default/a", "default/b"]


@pytest.mark.behaviour("C-61")
async def test_reads_of_resources_that_are_no_inputs_are_refused() -> None:
    messages: list[str] = []

    async def reconcile(request: Request[Any]) -> None:
        for read in (request.lister, request.owned):
            with pytest.raises(UsageError) as refusal:
                read(PODS)
            messages.append(str(refusal.value))

    async with manager_of(server_with("a"), Controller("it", CONFIG_MAPS, reconcile)):
        await started()
    assert messages == [
        "controller it does not watch v1/pods (inputs: v1/configmaps): add it to owns or watches",
        "controller it does not watch v1/pods: add it to owns",
    ]


@pytest.mark.behaviour("C-117")
async def test_inputs_of_one_resource_are_distinguished_by_declaration() -> None:
    pods = Watch(PODS, to=lambda pod: ["default/a"], label_selector="app=a")
    others, unknown = Owns(PODS, label_selector="app=b"), Watch(PODS, to=lambda pod: [])
    found: list[Any] = []

    async def reconcile(request: Request[Any]) -> None:
        with pytest.raises(UsageError) as refusal:
            request.lister(PODS)
        found.append(str(refusal.value))
        with pytest.raises(UsageError, match=r"controller it does not have this Watch\(pods\): add it to"):
            request.lister(unknown)
        for each in (pods, others, controller.primary()):
            found.append([obj.metadata.name for obj in request.lister(each).list()])

    server = server_with("a")
    for app in "ab":
        server.put("pods", {"metadata": {"name": f"of-{app}", "namespace": "default", "labels": {"app": app}}})
    controller = Controller("it", CONFIG_MAPS, reconcile, owns=[others], watches=[pods])
    async with manager_of(server, controller):
        await started()
    assert found[:4] == [
        "controller it has several inputs of v1/pods with different caches: Owns(pods, label_selector='app=b'), "
        "Watch(pods, label_selector='app=a'); pass one of these declarations instead of the resource",
        ["of-a"],
        ["of-b"],
        ["a"],
    ]


@pytest.mark.behaviour("C-117")
async def test_inputs_with_one_cache_need_no_choice() -> None:
    found: list[int] = []

    async def reconcile(request: Request[Any]) -> None:
        found.append(len(request.lister(CONFIG_MAPS).list()))

    twin = Watch(CONFIG_MAPS, to=lambda obj: [])
    async with manager_of(server_with("a"), Controller("it", CONFIG_MAPS, reconcile, watches=[twin])):
        await started()
    assert found == [1]
