"""Field paths and declared fields, and the metadata of a record."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from aioinformer import Resource
from aioinformer.cache import parse_path
from aioinformer.cache.objects.fields import FieldDecoder, FieldIndexFunc, field_filter, field_value
from aioinformer.cache.objects.frozen import freeze
from aioinformer.cache.objects.record import Envelope, Record, decode_complete, decode_record, labels_of
from aioinformer.cache.objects.storage import decode_metadata
from aioinformer.errors import DecodeError, UsageError
from tests.support.wire_objects import body

if TYPE_CHECKING:
    from collections.abc import Iterable


POD = body(
    "a",
    7,
    metadata={"labels": {"app": "web"}, "annotations": {"example.com/owner": "me"}},
    spec={"nodeName": "n1", "tolerations": [{"key": "k"}], "hostNetwork": True},
    status={"phase": "Running", "podIPs": ["10.0.0.1", "10.0.0.2"]},
)


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("spec.nodeName", ("spec", "nodeName")),
        ("metadata.annotations['a.b/c']", ("metadata", "annotations", "a.b/c")),
        ('metadata.labels["a.b"].c', ("metadata", "labels", "a.b", "c")),
        ("kind", ("kind",)),
    ],
)
def test_path_syntax_with_dots_and_brackets(path: str, steps: tuple[str, ...]) -> None:
    assert parse_path(path) == steps


@pytest.mark.parametrize("path", ["", ".a", "a..b", "a[b]", "a b", "a.", "a['b'"])
def test_invalid_path_is_refused_with_an_example(path: str) -> None:
    with pytest.raises(UsageError, match=r"write it like spec\.nodeName|must not be empty"):
        parse_path(path)


@pytest.fixture(params=["declared", "not declared"])
def pod(request: pytest.FixtureRequest) -> Record:
    if request.param == "not declared":
        return decode_record(POD)
    return FieldDecoder(
        [
            "spec.nodeName",
            "status.phase",
            "metadata.annotations['example.com/owner']",
            "status.podIPs",
            "spec.missing.x",
        ]
    )(POD)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.nodeName", "n1"),
        ("status.phase", "Running"),
        ("metadata.annotations['example.com/owner']", "me"),
        ("metadata.labels.app", "web"),
        ("metadata.labels.none", None),
        ("metadata.name", "a"),
        ("metadata.resourceVersion", "7"),
        ("spec.missing.x", None),
        ("spec.nodeName.x", None),
    ],
)
def test_declared_and_undeclared_paths_have_equal_values(pod: Record, path: str, value: Any) -> None:
    assert field_value(pod, parse_path(path)) == value


def test_declared_field_is_read_without_the_body(monkeypatch: pytest.MonkeyPatch) -> None:
    record = FieldDecoder(["spec.nodeName"])(POD)
    record.raw = b"not JSON any more"
    assert field_value(record, ("spec", "nodeName")) == "n1"


@pytest.mark.parametrize("paths", [("spec", "spec.nodeName"), ("spec.nodeName", "spec")])
def test_contradicting_declared_paths_are_refused(paths: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="declare one"):
        FieldDecoder(paths)


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("spec.nodeName", ["n1"]),
        ("spec.hostNetwork", ["true"]),
        ("status.podIPs", ["10.0.0.1", "10.0.0.2"]),
        ("spec.missing", []),
        ("spec.tolerations", []),
    ],
)
def test_field_index_has_strings_and_list_elements(pod: Record, path: str, values: list[str]) -> None:
    assert FieldIndexFunc(path)(pod) == values


@pytest.mark.conformance("WEAK-22")
@pytest.mark.parametrize(
    ("selector", "passes"),
    [
        ("status.phase=Running", True),
        ("status.phase!=Running", False),
        ("spec.nodeName=n1,metadata.labels.app=web", True),
        ("spec.missing=", True),
        ("spec.hostNetwork=true", True),
    ],
)
def test_field_filter_follows_the_selector(pod: Record, selector: str, passes: bool) -> None:
    assert field_filter(selector)(pod) is passes


@pytest.mark.parametrize(
    ("path", "value"),
    [("spec.nodeName", "n1"), ("spec.nodeName.x", None), ("spec", None), ("spec.deep", None), ("status.phase", None)],
)
def test_path_leads_through_very_deep_objects(path: str, value: Any) -> None:
    deep = body("a", 7, spec={"deep": "?", "nodeName": "n1"}).replace(b'"?"', b"[" * 20_000 + b"]" * 20_000)
    record = decode_complete(decode_record, deep)
    assert field_value(record, parse_path(path)) == value
    assert field_filter(f"{path}={value or ''}")(record)


# Declared fields: the same values whether managed fields are decoded or skipped.


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
    "another member before the metadata": {
        "data": {"metadata": {"name": "b"}, "x": {"managedFields": [1]}},
        "metadata": {**NAMES, "managedFields": FIELDS},
    },
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


def test_whole_metadata_cannot_be_declared() -> None:
    with pytest.raises(UsageError, match="declare fields of it"):
        FieldDecoder(["metadata"])


# The metadata of a record, and damage anywhere in the object.


WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget")
decode = msgspec.json.Decoder(Envelope).decode
SIZED = {"metadata": {**NAMES, "managedFields": FIELDS}, "spec": {"size": 3}}


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
    broken = encoded(SIZED).replace(damage, to)
    assert broken != encoded(SIZED)
    with pytest.raises(DecodeError):
        decode_record(broken)


@pytest.mark.parametrize("between", [b"", b" ", b"\t", b",", b"\xef\xbb\xbf", b'},"object":'])
def test_two_objects_in_one_document_are_refused(between: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_record(encoded(SIZED) + between + encoded(SIZED))


def test_metadata_only_object_is_kept_without_the_type_of_the_answer() -> None:
    raw = encoded({"metadata": SIZED["metadata"]})
    assert decode_metadata(raw).raw is raw
    partial = encoded({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", **json.loads(raw)})
    assert decode_metadata(partial).raw == raw


@pytest.mark.parametrize("case", ["spec behind", "spec in front"])
def test_surplus_beyond_metadata_is_dropped(case: str) -> None:
    members = SIZED if case == "spec behind" else dict(reversed(SIZED.items()))
    assert json.loads(decode_metadata(encoded(members)).raw) == {"metadata": SIZED["metadata"]}
