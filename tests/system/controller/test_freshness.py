"""Stale caches: readiness, reads, and runs that may not delete, over HTTP."""

from __future__ import annotations

import asyncio
import pickle
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import Indexer, Lister, SharedInformerFactory, Stale
from aioinformer.controller import Controller, Manager, Request, Watch, finalizing
from aioinformer.errors import ApiError, OptionError, UsageError
from aioinformer.models import core_v1
from tests.support.bench import CLEANUP, WIDGETS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aioinformer.testing import ApiServer
    from tests.support.bench import Bench


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(50):
        while not condition():  # noqa: ASYNC110 - a state of the wall clock
            await asyncio.sleep(0.01)


@asynccontextmanager
async def blind(server: ApiServer, *resources: str) -> AsyncIterator[None]:
    """Refuse lists and watches of resources, and end the watches."""
    faults = {"resources": list(resources), "verbs": ["list", "watch"]}
    async with server.fault("forbidden", **faults):
        await server.fault("cut", resources=list(resources), times=1)
        for resource in resources:
            server.create(resource, {"metadata": {"name": "a-change", "namespace": "default"}, "spec": {"size": 1}})
        yield


def caches(manager: Manager) -> dict[str, Any]:
    informers = manager.snapshot()["informers"]
    assert informers is not None
    return {each["resource"]: each for each in informers["informers"].values()}


def is_stale(manager: Manager, gvr: str) -> bool:
    cache = caches(manager)[gvr]
    return cache["stale_since"] is not None and cache["phase"] == "forbidden"


@pytest.mark.parametrize("owned", ["delete", "delete_collection", "evict"])
async def test_no_delete_is_sent_while_an_input_is_stale(
    api_server: ApiServer, owned: str, caplog: pytest.LogCaptureFixture
) -> None:
    refused: list[Stale] = []
    manager = Manager("shop", client=api_server.url, max_staleness=0.0)

    @manager.controller(core_v1.CONFIG_MAPS, watches=[Watch(core_v1.SECRETS, to=lambda obj: [])])
    async def maps(request: Request[Any]) -> None:
        if request.name != "parent" or request.object is None or request.object.data is None:
            return
        core = request.client.core.v1
        await core.services.patch("default/kept", {"metadata": {"labels": {"seen": "yes"}}})
        try:
            if owned == "delete":
                await core.services.delete("default/kept")
            elif owned == "delete_collection":
                await core.services.delete_collection({"seen": "yes"}, namespace="default")
            else:
                await core.pods.evict("default/kept")
        except Stale as error:
            refused.append(error)
            raise
        except ApiError:
            pass

    api_server.create("services", {"metadata": {"name": "kept", "namespace": "default"}, "spec": {"ports": []}})
    api_server.create("configmaps", {"metadata": {"name": "parent", "namespace": "default"}})
    async with manager:
        await until(lambda: manager.ready())
        async with blind(api_server, "secrets"):
            await until(lambda: is_stale(manager, "v1/secrets"))
            assert "cache v1/secrets: not fresh" in str(manager.ready())
            api_server.requests.clear()
            api_server.patch("configmaps", "parent", {"data": {"run": "now"}}, "default")
            await until(lambda: refused)
            await until(lambda: manager.snapshot()["controllers"]["maps"]["failing"])
            snapshot = manager.snapshot()["controllers"]["maps"]
            assert "informer of secrets has not followed the server for" in snapshot["failing"]["default/parent"]
            assert "forbidden" in snapshot["failing"]["default/parent"]
            assert (snapshot["results"]["stale"], snapshot["delayed"]) == (1, 1)
            assert "attempt 1 for default/parent failed: informer of secrets has not followed" in caplog.text
            sent = {entry.verb for entry in api_server.requests if entry.resource in ("services", "pods")}
            assert sent == {"patch"}
            assert (refused[0].age >= 0, "forbidden" in refused[0].cause) == (True, True)
        await until(lambda: caches(manager)["v1/secrets"]["healthy"])
        manager.enqueue(manager.controllers["maps"], "default/parent")
        await until(lambda: manager.snapshot()["controllers"]["maps"]["results"].get("success", 0) >= 2)
    sent = {entry.verb for entry in api_server.requests if entry.resource in ("services", "pods")}
    assert sent - {"patch", "get"}, "the delete is sent once the input is fresh"


