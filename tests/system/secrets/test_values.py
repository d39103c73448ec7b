"""No log line, Event, error, metric, report or repr of this package has a value of a field, of any kind of object.

Every field of the objects here has a marker, except what identifies an object. What the tests provoke is collected from
where it cannot hide: all loggers at their lowest level, every error of the package that is made, the Events in the
server, and the `repr` of every object of the package that the garbage collector knows.
"""

from __future__ import annotations

import asyncio
import gc
import io
import json
import logging
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from aioinformer import (
    Client,
    DeletedFinalStateUnknown,
    HttpTransport,
    SharedIndexInformer,
    SharedInformerFactory,
    evolve,
)
from aioinformer.cache import Storage
from aioinformer.controller import Manager, Owns, Request, TerminalError, apply_set
from aioinformer.errors import AioinformerError
from aioinformer.handlers.notifications import AddNotification, DeleteNotification, UpdateNotification
from aioinformer.models import apps_v1, core_v1
from aioinformer.prometheus import PrometheusMetrics
from aioinformer.queue import Delta, Deltas, DeltaType
from aioinformer.testing import ApiServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from aioinformer.cache import StorageTier

MARK = "m4rk"


def config_map(name: str, at: int = 0) -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": "default",
        "labels": {"label": f"{MARK}-{at}"},
        "annotations": {"annotation": f"{MARK}-{at}"},
    }
    return {"metadata": metadata, "data": {"text": f"{MARK}-{at}"}, "binaryData": {"bytes": "bTRyaw=="}}


def deployment(name: str) -> dict[str, Any]:
    labels = {"label": MARK}
    container = {
        "name": MARK,
        "image": MARK,
        "command": [MARK],
        "args": [MARK],
        "workingDir": f"/{MARK}",
        "env": [{"name": "PASSWORD", "value": MARK}],
        "ports": [{"name": MARK, "containerPort": 80}],
        "volumeMounts": [{"name": MARK, "mountPath": f"/{MARK}"}],
    }
    template = {
        "metadata": {"labels": labels, "annotations": {"annotation": MARK}},
        "spec": {
            "containers": [container],
            "volumes": [{"name": MARK, "configMap": {"name": MARK}}],
            "nodeSelector": labels,
            "serviceAccountName": MARK,
            "hostname": MARK,
        },
    }
    metadata = {"name": name, "namespace": "default", "labels": labels, "annotations": {"annotation": MARK}}
    return {"metadata": metadata, "spec": {"selector": {"matchLabels": labels}, "template": template}}


class Collected:
    """All that was said."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.errors: list[AioinformerError] = []
        self.stream = io.StringIO()

    def add(self, *things: Any) -> None:
        for thing in things:
            self.texts += [repr(thing), str(thing), f"{[thing]}"]

    def add_living(self) -> int:
        """Add every object of the package's types. Objects that the package imitates a server with are not its own."""
        found = [each for each in gc.get_objects() if is_of_the_package(type(each))]
        for each in found:
            with suppress(Exception):  # what is half made, or has ended
                self.texts.append(repr(each))
        return len(found)

    def lines(self) -> list[str]:
        for error in self.errors:
            self.texts += [str(error), repr(error), "".join(traceback.format_exception_only(error))]
        self.texts.append(self.stream.getvalue())
        return [line for text in self.texts for line in text.splitlines()]

    def leaks(self) -> list[str]:
        return sorted({line[:300] for line in self.lines() if MARK in line or "bTRyaw" in line})


def is_of_the_package(kind: type[Any]) -> bool:
    module = getattr(kind, "__module__", None)
    if not isinstance(module, str):  # some types have a descriptor there
        return False
    return module.startswith("aioinformer") and not module.startswith(("aioinformer.testing", "aioinformer.harness"))


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collected]:
    found = Collected()
    make = AioinformerError.__new__

    def collecting(kind: type[AioinformerError], *args: Any, **options: Any) -> AioinformerError:
        made = make(kind, *args)
        found.errors.append(made)
        return made

    monkeypatch.setattr(AioinformerError, "__new__", collecting)
    handler = logging.StreamHandler(found.stream)
    handler.setFormatter(logging.Formatter("%(name)s %(message)s %(args)r"))
    logger = logging.getLogger("aioinformer")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield found
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


