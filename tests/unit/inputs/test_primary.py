"""The primary's own objects: which notifications make their keys run, and why."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from aioinformer.controller import Predicate, Primary, fields_changed, predicate
from aioinformer.errors import UsageError
from aioinformer.factory.multi_namespace import MultiNamespaceInformer
from aioinformer.informer.shared_informer import SharedIndexInformer
from tests.support.collection import Collection
from tests.support.virtual_time import settled
from tests.unit.inputs.inputs import Requests
from tests.unit.inputs.states import FLEETS, WIDGETS

ABOUT_WEB = "default/web: widgets.example.com default/web"


def primary(collection: Collection, **options: Any) -> tuple[SharedIndexInformer[Any], Requests, Primary[Any]]:
    informer, requests = SharedIndexInformer(collection, 10.0), Requests()
    declared: Primary[Any] = Primary(collection.resource, **options)
    declared.attach(informer, informer, requests)
    return informer, requests, declared


@pytest.mark.behaviour("C-19", "C-20", "C-22")
async def test_changes_run_and_pure_status_updates_do_not() -> None:
    collection = Collection("web", resource=WIDGETS)
    informer, requests, _ = primary(collection)
    async with informer:
        assert await requests.new() == [f"low {ABOUT_WEB} initial"]
        collection.put("web", status={"ready": 1})
        assert await requests.new() == []
        collection.put("web", status={"ready": 1}, spec={"size": 2})
        assert await requests.new() == [f"{ABOUT_WEB} updated"]
        collection.put("shop")
        assert await requests.new() == ["default/shop: widgets.example.com default/shop added"]
        collection.delete("web")
        assert await requests.new() == [f"{ABOUT_WEB} deleted"]


@pytest.mark.behaviour("C-22")
async def test_resyncs_have_low_priority() -> None:
    informer, requests, _ = primary(Collection("web", resource=WIDGETS), resync_period=10.0)
    async with informer:
        await requests.new()
        await asyncio.sleep(11)
        assert await requests.new() == [f"low {ABOUT_WEB} resync"]


@pytest.mark.behaviour("C-21")
async def test_missed_deletions_run() -> None:
    collection = Collection("web", resource=WIDGETS)
    informer, requests, _ = primary(collection, when=predicate(lambda change: False))
    async with informer:
        assert await requests.new() == []
        collection.delete("web")
        collection.unseen()
        collection.expire_watches()
        await asyncio.sleep(2)
        assert await requests.new() == [f"{ABOUT_WEB} deleted"]


@pytest.mark.behaviour("C-21")
@pytest.mark.parametrize("when", [None, fields_changed("spec.size"), predicate(lambda change: False)])
async def test_objects_created_again_under_their_name_run(when: Predicate | None) -> None:
    collection = Collection("web", resource=WIDGETS)
    informer, requests, _ = primary(collection, when=when)
    async with informer:
        await requests.new()
        collection.mute()
        collection.delete("web")
        collection.put("web")
        collection._muted = False
        collection.expire_watches()
        await asyncio.sleep(2)
        assert await requests.new() == [f"{ABOUT_WEB} deleted", f"{ABOUT_WEB} added"]


@pytest.mark.behaviour("C-30")
async def test_a_failing_predicate_lets_changes_pass(caplog: pytest.LogCaptureFixture) -> None:
    def of_small_ones(change: Any) -> bool:
        return bool(change.new.spec["size"] < 2)

    collection = Collection(resource=WIDGETS)
    informer, requests, declared = primary(collection, when=of_small_ones)
    async with informer:
        await settled()
        collection.put("small", spec={"size": 1})
        collection.put("large", spec={"size": 3})
        for number in range(10):
            collection.put(f"other-{number}")
        found = await requests.new()
    assert [line.partition(":")[0] for line in found] == ["default/small", *(f"default/other-{n}" for n in range(10))]
    assert declared.errors == 10
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1
    assert "Primary(widgets.example.com): default/other-0, " in errors[0].message
    assert "of_small_ones" in errors[0].message
    assert "raised, so the change counts" in errors[0].message
    assert errors[0].exc_info is not None


@pytest.mark.behaviour("C-36")
async def test_several_namespaces_are_one_input() -> None:
    collections = {namespace: Collection(resource=WIDGETS) for namespace in ("", "shop", "bank")}
    collections["shop"].put("web", "shop")
    collections["bank"].put("web", "bank")
    informer: MultiNamespaceInformer[Any] = MultiNamespaceInformer(lambda each: collections[each], ["shop"])
    requests = Requests()
    Primary(WIDGETS).attach(informer, informer, requests)
    async with informer:
        assert await requests.new() == ["low shop/web: widgets.example.com shop/web initial"]
        await informer.add_namespace("bank")
        (found,) = await requests.new()
        assert found.removeprefix("low ").startswith("bank/web: ")
        await informer.remove_namespace("shop")
        assert await requests.new() == ["shop/web: widgets.example.com shop/web deleted"]


async def test_keys_of_cluster_scoped_objects_have_no_namespace() -> None:
    collection = Collection(resource=FLEETS)
    collection.put("north", "")
    informer, requests, _ = primary(collection)
    async with informer:
        await settled()
        assert requests.taken() == ["low north: fleets.example.com north initial"]


def test_wrong_declarations_are_refused() -> None:
    with pytest.raises(UsageError, match="Primary: expected a Resource, not 'widgets'"):
        Primary("widgets")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"Primary\(widgets\) has no option 'selector'"):
        Primary(WIDGETS, selector="app=web")  # type: ignore[call-arg]
