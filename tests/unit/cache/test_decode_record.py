"""The metadata of a record, and damage anywhere in the object."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import msgspec
import pytest

from aioinformer.cache.objects.record import Envelope, decode_record, labels_of
from aioinformer.cache.objects.storage import decode_metadata
from aioinformer.errors import DecodeError
from aioinformer.resources.resource import Resource

WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget")
decode = msgspec.json.Decoder(Envelope).decode
NAMES = {"name": "a", "namespace": "ns", "uid": "u-1", "resourceVersion": "7", "labels": {"app": "web"}}
FIELDS = [{"manager": "kubelet", "fieldsV1": {'k:{"type":"Ready"}': {}}}]
OFTEN = {"metadata": {**NAMES, "managedFields": FIELDS}, "spec": {"size": 3}}


def encoded(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def test_labels_keep_only_themselves_alive() -> None:
    annotated = {"metadata": {**NAMES, "annotations": {"x": "y" * 3000}, "managedFields": FIELDS}}
    raw = encoded(annotated)
    tracemalloc.start()
    try:
        records = [decode_record(raw) for _ in range(100)]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert labels_of(records[0]) == {"app": "web"}
    assert held / len(records) < 1000


UNUSUAL: dict[str, dict[str, Any]] = {
    "labels behind the managed fields": {
        "metadata": {"name": "a", "managedFields": FIELDS, "namespace": "ns", "labels": {"app": "web"}}
    },
    "a name behind the managed fields": {"metadata": {"managedFields": FIELDS, "name": "a", "namespace": "ns"}},
    "managed fields of a template alone": {
        "metadata": {**NAMES},
        "spec": {"template": {"metadata": {"name": "b", "managedFields": FIELDS}}},
    },
    "managed fields in another member": {"metadata": {**NAMES}, "spec": {"x": 1, "managedFields": FIELDS}},
    "another member before the metadata": {
        "data": {"metadata": {"name": "b"}, "x": {"managedFields": [1]}},
        "metadata": {**NAMES, "managedFields": FIELDS},
    },
    "a template before the metadata": {
        "data": {"metadata": {"name": "b", "managedFields": FIELDS}},
        "metadata": {**NAMES, "managedFields": FIELDS},
    },
    "a text with the same words": {
        "metadata": {**NAMES, "annotations": {"x": ',"managedFields":[{}]}'}, "managedFields": FIELDS}
    },
    "managed fields that are empty": {"metadata": {"name": "a", "managedFields": [], "namespace": "ns"}},
    "no managed fields": {"metadata": {**NAMES}, "spec": {}},
}


@pytest.mark.parametrize("case", UNUSUAL)
def test_record_equals_one_of_the_whole_object(case: str) -> None:
    raw = encoded(UNUSUAL[case])
    meta, record = decode(raw).metadata, decode_record(raw)
    assert (record.name, record.namespace, record.uid) == (meta.name, meta.namespace, meta.uid)
    assert record.resource_version == meta.resource_version
    assert bytes(record.labels) == bytes(meta.labels)


@pytest.mark.parametrize(
    ("damage", "to"),
    [
        (b'"manager":"kubelet"', b'"manager":kubelet'),
        (b'"size":3', b'"size":'),
        (b'"size":3}}', b'"size":3}'),
        (b'"size":3}}', b'"size":3}}}'),
        (b'"size":3}', b""),
    ],
)
def test_damage_outside_metadata_is_an_error(damage: bytes, to: bytes) -> None:
    broken = encoded(OFTEN).replace(damage, to)
    assert broken != encoded(OFTEN)
    with pytest.raises(DecodeError):
        decode_record(broken)


@pytest.mark.parametrize("between", [b"", b" ", b"\t", b",", b"\xef\xbb\xbf", b'},"object":'])
def test_two_objects_in_one_document_are_refused(between: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_record(encoded(OFTEN) + between + encoded(OFTEN))


@pytest.mark.parametrize("length", [-1, -4, -40])
def test_truncated_object_is_refused(length: int) -> None:
    with pytest.raises(DecodeError):
        decode_record(encoded(OFTEN)[:length])


def test_metadata_only_object_is_kept_without_the_type_of_the_answer() -> None:
    raw = encoded({"metadata": OFTEN["metadata"]})
    assert decode_metadata(raw).raw is raw
    partial = encoded({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", **json.loads(raw)})
    assert decode_metadata(partial).raw == raw


@pytest.mark.parametrize("case", ["spec behind", "spec in front"])
def test_surplus_beyond_metadata_is_dropped(case: str) -> None:
    members = OFTEN if case == "spec behind" else dict(reversed(OFTEN.items()))
    assert json.loads(decode_metadata(encoded(members)).raw) == {"metadata": OFTEN["metadata"]}
