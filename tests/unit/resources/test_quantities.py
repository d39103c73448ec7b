"""`Quantity`: exact amounts, as `resource.Quantity` of Kubernetes."""

from __future__ import annotations

import copy
import pickle
from decimal import Decimal
from typing import Any

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import to_json
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.crds import custom_resource
from aioinformer.errors import DecodeError
from aioinformer.models import ObjectMeta, Quantity
from aioinformer.resources.quantities import canonical


@pytest.mark.parametrize(
    ("text", "same"),
    [("1000m", "1"), ("0.5", "500m"), ("1Gi", "1024Mi"), ("1e3", "1k"), ("+1", "1"), ("0", "-0"), (".1n", "1n")],
)
def test_differently_written_quantities_are_equal(text: str, same: str) -> None:
    assert Quantity(text) == Quantity(same)
    assert hash(Quantity(text)) == hash(Quantity(same))
    assert Quantity(text) <= Quantity(same)
    assert len({Quantity(text), Quantity(same)}) == 1


def test_quantities_are_ordered_by_amount() -> None:
    texts = ["-1", "0", "1n", "999m", "1", "1M", "1Mi", "1e9", "1Gi", "8Ei"]
    assert [str(each) for each in sorted(map(Quantity, reversed(texts)))] == texts
    assert Quantity("1") != 1
    with pytest.raises(TypeError):
        Quantity("1") < "2"  # type: ignore[operator]  # noqa: B015


@pytest.mark.parametrize(
    ("one", "other", "total"),
    [
        ("1Gi", "512Mi", "1536Mi"),
        ("100m", "1", "1100m"),
        ("0", "1Gi", "1Gi"),
        ("1e3", "1", "1001e0"),
        ("1Gi", "1m", "1073741824001m"),
        ("8Ei", "8Ei", "16Ei"),
        ("1", "-1", "0"),
    ],
)
def test_sums_are_exact_and_have_the_suffix_of_the_first(one: str, other: str, total: str) -> None:
    found = Quantity(one) + Quantity(other)
    assert str(found) == total.replace("e0", "")
    assert found - Quantity(other) == Quantity(one)


@given(st.lists(st.decimals(-(10**12), 10**12, places=9)))
def test_sums_are_those_of_decimals(amounts: list[Decimal]) -> None:
    total = sum(map(Quantity, map("{:f}".format, amounts)), Quantity(0))
    assert total.amount == sum(amounts, Decimal(0))
    assert Quantity(str(total)) == total


def test_amounts_beyond_the_limit_of_the_server_are_exact() -> None:
    largest = Quantity(2**63 - 1)
    assert str(largest + Quantity("1n")) == "9223372036854775807000000001n"
    assert str(Quantity("1000E")) == "1e21"
    assert canonical("9" * 40) == "9223372036854775807"


def test_tiny_fractions_are_rounded_away_from_zero() -> None:
    assert [str(Quantity(text)) for text in ("1e-10", "-.1n", "1.5n", "-1.5n")] == ["1e-9", "-1n", "2n", "-2n"]
    assert [int(Quantity(text)) for text in ("1500m", "-1500m", "1", "0")] == [2, -2, 1, 0]
    assert float(Quantity("1500m")) == 1.5
    assert [bool(Quantity(text)) for text in ("0", "1n")] == [False, True]


@pytest.mark.parametrize("text", ["", "lots", "1 Gi", "1Gib", "--1", " 1", "1\n", "\u0661", "9" * 5000])
def test_text_that_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^Quantity\("):
        Quantity(text)


@pytest.mark.parametrize("value", [1.5, True, None, Decimal(1)])
def test_values_of_other_types_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="expected text such as"):
        Quantity(value)


def test_copies_are_equal() -> None:
    size = Quantity("1.5Gi")
    assert [copy.copy(size), copy.deepcopy(size), pickle.loads(pickle.dumps(size)), Quantity(size)] == [size] * 4
    assert repr(size) == "Quantity('1536Mi')"


class DiskSpec(msgspec.Struct, frozen=True):
    size: Quantity = Quantity("1Gi")


class Disk(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: DiskSpec = DiskSpec()


class ModelSpec(pydantic.BaseModel):
    size: Quantity = Quantity("1Gi")


class ModelDisk(pydantic.BaseModel):
    metadata: dict[str, Any]
    spec: ModelSpec = ModelSpec()


@pytest.mark.parametrize("cls", [Disk, ModelDisk])
def test_fields_of_definitions_are_quantities(cls: type[Any]) -> None:
    disks = custom_resource(cls, "example.com", "v1", kind="Disk")
    objects = ObjectType(disks)
    for value, size in ((b'"1.5Gi"', "1536Mi"), (b"2", "2")):
        disk = objects.to_view(
            objects.record_of(msgspec.json.decode(b'{"metadata":{"name":"a"},"spec":{"size":%b}}' % value))
        )
        assert disk.spec.size == Quantity(size)
        assert msgspec.json.decode(to_json(disk))["spec"] == {"size": size}
    with pytest.raises(DecodeError, match="size"):
        objects.record_of({"metadata": {"name": "a"}, "spec": {"size": "lots"}})
    schema = disks.crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]
    assert schema["x-kubernetes-int-or-string"]
    assert schema["default"] == "1Gi"
