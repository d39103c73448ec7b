"""Storage tiers: what each keeps, and the JSON that `to_json` returns for it."""

from __future__ import annotations

import gc
import json
from dataclasses import dataclass
from typing import Any, get_args

import msgspec
import pydantic
import pytest
from kubernetes_asyncio.client import V1ObjectMeta, V1Pod

from aioinformer import Resource, to_json
from aioinformer.cache import Storage, StorageTier
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.compression import AGED, SAMPLES, Codec, Compression, PackedRecord
from aioinformer.cache.objects.record import Record, decode_record
from aioinformer.client import set_controller_reference
from aioinformer.errors import DecodeError, UsageError
from aioinformer.models import core_v1
from aioinformer.resources import BUILTIN_RESOURCES
from tests.support.wire_objects import body

PODS: Resource[Any] = next(each for each in BUILTIN_RESOURCES if each.gvr == "v1/pods")
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


POD = body(
    "a",
    7,
    metadata={
        "labels": {"app": "web"},
        "annotations": {APPLIED: "{}", "kept": "yes"},
        "managedFields": [{"manager": "m"}],
    },
    spec={"nodeName": "n1", "containers": [{"name": "c"}]},
    status={"phase": "Running"},
)


def kept(storage: str, fields: tuple[str, ...] = (), raw: bytes = POD) -> tuple[ObjectType[Any], Record]:
    objects: ObjectType[Any] = ObjectType(PODS, storage=storage, fields=fields)
    return objects, objects.on_arrival(objects.decode(raw))


@pytest.mark.parametrize("storage", Storage)
def test_every_tier_keeps_identity_and_labels(storage: str) -> None:
    objects, record = kept(storage, ("spec.nodeName",))
    document = json.loads(record.json)
    assert (record.key, record.uid, record.resource_version) == ("ns/a", document["metadata"]["uid"], "7")
    assert document["metadata"]["labels"] == {"app": "web"}
    assert objects.decode(record.json).same_version(record)


def test_stripped_tier_drops_managed_fields_and_last_applied() -> None:
    document = json.loads(POD)
    del document["metadata"]["managedFields"], document["metadata"]["annotations"][APPLIED]
    assert json.loads(kept("stripped")[1].json) == document


def test_projection_keeps_declared_fields_only() -> None:
    objects, record = kept("projection", ("spec.nodeName", "status.phase"))
    pod = objects.to_view(record)
    assert (pod.spec.node_name, pod.status.phase, pod.spec.containers) == ("n1", "Running", ())
    assert pod.metadata.labels == {"app": "web"}


def test_projection_without_fields_is_refused() -> None:
    with pytest.raises(UsageError, match="fields="):
        kept("projection")


@pytest.mark.conformance("FAC-13")
def test_metadata_tier_keeps_metadata_only() -> None:
    objects, record = kept("metadata")
    assert json.loads(record.json).keys() == {"metadata"}
    assert objects.to_view(record).spec is None


def test_dict_tier_is_decoded_once_and_read_only() -> None:
    objects, record = kept("dict")
    pod = objects.to_view(record)
    assert pod["spec"]["nodeName"] == "n1"
    assert objects.to_view(record) is pod
    with pytest.raises(TypeError, match="to_dict"):
        pod["spec"]["nodeName"] = "n2"


@pytest.mark.parametrize("storage", sorted({*Storage} - {Storage.BYTES, Storage.COMPRESSED}))
def test_tiers_do_not_keep_dropped_bytes_alive(storage: str) -> None:
    marker = b'"x":"' + b"y" * 100_000 + b'"'
    raw = POD.replace(b'"nodeName"', marker + b',"nodeName"').replace(b'"manager"', marker + b',"manager"')
    _, record = kept(storage, ("spec.nodeName",), raw=raw)
    del raw
    gc.collect()
    assert not [each for each in gc.get_referents(record, record.labels, record.fields) if len(repr(each)) > 200_000]


def test_types_of_the_option_name_every_tier() -> None:
    names = [name for each in get_args(StorageTier) for name in (get_args(each) or [each])]
    assert sorted(map(repr, names)) == sorted(repr(name) for tier in Storage for name in (tier, tier.value))


