"""Snapshots and reprs: the state of informers and handlers, without content."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from aioinformer.errors import TransportError
from aioinformer.factory.factory import SharedInformerFactory
from aioinformer.factory.multi_namespace import MultiNamespaceInformer
from aioinformer.informer.options import RunOptions
from aioinformer.informer.shared_informer import SharedIndexInformer
from tests.support.cluster import Cluster
from tests.support.collection import Collection
from tests.support.recorder import informer_of

pytestmark = pytest.mark.usefixtures("queue")


async def test_healthy_informer() -> None:
    async with informer_of("a", "b", storage="stripped", indexers={"app": lambda obj: []}) as (pods, informer, _):
        await informer.wait_for_resource_version(pods.put("c"))
        snapshot = informer.snapshot()
    assert snapshot["name"] == "informer of pods"
    assert snapshot["resource"] == "v1/pods"
    assert snapshot["scope"] == {"namespace": "", "label_selector": "", "field_selector": ""}
    assert (snapshot["phase"], snapshot["reason"], snapshot["healthy"]) == ("watching", "", True)
    assert (snapshot["synced"], snapshot["objects"], snapshot["resource_version"]) == (True, 3, "3")
    assert (snapshot["attempts"], snapshot["next_retry"]) == (0, None)
    assert (snapshot["skipped"], snapshot["skipped_total"], snapshot["queued"]) == ([], 0, 0)
    assert (snapshot["indexes"], snapshot["storage"]) == (["app", "namespace"], "stripped")
    assert snapshot["last_event"] is not None
    assert snapshot["last_event_age"] is not None
    assert 0 <= snapshot["last_event_age"] < 60
    assert snapshot["since"] is not None
    assert abs(snapshot["since"] - time.time()) < 60


async def test_failing_informer_has_reason_attempts_and_retry() -> None:
    pods = Collection("a")
    informer = SharedIndexInformer(pods)
    pods.refusals.extend(TransportError("api:6443 refused the connection") for _ in range(50))
    informer.add_event_handler(on_add=print)
    snapshot = informer.snapshot()
    assert (snapshot["phase"], snapshot["objects"], snapshot["last_event_age"]) == ("new", 0, None)
    assert snapshot["since"] is None
    (handler,) = snapshot["handlers"]
    assert (handler["synced"], handler["pending"], handler["calls"], handler["current"]) == (False, 0, 0, None)
    async with informer:
        await asyncio.sleep(10)
        snapshot = informer.snapshot()
    assert (snapshot["phase"], snapshot["reason"]) == ("backing_off", "api:6443 refused the connection")
    assert not snapshot["healthy"]
    assert snapshot["attempts"] >= 3
    assert snapshot["next_retry"] is not None
    assert snapshot["next_retry"] > time.time() - 1


async def test_skipped_objects_have_keys() -> None:
    def refuse(obj: Any) -> Any:
        if obj.metadata.name == "b":
            raise ValueError("secret")
        return obj

    async with informer_of("a", "b", transform=refuse) as (_, informer, _):
        snapshot = informer.snapshot()
    assert (snapshot["skipped"], snapshot["skipped_total"]) == (["default/b"], 1)
    assert "secret" not in json.dumps(snapshot)


async def test_running_call_of_a_handler() -> None:
    async def on_add(obj: Any) -> None:
        await asyncio.sleep(3600 if obj.metadata.name == "b" else 4)

    async with informer_of("a", "b", "c", options=RunOptions(shutdown_grace=0)) as (_, informer, _):
        registration = informer.add_event_handler(on_add=on_add)
        assert (registration.pending, registration.calls) == (3, 0)
        await asyncio.sleep(10)
        handler = informer.snapshot()["handlers"][1]
        current = handler["current"]
        assert current is not None
        place = f"on_add at informer/test_snapshots.py:{on_add.__code__.co_firstlineno}"
        assert handler["name"] == registration.name == f"informer of pods: handler 2 ({place})"
        assert (current["function"], current["key"]) == (place, "default/b")
        assert current["seconds"] == pytest.approx(6, abs=0.5)
        assert current["since"] == pytest.approx(time.time() - 6, abs=1)
        assert (handler["pending"], handler["calls"], handler["errors"], handler["synced"]) == (2, 2, 0, False)
        assert handler["longest_call"] == pytest.approx(4, abs=0.5)
        assert registration.current is not None
        assert registration.current.key == "default/b"
        assert (registration.pending, registration.calls) == (2, 2)
        assert "2 pending" in repr(registration)
        await asyncio.sleep(3700)
        assert (registration.pending, registration.calls) == (0, 3)
        assert informer.snapshot()["handlers"][1]["current"] is None


async def test_errors_have_type_and_place() -> None:
    def on_add(obj: Any) -> None:
        raise ValueError(f"secret {obj}")

    async with informer_of("a", "b") as (_, informer, _):
        registration = informer.add_event_handler(on_add=on_add)
        await registration.wait_for_sync()
        snapshot = informer.snapshot()
    handler = snapshot["handlers"][1]
    error = handler["last_error"]
    assert error is not None
    assert error["error"] == f"ValueError at informer/test_snapshots.py:{on_add.__code__.co_firstlineno + 1}"
    assert (error["key"], handler["errors"], handler["calls"], handler["pending"]) == ("default/b", 2, 2, 0)
    assert registration.last_error is not None
    assert registration.last_error.key == "default/b"
    assert "secret" not in json.dumps(snapshot) + repr(informer) + repr(registration)


async def test_multi_namespace_informer_has_each_namespace() -> None:
    pods = {"one": Collection("a"), "two": Collection("b"), "": Collection()}
    pods["two"].refusals.extend(TransportError("lost") for _ in range(50))
    informer: MultiNamespaceInformer[Any] = MultiNamespaceInformer(lambda namespace: pods[namespace], ["one", "two"])
    async with informer:
        await asyncio.sleep(5)
        snapshot = informer.snapshot()
    assert {name: each["phase"] for name, each in snapshot["namespaces"].items()} == {
        "one": "watching",
        "two": "backing_off",
    }
    assert (snapshot["phase"], snapshot["healthy"]) == ("backing_off", False)
    assert snapshot["attempts"] == snapshot["namespaces"]["two"]["attempts"] > 0
    assert json.dumps(snapshot)


async def test_factory_has_all_informers() -> None:
    async with SharedInformerFactory(Cluster()) as factory:
        pods = factory.core.v1.pods.informer()
        factory.apps.v1.deployments.informer()
        assert "2 informers, 0 synced" in repr(factory)
        await factory.wait_for_cache_sync()
        assert factory.informers()["v1/pods"] is pods
        snapshot = factory.snapshot()
        assert json.loads(json.dumps(snapshot)) == snapshot
        assert list(snapshot["informers"]) == ["v1/pods", "apps/v1/deployments"]
        assert (snapshot["running"], snapshot["ready"], snapshot["healthy"]) == (True, True, True)
        assert repr(factory) == "<SharedInformerFactory, running, 2 informers, 2 synced>"
    assert "stopped" in repr(factory)
    assert factory.snapshot()["running"] is False


async def test_informer_and_listers_show_object_counts() -> None:
    pods = Collection("a", "b")
    informer: SharedIndexInformer[Any] = SharedIndexInformer(pods)
    assert repr(informer) == "<informer of pods, new, 0 objects, not synced>"
    async with informer:
        await informer.wait_for_sync()
        await asyncio.sleep(0.1)
        lister = informer.lister()
        assert repr(informer) == "<informer of pods, watching, 2 objects>"
        assert repr(lister) == "<Lister of v1/pods, 2 objects in the cache>"
        assert repr(lister.namespaced("default")) == ("<NamespaceLister of v1/pods in default, 2 objects in the cache>")
        assert repr(informer.get_indexer()) == "<Indexer, 2 objects, indices: namespace>"
        assert repr(informer.reflectors()[""]) == "<Reflector informer of pods, watching, version '2'>"