class Raising:
    """A handler that always raises, and says nothing of the object."""

    def on_add(self, obj: Any) -> None:
        raise ValueError("cannot cope")

    async def on_update(self, old: Any, new: Any) -> None:
        raise ValueError("cannot cope")

    def on_delete(self, obj: Any) -> None:
        raise ValueError("cannot cope")


@pytest.mark.parametrize("storage", Storage)
async def test_informers_show_no_values(storage: StorageTier, collected: Collected) -> None:
    fields = ["data", "spec"] if storage == Storage.PROJECTION else []
    registry = CollectorRegistry()
    async with ApiServer() as server, HttpTransport(server.url) as transport:
        for number in range(3):
            server.create("configmaps", config_map(f"c{number}"))
            server.create("deployments.apps", deployment(f"d{number}"))
        factory = SharedInformerFactory(transport, metrics=PrometheusMetrics(registry))
        informers: list[SharedIndexInformer[Any]] = [
            factory.core.v1.configmaps.informer(storage=storage, fields=fields),
            factory.apps.v1.deployments.informer(storage=storage, fields=fields),
        ]
        for informer in informers:
            informer.add_event_handler(Raising())
            informer.add_indexers({"fails": lambda obj: [1 / 0]})  # type: ignore[list-item]
        async with factory:
            await factory.wait_for_cache_sync()
            server.patch("configmaps", "c1", {"data": {"text": f"{MARK}-other"}})
            server.delete("configmaps", "c2")
            await informers[0].wait_for("default/c2", lambda obj: obj is None)
            for informer in informers:
                for obj in informer.lister().list():
                    collected.add(obj, obj["metadata"] if isinstance(obj, dict) else obj.metadata)
                    collected.add(*parts_of(obj))
                    tombstone = DeletedFinalStateUnknown("default/x", obj)
                    delta: Delta[Any] = Delta(DeltaType.ADDED, obj)
                    collected.add(delta, Deltas([delta]), tombstone, Delta(DeltaType.DELETED, tombstone))
                    collected.add(AddNotification(obj), UpdateNotification(obj, obj), DeleteNotification(tombstone))
                collected.add(informer, informer.state, informer.lister(), informer.get_store())
            collected.add(factory, transport, await factory.memory(), *asyncio.all_tasks())
            assert collected.add_living() > 100
            collected.add(generate_latest(registry).decode())
    assert len(collected.lines()) > 200
    assert collected.leaks() == []


def parts_of(obj: Any) -> list[Any]:
    """Return the parts of an object that are of this package's types."""
    names = ("spec", "data", "binary_data", "binaryData")
    found = [obj.get(name) if isinstance(obj, dict) else getattr(obj, name, None) for name in names]
    template = getattr(obj.spec, "template", None) if hasattr(obj, "spec") else None
    found += [] if template is None else [template, template.spec, template.spec.containers, template.spec.volumes]
    return [each for each in found if each is not None]


