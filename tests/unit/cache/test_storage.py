"""Storage tiers: what each stores, and that identity and version stay."""

from __future__ import annotations

import gc
import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.compression import AGED, SAMPLES, Codec, Compression, PackedRecord
from aioinformer.cache.objects.record import Record, decode_record
from aioinformer.cache.objects.storage import Storage
from aioinformer.errors import DecodeError, UsageError
from aioinformer.resources.catalog import BUILTIN_RESOURCES

if TYPE_CHECKING:
    from aioinformer.resources.resource import Resource


def body(name: str, version: int, metadata: dict[str, Any] | None = None, **more: Any) -> bytes:
    """An object as a list has it."""
    own = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return json.dumps({"metadata": own | (metadata or {}), **more}, separators=(",", ":")).encode()


PODS: Resource[Any] = next(each for each in BUILTIN_RESOURCES if each.gvr == "v1/pods")
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Spec(msgspec.Struct):
    nodeName: str


class Pod(msgspec.Struct, weakref=True):
    spec: Spec


POD = body(
    "a",
    7,
    {
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


@pytest.mark.parametrize("storage", ["bytes", "stripped", "projection", "metadata", "dict"])
def test_every_tier_keeps_identity_and_labels(storage: str) -> None:
    objects, record = kept(storage, ("spec.nodeName",))
    document = json.loads(record.json)
    assert (record.key, record.uid, record.resource_version) == ("ns/a", document["metadata"]["uid"], "7")
    assert document["metadata"]["labels"] == {"app": "web"}
    assert objects.decode(record.json).same_version(record)


@pytest.mark.conformance("WEAK-17")
def test_bytes_tier_keeps_the_received_bytes() -> None:
    assert kept("bytes")[1].json == POD


def test_stripped_tier_drops_managed_fields_and_last_applied() -> None:
    document = json.loads(POD)
    del document["metadata"]["managedFields"], document["metadata"]["annotations"][APPLIED]
    assert json.loads(kept("stripped")[1].json) == document


def test_object_with_nothing_to_strip_is_not_copied() -> None:
    raw = body("a", 7)
    assert kept("stripped", raw=raw)[1].json is raw


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


def test_dict_tier_refuses_broken_json() -> None:
    raw = POD.replace(b'"Running"', b'"\xff\xfe"')
    with pytest.raises(DecodeError):
        kept("dict", raw=raw)


@pytest.mark.parametrize("storage", ["stripped", "projection", "metadata", "dict"])
def test_tiers_do_not_keep_dropped_bytes_alive(storage: str) -> None:
    marker = b'"x":"' + b"y" * 100_000 + b'"'
    raw = POD.replace(b'"nodeName"', marker + b',"nodeName"').replace(b'"manager"', marker + b',"manager"')
    _, record = kept(storage, ("spec.nodeName",), raw=raw)
    del raw
    gc.collect()
    assert not [each for each in gc.get_referents(record, record.labels, record.fields) if len(repr(each)) > 200_000]


@pytest.mark.parametrize("name", ["byte", "", "BYTES"])
def test_unknown_tier_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError, match="choose one of bytes, stripped, compressed"):
        ObjectType(PODS, storage=name)


def test_decoder_with_dict_tier_is_refused() -> None:
    with pytest.raises(UsageError, match="choose one"):
        ObjectType(PODS, storage=Storage.DICT, decoder=dict)


@pytest.mark.parametrize("storage", ["bytes", "stripped"])
def test_user_model_reads_every_tier(storage: str) -> None:
    class Spec(msgspec.Struct):
        nodeName: str

    class Pod(msgspec.Struct, weakref=True):
        spec: Spec

    objects: ObjectType[Pod] = ObjectType(PODS, storage=storage, decoder=Pod)
    assert objects.to_view(objects.on_arrival(objects.decode(POD))).spec.nodeName == "n1"


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


def test_objects_stay_uncompressed_without_a_dictionary() -> None:
    record = decode_record(POD)
    assert Compression(lambda: None)(record) is record


def test_compressed_object_is_small_and_unchanged(trained: Compression) -> None:
    raw = pods(1)[0]
    packed = trained(decode_record(raw))
    assert isinstance(packed, PackedRecord)
    assert len(packed.raw) < len(raw) / 3
    assert packed.json == raw


def test_compressed_object_has_no_overhead(trained: Compression) -> None:
    packed = trained(decode_record(pods(1)[0])).raw
    assert packed.__sizeof__() < len(packed) + 64


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
