"""The primary's own objects, in each form of storage: which notifications make their keys run, and why."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
from typing import Any

import msgspec
import pydantic
import pytest

from aioinformer import SharedIndexInformer
from aioinformer.controller import (
    Change,
    annotations_changed,
    fields_changed,
    generation_changed,
    labels_changed,
    predicate,
)
from aioinformer.controller.inputs import Primary
from aioinformer.controller.predicates import Predicate, condition_changed, content_changed, version_changed
from aioinformer.errors import UsageError
from aioinformer.factory import MultiNamespaceInformer
from tests.support.collection import Collection
from tests.support.view_samples import stored_as
from tests.support.virtual_time import settled
from tests.unit.controller.inputs.inputs import FLEETS, WIDGETS, Requests, document

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


class StructMeta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str
    uid: str
    resource_version: str
    labels: dict[str, str] = {}


class StructWidget(msgspec.Struct):
    metadata: StructMeta
    spec: dict[str, Any]
    status: dict[str, Any] = {}


@dataclasses.dataclass
class DataWidget:
    metadata: dict[str, Any]
    spec: dict[str, Any]
    status: dict[str, Any]


class PydanticWidget(pydantic.BaseModel):
    metadata: dict[str, Any]
    spec: dict[str, Any]
    status: dict[str, Any]


FORMS: dict[str, dict[str, Any]] = {
    "bytes": {},
    "stripped": {"storage": "stripped"},
    "dict": {"storage": "dict"},
    "msgspec": {"decoder": StructWidget},
    "dataclass": {"decoder": DataWidget},
    "pydantic": {"decoder": PydanticWidget},
    "function": {"decoder": lambda raw: json.loads(raw)},
}


def change_in(form: dict[str, Any], **members: Any) -> Change:
    members["metadata"] = {"resourceVersion": "2", "generation": 2} | members.get("metadata", {})
    return Change("updated", stored_as(document(), WIDGETS, **form), stored_as(document(**members), WIDGETS, **form))


@pytest.mark.behaviour("C-24")
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_content_is_compared_in_every_form(form: dict[str, Any]) -> None:
    status = change_in(form, status={"conditions": [{"type": "Ready", "status": "False"}]})
    assert not content_changed(status)
    assert condition_changed("Ready")(status)
    assert version_changed(status)
    assert content_changed(change_in(form, spec={"size": 2, "image": "a"}))
    assert content_changed(change_in(form, spec={"size": True, "image": "a"}))
    assert fields_changed("spec.size")(change_in(form, spec={"size": 2, "image": "a"}))
    labels = change_in(form, metadata={"labels": {"app": "shop"}})
    assert content_changed(labels)
    assert labels_changed(labels)
    assert not fields_changed("spec.size")(labels)


@pytest.mark.behaviour("C-24")
@pytest.mark.parametrize("storage", ["metadata", "projection"])
@pytest.mark.parametrize(
    "when", [None, fields_changed("spec.image"), condition_changed("Ready"), generation_changed, annotations_changed]
)
async def test_what_is_not_stored_may_have_changed(storage: Any, when: Any) -> None:
    collection = Collection("web", resource=WIDGETS)
    fields = ["spec.size"] if storage == "projection" else ()
    informer = SharedIndexInformer(collection, storage=storage, fields=fields)
    requests = Requests()
    Primary(WIDGETS, when=when).attach(informer, informer, requests)
    async with informer:
        await requests.new()
        collection.put("web", spec={"image": "b"})
        assert await requests.new() == ["default/web: widgets.example.com default/web updated"]
