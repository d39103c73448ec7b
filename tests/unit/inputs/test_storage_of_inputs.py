"""The default predicate for each form in which an informer stores objects: storage tiers, and models of users."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import msgspec
import pydantic
import pytest

from aioinformer.cache.objects.codec import ObjectType
from aioinformer.controller import (
    Primary,
    annotations_changed,
    condition_changed,
    content_changed,
    fields_changed,
    generation_changed,
    labels_changed,
    version_changed,
)
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.inputs.predicates import Change
from tests.support.collection import Collection
from tests.unit.inputs.inputs import Requests
from tests.unit.inputs.states import WIDGETS, document


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
class DataMeta:
    name: str
    namespace: str
    resourceVersion: str
    labels: dict[str, str]


@dataclasses.dataclass
class DataWidget:
    metadata: DataMeta
    spec: dict[str, Any]
    status: dict[str, Any]


class PydanticMeta(pydantic.BaseModel):
    name: str
    namespace: str
    resource_version: str = pydantic.Field(alias="resourceVersion")
    labels: dict[str, str] = {}


class PydanticWidget(pydantic.BaseModel):
    metadata: PydanticMeta
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
    objects: ObjectType[Any] = ObjectType(WIDGETS, **form)

    def state(content: dict[str, Any]) -> Any:
        return objects.to_view(objects.on_arrival(objects.decode(json.dumps(content).encode())))

    members["metadata"] = {"resourceVersion": "2", "generation": 2} | members.get("metadata", {})
    return Change("updated", state(document()), state(document(**members)))


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
