"""`to_json`: the bytes that the server sent, with the type that lists omit, for every form of storage."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

import msgspec
import pydantic
import pytest
from kubernetes_asyncio.client import V1ObjectMeta, V1Pod

from aioinformer import set_controller_reference, to_json
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.compression import SAMPLES, Codec, PackedRecord
from aioinformer.cache.objects.record import decode_record
from aioinformer.errors import DecodeError
from aioinformer.models import core_v1
from aioinformer.resources.catalog import BUILTIN_RESOURCES
from aioinformer.resources.resource import Resource

PODS: Resource[Any] = next(each for each in BUILTIN_RESOURCES if each.gvr == "v1/pods")
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


def test_type_that_lists_omit_is_added_and_the_rest_is_copied() -> None:
    pod = view()
    assert to_json(pod) == COMPLETE
    assert to_json(pod) == COMPLETE


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


def test_object_of_another_version_keeps_its_own_type() -> None:
    raw = b'{"apiVersion":"example.com/v2","kind":"Gadget",' + REST
    assert to_json(view(raw, WIDGETS)) == raw


def test_deeply_nested_object_gets_its_type() -> None:
    deep = b'{"metadata":{"name":"a"},"spec":' + b'{"a":' * 2000 + b"1" + b"}" * 2001
    assert to_json(view(deep)) == b'{"kind":"Pod","apiVersion":"v1",' + deep[1:]


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


def test_list_of_several_kinds_is_an_array() -> None:
    widget = b'{"apiVersion":"example.com/v1","kind":"Widget",' + REST
    assert to_json([view(), view(widget, WIDGETS)]) == b"[%b,%b]" % (COMPLETE, widget)


def test_completed_bytes_replace_the_old_ones() -> None:
    raw = bytes(bytearray(LISTED))
    pod = view(raw)
    to_json([pod])
    assert sys.getrefcount(raw) == 2  # the variable, and the argument of this call
    assert pod.metadata.labels == {"a": "b"}


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


def test_value_without_json_form_raises() -> None:
    with pytest.raises(TypeError):
        to_json(object())


def test_msgspec_encodes_objects_with_a_hook_and_as_raw() -> None:
    class Report:
        def __init__(self, pods: list[Any]) -> None:
            self.pods = pods

    def hook(value: Any) -> Any:
        if isinstance(value, Report):
            return {"pods": msgspec.Raw(to_json(value.pods))}
        return msgspec.Raw(to_json(value))

    report = {"report": Report([view()]), "model": V1Pod(kind="Pod")}
    encoded = msgspec.json.encode(report, enc_hook=hook)
    assert encoded == b'{"report":{"pods":[%b]},"model":{"kind":"Pod"}}' % COMPLETE


def test_standard_library_encodes_objects_with_a_hook() -> None:
    assert json.loads(json.dumps([view()], default=dict)) == [json.loads(COMPLETE)]


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
