"""Whole kinds as fields of classes of a user."""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass
from typing import Any

import msgspec
import pydantic
import pytest

from aioinformer.models import core_v1
from tests.support.view_samples import stored_as

DOCUMENT = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web-0", "namespace": "shop"},
    "spec": {"containers": [{"name": "main"}]},
}


class Seen(msgspec.Struct):
    pod: core_v1.Pod | None = None
    spec: core_v1.PodSpec | None = None
    times: int = 0


@dataclass
class SeenData:
    pod: core_v1.Pod | None = None
    spec: core_v1.PodSpec | None = None
    times: int = 0


class SeenModel(pydantic.BaseModel):
    pod: core_v1.Pod | None = None


@pytest.fixture
def pod() -> core_v1.Pod:
    view: core_v1.Pod = stored_as(DOCUMENT, core_v1.PODS)
    return view


@pytest.mark.parametrize("cls", [Seen, SeenData])
def test_class_of_msgspec_and_dataclass_hold_objects(cls: type[Any], pod: core_v1.Pod) -> None:
    seen = msgspec.convert({"pod": pod, "times": 3}, cls)
    assert seen == cls(pod, None, 3)
    assert seen.pod is pod
    assert list(inspect.signature(cls).parameters) == ["pod", "spec", "times"]
    decoded = msgspec.json.decode(b'{"spec":{"containers":[{"name":"main"}]},"times":2}', type=cls)
    assert (decoded.pod, decoded.times, decoded.spec.containers[0].name) == (None, 2, "main")


@pytest.mark.parametrize("raw", [b'{"_record":{}}', b'{"_record":null}', b'{"_record":5,"_body":{}}', b"{}"])
def test_msgspec_makes_no_object_of_foreign_json(raw: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"pod":%b}' % raw, type=Seen)


def test_pydantic_decodes_and_encodes_whole_kinds(pod: core_v1.Pod) -> None:
    assert json.loads(SeenModel.model_validate({"pod": DOCUMENT}).model_dump_json()) == {"pod": DOCUMENT}
    assert SeenModel(pod=pod).pod is pod
