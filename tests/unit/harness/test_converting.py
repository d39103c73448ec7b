"""`check_conversion` finds steps that lose values or fail, and names the smallest object."""

from __future__ import annotations

import itertools
import sys
from typing import Any

import msgspec
import pytest

from aioinformer.crds import CustomResource, Function, Map, Move, custom_resource
from aioinformer.errors import UsageError
from aioinformer.harness import HarnessFailure, check_conversion
from aioinformer.models import ObjectMeta  # noqa: TC001 - msgspec reads it
from tests.support.converted_classes import gates


class OldSpec(msgspec.Struct):
    size: int | None = None
    weight: str | None = None
    host: str | None = None


class OldSite(msgspec.Struct):
    metadata: ObjectMeta
    spec: OldSpec


class Spec(msgspec.Struct):
    replicas: int | None = None
    weight: int | None = None
    host: str | None = None


class Site(msgspec.Struct):
    metadata: ObjectMeta
    spec: Spec


def sites(*steps: Any) -> CustomResource[Site]:
    old = custom_resource(OldSite, "example.com", "v1alpha1", kind="Site", storage=False, conversion=steps)
    return custom_resource(Site, "example.com", "v1", others=[old])


SIZE = Move("spec.size", "spec.replicas")
WEIGHT = Map("spec.weight", to=lambda text: int(text) if text.isdecimal() else text, back=str)


def test_conversion_that_loses_nothing_passes() -> None:
    resource, _ = gates("example.com")
    check_conversion(resource)


def test_map_that_is_not_total() -> None:
    with pytest.raises(HarnessFailure) as caught:
        check_conversion(sites(SIZE, Map("spec.weight", to=int, back=str)))
    assert str(caught.value) == (
        "example.com/v1alpha1 to example.com/v1: spec.weight: int raised ValueError; "
        'the object: {"spec": {"weight": ""}}'
    )


def test_function_that_needs_another_field() -> None:
    def to(document: dict[str, Any]) -> dict[str, Any]:
        if "size" in (document.get("spec") or {}):
            document["spec"]["replicas"] = document["spec"].pop("size")
            document["spec"]["host"] += ":80"
        return document

    with pytest.raises(HarnessFailure, match=r'to raised KeyError; the object: {"spec": {"size": 0}}$'):
        check_conversion(sites(Function(to, lambda document: document)))


def test_field_that_a_function_drops_is_kept_by_the_annotation() -> None:
    def to(document: dict[str, Any]) -> dict[str, Any]:
        spec = document.get("spec") or {}  # server-side apply makes empty objects null
        if "host" not in spec:
            spec.pop("size", None)
        return document

    check_conversion(sites(Function(to, lambda document: document)), max_examples=50)


def test_function_that_is_not_the_same_each_time() -> None:
    counter = itertools.count()

    def to(document: dict[str, Any]) -> dict[str, Any]:
        document.setdefault("spec", {})["host"] = f"host-{next(counter)}"
        return document

    with pytest.raises(HarnessFailure, match=r"^example.com/v1.* and back: .*spec: none -> {\"host\":\"host-"):
        check_conversion(sites(Function(to, lambda document: document)))


def test_resource_without_conversion() -> None:
    with pytest.raises(UsageError, match=r"check_conversion: Site: no version of it declares conversion"):
        check_conversion(custom_resource(Site, "example.com", "v1"))


def test_number_of_examples_must_be_positive() -> None:
    with pytest.raises(UsageError, match="max_examples must be at least 1, not 0"):
        check_conversion(sites(SIZE, WEIGHT), max_examples=0)


def test_without_hypothesis_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "aioinformer.harness.schema_values", raising=False)
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(UsageError, match='the extra "testing"'):
        check_conversion(sites(SIZE, WEIGHT))
