"""Declared fields: the same values whether managed fields are decoded or skipped."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.cache.objects.fields import FieldDecoder, field_value, parse_path
from aioinformer.cache.objects.frozen import freeze
from aioinformer.cache.objects.record import Record, decode_record, labels_of
from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMES = {"name": "a", "namespace": "ns", "uid": "u-1", "resourceVersion": "7", "labels": {"app": "web"}}
FIELDS = [{"manager": "kubelet", "fieldsV1": {'k:{"type":"Ready"}': {}}}]
OFTEN = {"metadata": {**NAMES, "managedFields": FIELDS}, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}


def encoded(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def held_after(decoder: FieldDecoder, objects: Iterable[bytes]) -> int:
    """Return the memory of the decoder after it has decoded objects whose records were dropped."""
    tracemalloc.start()
    try:
        for raw in objects:
            decoder(raw)
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def values(record: Record, paths: list[str]) -> list[Any]:
    return [field_value(record, parse_path(path)) for path in paths]


UNUSUAL: dict[str, dict[str, Any]] = {
    "as servers write it": OFTEN,
    "no managed fields": {"metadata": NAMES, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}},
    "managed fields of a template alone": {
        "metadata": NAMES,
        "spec": {"nodeName": "n1", "template": {"metadata": {"name": "b", "managedFields": FIELDS}}},
    },
    "managed fields in a declared object": {"metadata": NAMES, "status": {"x": 1, "managedFields": FIELDS}},
    "a text that looks like their end": {
        "metadata": {**NAMES, "managedFields": [{"manager": "x}]},", "operation": "Update"}]},
        "spec": {"nodeName": "n1"},
    },
    "texts that look like their end, and like what follows": {
        "metadata": {**NAMES, "managedFields": [{"x}]},": {":": 1, "}": "b"}}, {"}]}": ",", ":{": "}"}]},
        "spec": {"nodeName": "n1"},
    },
    "arrays in them": {"metadata": {**NAMES, "managedFields": [{"x": [{}]}]}, "spec": {"nodeName": "n1"}},
    "names behind them": {"metadata": {"name": "a", "managedFields": FIELDS, "namespace": "ns"}, "spec": None},
    "a path that ends early": {"metadata": {**NAMES, "managedFields": FIELDS}, "spec": None, "status": {}},
    "a path through a text": {"metadata": {**NAMES, "managedFields": FIELDS}, "spec": "none"},
    "a number": {"metadata": {**NAMES, "managedFields": FIELDS}, "spec": {"nodeName": 1}},
    "a list": {"metadata": {**NAMES, "managedFields": FIELDS}, "spec": {"nodeName": ["n1", "n2"]}},
}


@pytest.mark.parametrize("paths", [["spec.nodeName"], ["spec.nodeName", "status.phase"], ["status"]])
@pytest.mark.parametrize("case", UNUSUAL)
def test_values_equal_those_of_the_whole_object(case: str, paths: list[str]) -> None:
    raw = encoded(UNUSUAL[case])
    fields, whole = FieldDecoder(paths)(raw), decode_record(raw)
    assert values(fields, paths) == [*map(freeze, values(whole, paths))]
    assert (fields.key, fields.resource_version) == (whole.key, whole.resource_version)
    assert labels_of(fields) == labels_of(whole)


def test_managed_fields_can_be_declared() -> None:
    path = "metadata.managedFields"
    assert values(FieldDecoder([path])(encoded(OFTEN)), [path]) == [tuple(map(dict, FIELDS))]


def test_equal_values_of_different_types_keep_their_types() -> None:
    decoder = FieldDecoder(["spec.x"])
    read = [values(decoder(encoded({"metadata": NAMES, "spec": {"x": x}})), ["spec.x"])[0] for x in (1, True, 1.0)]
    assert [type(value) for value in read] == [int, bool, float]


def test_non_string_value_does_not_affect_later_ones() -> None:
    decoder = FieldDecoder(["spec.nodeName"])
    documents: list[dict[str, Any]] = [OFTEN, UNUSUAL["a list"], OFTEN]
    read = [values(decoder(encoded(each)), ["spec.nodeName"])[0] for each in documents]
    assert read == ["n1", ("n1", "n2"), "n1"]


def test_common_values_are_shared() -> None:
    decoder, raw = FieldDecoder(["spec.nodeName", "status.phase"]), encoded(OFTEN)
    first, second = decoder(raw), decoder(raw)
    assert first.fields is second.fields


def test_unique_values_are_not_kept_forever() -> None:
    objects = [encoded({**OFTEN, "spec": {"nodeName": f"{n:0100}"}}) for n in range(20_000)]
    assert held_after(FieldDecoder(["spec.nodeName"]), objects) < 5_000 * 400


def test_long_strings_live_as_long_as_their_objects() -> None:
    objects = [encoded({**OFTEN, "data": {"x": f"{n:010000}"}}) for n in range(200)]
    assert held_after(FieldDecoder(["data.x"]), objects) < 10 * 10_000


def test_zeros_keep_their_signs() -> None:
    decoder = FieldDecoder(["spec.x"])
    read = [values(decoder(encoded({"metadata": NAMES, "spec": {"x": x}})), ["spec.x"])[0] for x in (0.0, -0.0)]
    assert [*map(str, read)] == ["0.0", "-0.0"]


def test_unusual_object_does_not_affect_others() -> None:
    decoder = FieldDecoder(["spec.nodeName", "status.phase"])
    odd = {"metadata": {**NAMES, "managedFields": FIELDS}, "spec": {"nodeName": "n1"}, "status": None}
    assert values(decoder(encoded(odd)), ["spec.nodeName", "status.phase"]) == ["n1", None]
    assert decoder._texts


def test_whole_metadata_cannot_be_declared() -> None:
    with pytest.raises(UsageError, match="declare fields of it"):
        FieldDecoder(["metadata"])


def test_labels_keep_only_themselves_alive() -> None:
    raw = encoded({**OFTEN, "data": {"x": "y" * 3000}})
    decoder = FieldDecoder(["spec.nodeName"])
    tracemalloc.start()
    try:
        records = [decoder(raw) for _ in range(100)]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert labels_of(records[0]) == {"app": "web"}
    assert held / len(records) < 1000