@pytest.mark.parametrize("name", ["byte", "", "BYTES"])
def test_unknown_tier_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError, match="choose one of bytes, stripped, compressed"):
        ObjectType(PODS, storage=name)


def test_decoder_with_dict_tier_is_refused() -> None:
    with pytest.raises(UsageError, match="choose one"):
        ObjectType(PODS, storage=Storage.DICT, decoder=dict)


# Compression.


def pods(count: int, filler: str = "the same in all of them") -> list[bytes]:
    return [body(f"pod-{n}", n, spec={"nodeName": f"node-{n % 7}", "text": f"{filler} {n}" * 20}) for n in range(count)]


@pytest.fixture
def trained() -> Compression:
    wanted: list[bool] = []
    tier = Compression(lambda: wanted.append(True))
    for raw in pods(SAMPLES):
        tier(decode_record(raw))
    assert wanted == [True]
    tier.adopt(Codec(tier.samples))
    return tier


def test_compressed_object_is_small_and_unchanged(trained: Compression) -> None:
    raw = pods(1)[0]
    packed = trained(decode_record(raw))
    assert isinstance(packed, PackedRecord)
    assert len(packed.raw) < len(raw) / 3
    assert packed.json == raw


def test_changed_objects_lead_to_a_new_dictionary() -> None:
    wanted: list[int] = []
    tier = Compression(lambda: wanted.append(len(tier.samples)))
    for raw in pods(SAMPLES):
        tier(decode_record(raw))
    tier.adopt(Codec(tier.samples))
    for raw in pods(1000):
        tier(decode_record(raw))
    strange = [json.dumps({"metadata": {"name": f"s{n}"}, "x": hex(pow(7, n + 900))}).encode() for n in range(2500)]
    for raw in strange:
        tier(decode_record(raw))
    assert wanted == [SAMPLES, SAMPLES]
    assert AGED > 1


def test_objects_of_an_older_dictionary_stay_readable(trained: Compression) -> None:
    raw = pods(1)[0]
    packed = trained(decode_record(raw))
    trained.adopt(Codec(pods(SAMPLES, filler="something else")))
    assert packed.json == raw


# As JSON.


WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget")
REST = b'"metadata":{"name":"a","namespace":"ns","uid":"u","labels":{"a":"b"}},"spec":{"nodeName" : "n1","new":[1.50]}}'
LISTED = b"{" + REST
WATCHED = b'{"kind":"Pod","apiVersion":"v1",' + REST
COMPLETE = WATCHED
REVERSED = b'{"apiVersion":"v1","kind":"Pod",' + REST


def view(raw: bytes = LISTED, resource: Resource[Any] = PODS, **options: Any) -> Any:
    kind: ObjectType[Any] = ObjectType(resource, **options)
    return kind.to_view(kind.on_arrival(kind.decode(raw)))


@pytest.mark.parametrize("raw", [WATCHED, REVERSED])
def test_object_is_returned_as_the_server_sent_it(raw: bytes) -> None:
    assert to_json(view(raw)) == raw


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"kind":"Pod",' + REST, b'{"apiVersion":"v1","kind":"Pod",' + REST),
        (b'{"apiVersion":"v1",' + REST, b'{"kind":"Pod","apiVersion":"v1",' + REST),
        (LISTED[:-1] + b',"kind":"Pod","apiVersion":"v1"}', LISTED[:-1] + b',"kind":"Pod","apiVersion":"v1"}'),
        (b' { "kind": "Pod", "apiVersion": "v1", ' + REST, b' { "kind": "Pod", "apiVersion": "v1", ' + REST),
        (b"\n { " + REST, b'{"kind":"Pod","apiVersion":"v1", ' + REST),
    ],
)
def test_only_what_is_missing_is_added(raw: bytes, expected: bytes) -> None:
    assert to_json(view(raw)) == expected


def test_objects_are_not_decoded() -> None:
    wrong = b'{"metadata":{"name":"a"},"spec":{"nodeName":3}}'
    assert json.loads(to_json(view(wrong)))["spec"] == {"nodeName": 3}


def test_invalid_json_raises_without_its_content() -> None:
    pod = view()
    pod._record.raw = b'{"metadata":{},"spec":s3cret}'
    with pytest.raises(DecodeError) as caught:
        to_json(pod)
    assert "s3cret" not in str(caught.value)