async def test_cleanup_of_a_finalizer_waits_for_fresh_inputs(bench: Bench) -> None:
    cleaned: list[str] = []
    manager = Manager("shop", client=bench.server.url, max_staleness=0.0)
    watches = [Watch(core_v1.SECRETS, to=lambda obj: [])]

    @manager.controller(WIDGETS, watches=watches)
    async def widgets(request: Request[Any]) -> None:
        async with finalizing(request, CLEANUP) as ending:
            if ending:
                cleaned.append(request.name)

    async with manager:
        await until(lambda: bench.widget()["metadata"].get("finalizers"))
        async with blind(bench.server, "secrets"):
            await until(lambda: is_stale(manager, "v1/secrets"))
            bench.server.delete("widgets", "web")
            await until(lambda: manager.snapshot()["controllers"]["widgets"]["results"].get("stale"))
            assert cleaned == []
            assert bench.widget()["metadata"]["finalizers"] == [CLEANUP]
        await until(lambda: caches(manager)["v1/secrets"]["healthy"])
        manager.enqueue(manager.controllers["widgets"], "default/web")
        await until(lambda: not bench.server.list("widgets"))
    assert cleaned == ["web"]


async def test_release_of_a_finalizer_is_held_back_when_an_input_becomes_stale(bench: Bench) -> None:
    manager = Manager("shop", client=bench.server.url, max_staleness=0.0)
    watches, cleaning, go = [Watch(core_v1.SECRETS, to=lambda obj: [])], asyncio.Event(), asyncio.Event()

    @manager.controller(WIDGETS, watches=watches)
    async def widgets(request: Request[Any]) -> None:
        async with finalizing(request, CLEANUP) as ending:
            if ending:
                cleaning.set()
                await go.wait()

    async with manager:
        await until(lambda: bench.widget()["metadata"].get("finalizers"))
        bench.server.delete("widgets", "web")
        await cleaning.wait()
        async with blind(bench.server, "secrets"):
            await until(lambda: is_stale(manager, "v1/secrets"))
            go.set()
            await until(lambda: manager.snapshot()["controllers"]["widgets"]["results"].get("stale"))
            assert bench.widget()["metadata"]["finalizers"] == [CLEANUP]
        await until(lambda: caches(manager)["v1/secrets"]["healthy"])
        manager.enqueue(manager.controllers["widgets"], "default/web")
        await until(lambda: not bench.server.list("widgets"))


async def test_limit_of_a_controller_replaces_that_of_the_manager(api_server: ApiServer) -> None:
    manager = Manager("shop", client=api_server.url, max_staleness=None)
    ends: dict[str, str] = {}

    async def remove(request: Request[Any]) -> None:
        if request.name == "parent":
            try:
                request.check_fresh()
                ends[request.log.extra["controller"]] = "fresh"  # type: ignore[index]
            except Stale:
                ends[request.log.extra["controller"]] = "stale"  # type: ignore[index]

    watches = [Watch(core_v1.SECRETS, to=lambda obj: [])]
    for name, limit in (("strict", 0.0), ("lenient", 3600.0), ("default", None)):
        await manager.add(Controller(name, core_v1.CONFIG_MAPS, remove, watches=watches, max_staleness=limit))
    async with manager:
        await until(lambda: manager.ready())
        async with blind(api_server, "secrets"):
            await until(lambda: is_stale(manager, "v1/secrets"))
            api_server.create("configmaps", {"metadata": {"name": "parent", "namespace": "default"}})
            await until(lambda: len(ends) == 3)
            assert manager.ready()
    assert ends == {"strict": "stale", "lenient": "fresh", "default": "fresh"}


async def test_lister_refuses_to_read_a_stale_cache(api_server: ApiServer) -> None:
    factory = SharedInformerFactory(api_server.url)
    lister = factory.core.v1.secrets.lister()
    with pytest.raises(UsageError, match="never started"):
        lister.fresh(within=3600)
    async with factory:
        with pytest.raises(Stale, match="informer of secrets has not followed"):
            lister.fresh(within=3600)  # it has not synced
        await factory.wait_for_cache_sync()
        assert lister.fresh(within=0).list() == []
        assert lister.namespaced("default").fresh(within=0).list() == []
        async with blind(api_server, "secrets"):
            await until(lambda: factory.core.v1.secrets.informer().state.phase == "forbidden")
            with pytest.raises(Stale) as raised:
                lister.fresh(within=0)
            assert raised.value.age > 0
            assert raised.value.cause.startswith("forbidden: ")
            assert lister.fresh(within=60) is lister
            again = pickle.loads(pickle.dumps(raised.value))
            assert (str(again), again.age, again.cause) == (str(raised.value), raised.value.age, raised.value.cause)
    with pytest.raises(Stale, match="stopped"):
        lister.fresh(within=0)


def test_bad_limits_are_refused() -> None:
    with pytest.raises(OptionError, match="max_staleness"):
        Manager("shop", max_staleness=-1.0)
    with pytest.raises(OptionError, match="controller it: max_staleness"):
        Controller("it", core_v1.CONFIG_MAPS, nothing, max_staleness=-1.0)
    lister: Lister[Any] = Lister(Indexer(), core_v1.SECRETS)
    with pytest.raises(UsageError, match="no informer fills"):
        lister.fresh(within=5)
    with pytest.raises(UsageError, match="within must be seconds"):
        lister.fresh(within=-1)


async def nothing(request: Request[Any]) -> None: ...
