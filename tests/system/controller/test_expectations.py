"""Expectations: a key waits until the caches show what it has created and deleted, or until they expire."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import Client, Indexer, ObjectName, OptionError, WriteOutcomeUnknown
from aioinformer.controller import Expectations, Request, RetryAfter
from aioinformer.errors import ApiNotFound, Invalid
from aioinformer.models import core_v1
from tests.support.bench import WIDGETS, Bench
from tests.support.scripted_transport import Answer, Scripted, refusal, unreachable

if TYPE_CHECKING:
    from aioinformer import Resource
    from aioinformer.controller import Cause

KEY = ObjectName("default", "web")
OWNER: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "web", "namespace": "default", "uid": "of-web"},
}
BODY = {"metadata": {"generateName": "web-"}}


class Cache:
    """An informer whose notifications come when the test says so."""

    storage = "bytes"

    def __init__(self, resource: Resource[Any]) -> None:
        self.resource = resource
        self.indexer: Indexer[Any] = Indexer()
        self._handler: Any = None

    def get_indexer(self) -> Indexer[Any]:
        return self.indexer

    def add_indexers(self, indexers: Any) -> None:
        self.indexer.add_indexers(indexers)

    def add_event_handler(self, handler: Any, resync_period: float | None) -> None:
        self._handler = handler

    def show(self, name: str, *, leaving: bool = False) -> None:
        """Let the cache receive an object of the Widget, or its later state."""
        obj = child(name, leaving=leaving)
        old = self.indexer.get_by_key(f"default/{name}")
        self.indexer.add(obj)
        if old is None:
            self._handler.on_add(obj, False)
        else:
            self._handler.on_update(old, obj)

    def drop(self, name: str) -> None:
        """Let the cache receive the deletion of an object."""
        obj = child(name)
        self.indexer.delete(obj)
        self._handler.on_delete(obj)


class Controller:
    """The parts of a controller of Widgets: an input, a queue of runs, and writes with scripted answers."""

    def __init__(self, *answers: Any) -> None:
        self.now = 1000.0
        self.expectations = Expectations(timeout=60, clock=lambda: self.now)
        self.runs: list[tuple[ObjectName, str]] = []
        self.cache = Cache(core_v1.CONFIG_MAPS)
        self._bench = Bench(None, Client(Scripted(*answers)))  # type: ignore[arg-type]
        primary = Cache(WIDGETS)
        self.expectations.owns(core_v1.CONFIG_MAPS).attach(self.cache, primary, self._enqueue)  # type: ignore[arg-type]

    def _enqueue(self, key: ObjectName, cause: Cause, priority: int) -> None:
        self.runs.append((key, cause.trigger))

    async def request(self) -> Request[Any]:
        return await self._bench.request(object=OWNER)

    async def create(self) -> None:
        await self.expectations.create(await self.request(), core_v1.CONFIG_MAPS, BODY)

    async def delete(self, name: str) -> None:
        await self.expectations.delete(await self.request(), core_v1.CONFIG_MAPS, child(name))

    async def may_run(self) -> bool:
        request = await self.request()
        if left := self.expectations.left(KEY):
            with pytest.raises(RetryAfter) as raised:
                self.expectations.check(request)
            assert raised.value.seconds == left
        else:
            self.expectations.check(request)
        return not left


def child(name: str, *, leaving: bool = False) -> dict[str, Any]:
    reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "web", "uid": "of-web", "controller": True}
    metadata = {"name": name, "namespace": "default", "uid": f"of-{name}", "ownerReferences": [reference]}
    if leaving:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, "resourceVersion": "7"}}


def created(name: str) -> Answer:
    return Answer(201, json.dumps(child(name)).encode())


@pytest.mark.behaviour("C-87")
async def test_key_waits_for_what_it_has_created() -> None:
    controller = Controller(created("web-1"), created("web-2"))
    assert await controller.may_run()
    await controller.create()
    await controller.create()
    controller.cache.show("web-2")
    assert not await controller.may_run()
    controller.cache.show("web-1")
    assert await controller.may_run()
    # The input runs the key, after the expectation has seen the object.
    assert controller.runs == [(KEY, "added"), (KEY, "added")]


@pytest.mark.behaviour("C-87")
async def test_object_of_somebody_else_fulfils_nothing() -> None:
    controller = Controller(created("web-1"))
    await controller.create()
    controller.cache.show("made-by-hand")
    assert not await controller.may_run()


@pytest.mark.behaviour("C-87")
async def test_event_may_be_faster_than_the_answer() -> None:
    class Early(Answer):
        async def chunks(self) -> Any:
            controller.cache.show("web-1")
            async for chunk in super().chunks():
                yield chunk

    controller = Controller(Early(201, json.dumps(child("web-1")).encode()))
    await controller.create()
    assert await controller.may_run()


@pytest.mark.behaviour("C-87")
async def test_refused_creation_is_not_expected() -> None:
    controller = Controller(refusal(422, "Invalid"))
    with pytest.raises(Invalid):
        await controller.create()
    assert await controller.may_run()


@pytest.mark.behaviour("C-87")
async def test_lost_answer_waits_for_one_more_object() -> None:
    controller = Controller(unreachable(unsent=False), created("web-1"))
    with pytest.raises(WriteOutcomeUnknown):
        await controller.create()
    await controller.create()
    controller.cache.show("web-1")
    assert not await controller.may_run()
    controller.cache.show("web-x")
    assert await controller.may_run()


@pytest.mark.behaviour("C-87")
@pytest.mark.parametrize("shown", ["leaving", "gone"])
async def test_key_waits_for_its_deletions(shown: str) -> None:
    controller = Controller()
    controller.cache.show("web-1")
    await controller.delete("web-1")
    assert not await controller.may_run()
    if shown == "leaving":
        controller.cache.show("web-1", leaving=True)
    else:
        controller.cache.drop("web-1")
    assert await controller.may_run()


@pytest.mark.behaviour("C-87")
async def test_deletion_of_what_is_gone_is_not_expected() -> None:
    controller = Controller(refusal(404, "NotFound", name="web-1"))
    await controller.delete("web-1")
    assert await controller.may_run()


async def test_deletion_in_a_resource_that_is_not_served_is_an_error() -> None:
    controller = Controller(refusal(404, "NotFound"))
    with pytest.raises(ApiNotFound):
        await controller.delete("web-1")


@pytest.mark.behaviour("C-88")
async def test_expectations_expire_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    controller = Controller(created("web-1"))
    await controller.create()
    controller.now += 59
    assert not await controller.may_run()
    controller.now += 1
    with caplog.at_level(logging.WARNING, "aioinformer.controller"):
        assert await controller.may_run()
    assert [record.getMessage() for record in caplog.records] == [
        "default/web: the caches did not show 1 creations and 0 deletions in 60 s; go on with the caches"
    ]


@pytest.mark.behaviour("C-88")
async def test_owner_that_is_gone_expects_nothing() -> None:
    controller = Controller(created("web-1"))
    await controller.create()
    gone = await controller.request()
    gone.object = None
    controller.expectations.check(gone)
    assert await controller.may_run()


def test_timeout_must_be_positive() -> None:
    with pytest.raises(OptionError):
        Expectations(timeout=0)