def test_list_is_an_array() -> None:
    pods = [view(), view(WATCHED), view()]
    assert to_json(pods) == b"[%b,%b,%b]" % (COMPLETE, WATCHED, COMPLETE)
    assert to_json(pods) == to_json(tuple(pods)) == to_json(iter(pods)) == to_json(dict(enumerate(pods)).values())
    assert to_json([view(WATCHED)]) == b"[%b]" % WATCHED
    assert to_json([]) == to_json(iter(())) == b"[]"


def test_tiers_give_what_they_keep() -> None:
    managed = LISTED.replace(b'"labels"', b'"managedFields":[{"manager":"m"}],"labels"')
    assert json.loads(to_json(view(managed, storage="stripped"))) == json.loads(COMPLETE)
    projected = json.loads(to_json(view(storage="projection", fields=["spec.nodeName"])))
    assert (projected["kind"], projected["spec"]) == ("Pod", {"nodeName": "n1"})
    metadata = json.loads(to_json(view(storage="metadata")))
    assert metadata.keys() == {"apiVersion", "kind", "metadata"}
    assert json.loads(to_json(view(storage="dict"))) == json.loads(LISTED)


def test_compressed_object_is_unpacked() -> None:
    pytest.importorskip("zstandard")
    codec = Codec([LISTED.replace(b'"a"', b'"pod-%d"' % number) for number in range(SAMPLES)])
    record = decode_record(LISTED)
    pod = core_v1.Pod(record.with_raw(codec.pack(LISTED), PackedRecord, codec=codec))
    assert to_json([pod, pod]) == b"[%b,%b]" % (COMPLETE, COMPLETE)


class StructSpec(msgspec.Struct):
    size: int


@dataclass
class DataSpec:
    size: int


class PydanticSpec(pydantic.BaseModel):
    size: int


@pytest.mark.parametrize("spec", [StructSpec(3), DataSpec(3), PydanticSpec(size=3), {"size": 3}])
def test_objects_of_the_user_have_json(spec: Any) -> None:
    assert json.loads(to_json(spec)) == {"size": 3}
    assert json.loads(to_json([spec])) == [{"size": 3}]


def test_parts_and_models_have_json() -> None:
    pod = view()
    assert json.loads(to_json(pod.metadata)) == json.loads(LISTED)["metadata"]
    assert json.loads(to_json(pod.spec))["nodeName"] == "n1"
    assert json.loads(to_json(V1Pod(metadata=V1ObjectMeta(name="a")))) == {"metadata": {"name": "a"}}


def test_objects_may_be_inside_of_other_data() -> None:
    assert json.loads(to_json({"node": "n1", "pods": [view()]})) == {"node": "n1", "pods": [json.loads(COMPLETE)]}


PARTIAL = b'"metadata":{"name":"a","uid":"u","resourceVersion":"7","managedFields":[{"manager":"x"}]}}'


@pytest.mark.parametrize("fields", [(), ("metadata.name",)], ids=["plain", "with fields"])
@pytest.mark.parametrize("resource", [PODS, WIDGETS], ids=["built in", "custom"])
@pytest.mark.parametrize(
    "head",
    [
        b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",',
        b'{"apiVersion":"meta.k8s.io/v1", "kind":"PartialObjectMetadata",',
        b"{",
    ],
)
def test_metadata_tier_states_the_kind_of_the_object(head: bytes, resource: Any, fields: tuple[str, ...]) -> None:
    obj = view(head + PARTIAL, resource, storage="metadata", fields=fields)
    stated = {"apiVersion": resource.api_version, "kind": resource.kind}
    for document in (obj.to_dict(), json.loads(to_json(obj))):
        assert {name: document[name] for name in ("apiVersion", "kind")} == stated
        assert document["metadata"]["managedFields"]
    assert (obj.api_version, obj.kind) == (resource.api_version, resource.kind)
    owned: Any = set_controller_reference({"metadata": {"name": "b"}}, obj)
    reference = owned["metadata"]["ownerReferences"][0]
    assert {name: reference[name] for name in stated} == stated
