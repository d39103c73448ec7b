"""Objects of the primary that the user's class cannot decode, in virtual time."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.controller import Controller, Request, Result, finalizing
from aioinformer.errors import DecodeError, UsageError
from aioinformer.events import FakeRecorder
from tests.support.managers import (
    CONFIG_MAPS,
    Runs,
    Server,
    active_of,
    config_map,
    manager_of,
    settled,
    snapshot_of,
    started,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.controller import Manager
    from aioinformer.transport import HttpRequest

CLEANUP = "example.com/cleanup"


def decode(raw: bytes) -> Any:
    if b"broken" in raw:
        raise ValueError("a secret value")
    return json.loads(raw)


def controller_of(runs: Runs, **options: Any) -> Controller[Any]:
    return Controller("it", CONFIG_MAPS, runs, informer={"decoder": decode}, **options)


def broken(name: str = "a", finalizers: tuple[str, ...] = (), **data: str) -> dict[str, Any]:
    made = config_map(name, value="broken", **data)
    made["metadata"]["finalizers"] = list(finalizers)
    return made


def reasons(manager: Manager) -> list[str]:
    return [reason for name, reason in manager.ready().checks.items() if name == "controller it"]


class Handler:
    """A handler that keeps its requests and errors."""

    def __init__(self, controller: Controller[Any]) -> None:
        self.requests: list[Any] = []
        self.errors: list[DecodeError] = []
        controller.undecodable(self)

    async def __call__(self, request: Request[Any], error: DecodeError) -> Any:
        self.requests.append(request)
        self.errors.append(error)


class DeepResponse:
    """A response in which each text "deep" is a list that no decoder reads."""

    def __init__(self, response: Any) -> None:
        self._response = response
        self.status, self.headers, self.close = response.status, response.headers, response.close

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._response.chunks():
            yield chunk.replace(b'"deep"', b"[" * 200_000 + b"]" * 200_000)


class DeepServer(Server):
    async def request(self, request: HttpRequest) -> Any:
        return DeepResponse(await super().request(request))


@pytest.mark.parametrize("first", [True, False], ids=["in the list", "in a watch"])
async def test_object_that_is_nested_too_deeply_leaves_the_manager_ready(first: bool) -> None:
    server = DeepServer()
    seen: list[str] = []

    async def reconcile(request: Request[Any]) -> None:
        assert request.object is not None
        seen.append(request.object.metadata.name)
        with pytest.raises(DecodeError):
            request.object.to_dict()

    if first:
        server.put("configmaps", config_map("a", value="deep"))
    controllers = Controller("it", CONFIG_MAPS, reconcile), Controller("other", CONFIG_MAPS, Runs())
    async with manager_of(server, *controllers) as manager:
        await started()
        if not first:
            server.put("configmaps", config_map("a", value="deep"))
        await settled()
        informer = active_of(manager).inputs.primary
        assert seen == ["a"]
        assert (informer.undecodable(), informer.state.phase) == (
            {"default/a": "the object cannot be read: nested too deeply"},
            "degraded",
        )
        assert "default/a" in str(informer.state)
        assert informer.is_ready()
        assert manager.ready(), manager.ready().reasons
        active_of(manager)._fail(RuntimeError("a bug"))
        await asyncio.sleep(60)
        assert seen == ["a", "a"], "the restarted controller has not run"
        assert active_of(manager).inputs.primary is informer
        assert "default/a" in informer.undecodable()
        assert manager.ready(), manager.ready().reasons


@pytest.mark.behaviour("C-124")
@pytest.mark.parametrize("before", [True, False])
async def test_handler_gets_the_whole_object_and_the_error(before: bool) -> None:
    server, runs = Server(), Runs()
    controller = controller_of(runs)
    handler = Handler(controller)
    if before:
        server.put("configmaps", broken())
    async with manager_of(server, controller) as manager:
        await started()
        if not before:
            server.put("configmaps", broken())
            await settled()
        (request,), (error,) = handler.requests, handler.errors
        assert (request.object["data"], request.object["metadata"]["name"]) == ({"value": "broken"}, "a")
        assert (str(error), error.key) == (
            "default/a cannot be decoded: the decoder refuses it: ValueError",
            "default/a",
        )
        assert (runs.names, manager.ready().reasons) == ([], ())
        server.put("configmaps", config_map("a", value="fixed"))
        await settled()
        assert (runs.names, len(handler.requests)) == (["a"], 1)


@pytest.mark.behaviour("C-124")
async def test_handler_of_a_later_controller_runs_for_known_objects() -> None:
    server = Server()
    server.put("configmaps", broken())
    later = Controller("later", CONFIG_MAPS, Runs(), informer={"decoder": decode})
    handler = Handler(later)
    async with manager_of(server, controller_of(Runs())) as manager:
        await started()
        await manager.add(later)
        await settled()
        assert [request.name for request in handler.requests] == ["a"]


@pytest.mark.behaviour("C-124")
async def test_handler_runs_for_each_version_instead_of_the_reconciler() -> None:
    server, runs = Server(), Runs()
    controller = controller_of(runs)
    handler = Handler(controller)
    server.put("configmaps", config_map("a", value="fine"))
    async with manager_of(server, controller) as manager:
        await started()
        server.put("configmaps", broken())
        await settled()
        server.put("configmaps", broken(other="1"))
        await settled()
        manager.enqueue(controller, "default/a")
        await settled()
        assert (runs.names, [each.object["data"].get("other") for each in handler.requests]) == (
            ["a"],
            [None, "1", "1"],
        )
        server.put("configmaps", config_map("a", value="fine"))
        await settled()
        assert runs.names == ["a", "a"], "although the cache has had this content"
        server.put("configmaps", broken("b"))
        await settled()
        server.remove("configmaps", "default/b")
        await settled()
        assert (runs.names[2:], runs.requests[-1].object) == (["b"], None)


@pytest.mark.behaviour("C-124")
async def test_handler_runs_under_the_rules_of_attempts() -> None:
    server = Server()
    controller = controller_of(Runs(), timeout=5)
    attempts: list[int] = []

    @controller.undecodable
    async def handle(request: Request[Any], error: DecodeError) -> Result | None:
        attempts.append(request.attempt)
        if len(attempts) == 1:
            raise ValueError("no")
        if len(attempts) == 2:
            await asyncio.sleep(100)
        return Result(parked="a person must look") if len(attempts) == 3 else None

    server.put("configmaps", broken())
    async with manager_of(server, controller) as manager:
        await asyncio.sleep(60)
        assert attempts == [1, 2, 3]
        assert snapshot_of(manager)["results"] == {"error": 1, "timeout": 1, "parked": 1}
        assert snapshot_of(manager)["waiting"] == {"default/a": "a person must look"}
        server.put("configmaps", broken(other="1"))
        await settled()
        assert len(attempts) == 4


@pytest.mark.behaviour("C-124")
async def test_handler_waits_for_the_version_that_the_server_has() -> None:
    server, runs = Server(), Runs()
    controller = controller_of(runs)
    handler = Handler(controller)
    delays = iter((5.0, 10.5))
    async with manager_of(server, controller) as manager:
        await started()
        server.delay = lambda: next(delays)
        server.put("configmaps", broken())
        server.put("configmaps", config_map("a", value="fixed"))
        await asyncio.sleep(9)
        assert snapshot_of(manager)["failing"] == {
            "default/a": "0 times, the watch has not delivered the current version of default/a"
        }
        await asyncio.sleep(2)
        assert (handler.requests, runs.names) == ([], ["a"])


@pytest.mark.behaviour("C-125")
async def test_writes_of_a_handler_do_not_wait_for_the_cache() -> None:
    server, cleaned = Server(), []
    controller = controller_of(Runs())

    @controller.undecodable
    async def handle(request: Any, error: DecodeError) -> None:
        async with finalizing(request, CLEANUP) as ending:
            if ending:
                cleaned.append(request.name)

    server.put("configmaps", broken())
    async with manager_of(server, controller) as manager:
        await started()
        held = server.objects["configmaps"]["default/a"]
        assert held["metadata"]["finalizers"] == [CLEANUP]
        assert snapshot_of(manager)["settling"] == []
        server.put(
            "configmaps", {**held, "metadata": {**held["metadata"], "deletionTimestamp": "2025-01-01T00:00:00Z"}}
        )
        await asyncio.sleep(10)
        assert (cleaned, list(snapshot_of(manager)["results"])) == (["a"], ["success"])


@pytest.mark.behaviour("C-126")
async def test_own_write_that_cannot_be_decoded_is_reported() -> None:
    server, events = Server(), FakeRecorder()

    async def reconcile(request: Request[Any]) -> None:
        await request.client.core.v1.configmaps.patch(str(request.key), {"data": {"value": "broken"}})

    controller = Controller("it", CONFIG_MAPS, reconcile, informer={"decoder": decode})
    server.put("configmaps", config_map("a", value="fine"))
    async with manager_of(server, controller, recorder=events) as manager:
        await asyncio.sleep(10)
        assert [event.split()[1] for event in events.events] == ["Undecodable"]
        assert list(map(str, manager.parked(controller))) == ["default/a"]


@pytest.mark.behaviour("C-56", "C-126")
async def test_without_a_handler_the_object_is_reported() -> None:
    server, runs, events = Server(), Runs(), FakeRecorder()
    controller = controller_of(runs)
    server.put("configmaps", config_map("fine", value="fine"))
    async with manager_of(server, controller, recorder=events) as manager:
        await started()
        assert manager.ready()
        server.put("configmaps", broken())
        await settled()
        message = "default/a cannot be decoded: the decoder refuses it: ValueError"
        assert events.events == [f"Warning Undecodable {message}"]
        assert snapshot_of(manager)["parked"] == {"default/a": message}
        assert snapshot_of(manager)["undecodable"] == {"default/a": "the decoder refuses it: ValueError"}
        assert reasons(manager) == ["1 object cannot be decoded (default/a), and no handler is declared for them"]
        server.put("configmaps", broken(other="1"))
        await settled()
        assert (len(events.events), bool(manager.ready())) == (1, False)
        server.put("configmaps", config_map("a", value="fixed"))
        await settled()
        assert (runs.names, manager.ready().reasons) == (["fine", "a"], ())
        assert (snapshot_of(manager)["undecodable"], manager.parked(controller)) == ({}, {})


@pytest.mark.behaviour("C-126")
async def test_undecodable_object_that_is_gone_is_forgotten() -> None:
    server, runs = Server(), Runs()
    controller = controller_of(runs)
    server.put("configmaps", broken())
    async with manager_of(server, controller, recorder=FakeRecorder()) as manager:
        await started()
        assert not manager.ready()
        server.remove("configmaps", "default/a")
        await settled()
        assert (manager.ready().reasons, manager.parked(controller)) == ((), {})
        assert [each.object for each in runs.requests] == [None]


def test_handler_is_checked_when_it_is_declared() -> None:
    controller: Controller[Any] = controller_of(Runs())
    with pytest.raises(
        UsageError, match=r"undecodable is .*lambda.*, which is not async; write `async def undecodable"
    ):
        controller.undecodable(lambda request, error: None)  # type: ignore[arg-type,return-value]
    with pytest.raises(UsageError, match=r"must accept two arguments, the request and the error"):
        controller.undecodable(Runs())  # type: ignore[arg-type]
    Handler(controller)
    with pytest.raises(UsageError, match=r"undecodable has a handler already, Handler"):
        Handler(controller)