async def test_controllers_show_no_values(collected: Collected) -> None:
    async with ApiServer() as server:
        for name in ("flaps", "parks", "fails", "owns", "foreign"):
            server.create("configmaps", config_map(name))
        server.create("deployments.apps", deployment("taken"))
        manager = Manager("shop", client=server.url, grace=0.0)
        page = manager.debug_app(check=lambda request: True)
        runs: dict[str, int] = {}

        @manager.controller(core_v1.CONFIG_MAPS, owns=[Owns(apps_v1.DEPLOYMENTS)])
        async def maps(request: Request[Any]) -> None:
            at = runs[request.name] = runs.get(request.name, 0) + 1
            if request.object is None or request.name == "foreign":
                return
            match request.name:
                case "flaps" if at < 15:
                    change = {"data": {"text": f"{MARK}-{at % 2}"}, "metadata": {"labels": {"label": f"{MARK}-{at}"}}}
                    await request.client.core.v1.configmaps.patch(str(request.key), change)
                case "parks":
                    raise TerminalError("it cannot be done")
                case "fails":
                    raise ValueError("it fails")
                case "owns":
                    wanted = {"apiVersion": "apps/v1", "kind": "Deployment", **deployment("taken")}
                    await apply_set(request, [wanted], resources=[apps_v1.DEPLOYMENTS])

        async with manager:
            async with asyncio.timeout(50):
                while runs.get("flaps", 0) < 15 or runs.get("owns", 0) < 2 or runs.get("fails", 0) < 3:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            collected.add(manager, json.dumps(manager.report()), manager.snapshot(), page, *asyncio.all_tasks())
            assert collected.add_living() > 100
        events = server.list("events.events.k8s.io")
        collected.add(json.dumps([each.get("note", each.get("message")) for each in events]))
    log = collected.stream.getvalue()
    assert "triggers itself" in log
    assert "taken" in log
    assert collected.leaks() == []


async def test_dry_runs_show_no_values(collected: Collected) -> None:
    async with ApiServer() as server:
        server.create("configmaps", config_map("a"))
        manager = Manager("shop", client=server.url, grace=0.0, dry_run=True)
        ran = asyncio.Event()

        @manager.controller(core_v1.CONFIG_MAPS)
        async def maps(request: Request[Any]) -> None:
            mine = request.client.core.v1.configmaps
            key = str(request.key)
            await mine.patch(key, {"data": {"text": f"{MARK}-1"}})
            await mine.patch(key, [{"op": "replace", "path": "/data/text", "value": f"{MARK}-2"}], "json")
            await mine.apply({"apiVersion": "v1", "kind": "ConfigMap", **config_map("b", 7)})
            await mine.replace(evolve(await mine.get(key), {"data": {"text": f"{MARK}-3"}}))
            await mine.delete_collection(f"label={MARK}", namespace="default")
            ran.set()

        async with manager, asyncio.timeout(50):
            await ran.wait()
            collected.add(manager, json.dumps(manager.report()), manager.snapshot())
    log = collected.stream.getvalue()
    assert "~ data.text" in log
    assert "* replace /data/text" in log
    assert "deletecollection configmaps" in log
    assert collected.leaks() == []


async def test_errors_of_writes_show_no_values(collected: Collected) -> None:
    async with ApiServer() as server, HttpTransport(server.url) as transport:
        client = Client(transport, namespace="default", field_manager="tests")
        maps = client.core.v1.configmaps
        made = await maps.create(config_map("a"))
        await maps.patch("a", {"data": {"text": f"{MARK}-1"}})
        stale = {"apiVersion": "v1", "kind": "ConfigMap", **config_map("a", 7)}
        calls: list[Callable[[], Awaitable[Any]]] = [
            lambda: maps.create(config_map("a")),
            lambda: maps.replace(made),
            lambda: maps.apply(stale, field_manager="other"),
            lambda: maps.get({"data": MARK}),
            lambda: maps.delete({"spec": MARK}),
            lambda: maps.edit("a", lambda obj: evolve(obj, {"data": {"text": [MARK]}})),
            lambda: maps.edit("a", lambda obj: evolve(obj, {"data": MARK})),
            lambda: maps.edit("a", lambda obj: {"metadata": MARK}),
            lambda: client.apply_all([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": MARK}]),
        ]
        for call in calls:
            with pytest.raises(Exception) as caught:  # noqa: PT011
                await call()
            collected.add(caught.value)
        changes: list[dict[str, Any]] = [{"data": {"text": {}}}, {"metadata": {"labels": MARK}}, {"spec": MARK}]
        for change in changes:
            with suppress(AioinformerError):
                evolve(made, change)
    assert collected.leaks() == []
