"""ObjectType: user models, transforms with results of all kinds, and messages about what they refuse."""

from __future__ import annotations

import enum
import json
import traceback
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pydantic
import pytest
from kubernetes_asyncio.client import V1ObjectMeta, V1Pod

from aioinformer import Resource, to_json
from aioinformer.cache import Storage
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.record import Record, decode_record
from aioinformer.cache.objects.refusals import refusal
from aioinformer.client import merge_patch
from aioinformer.errors import DecodeError, UsageError
from aioinformer.reflector.watch_events import RecordDecoder

WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget")
PODS: Resource[Any] = Resource("", "v1", "pods", "Pod", model="V1Pod")
WIDGET = {"metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7"}, "spec": {"size": 3}}


def encoded(**changes: Any) -> Record:
    return decode_record(json.dumps({**WIDGET, **changes}).encode())


class Spec(msgspec.Struct):
    size: int


class StructWidget(msgspec.Struct):
    metadata: dict[str, Any]
    spec: Spec


class WeakStructWidget(StructWidget, weakref=True):
    pass


@dataclass
class DataSpec:
    size: int


@dataclass
class DataWidget:
    metadata: dict[str, Any]
    spec: DataSpec


class ModelSpec(pydantic.BaseModel):
    size: int


class ModelWidget(pydantic.BaseModel):
    metadata: dict[str, Any]
    spec: ModelSpec


MODELS = [StructWidget, WeakStructWidget, DataWidget, ModelWidget]


@pytest.mark.parametrize("model", MODELS)
def test_readers_see_the_user_model(model: Any) -> None:
    kind = ObjectType(WIDGETS, model)
    seen = kind.to_view(kind.on_arrival(encoded()))
    assert isinstance(seen, model)
    assert (seen.spec.size, seen.metadata["name"]) == (3, "a")


@pytest.mark.parametrize("model", MODELS)
def test_object_refused_by_the_user_model_is_an_error(model: Any) -> None:
    decoder = RecordDecoder(ObjectType(WIDGETS, model).on_arrival)
    with pytest.raises(DecodeError) as caught:
        decoder.admit(encoded(spec={"size": "hunter2"}))
    assert caught.value.key == "ns/a"
    assert "hunter2" not in str(caught.value)


def test_eagerly_decoded_model_goes_to_the_first_reader() -> None:
    calls: list[bytes] = []

    def decode(raw: bytes) -> Any:
        calls.append(raw)
        return msgspec.json.decode(raw, type=WeakStructWidget)

    kind: ObjectType[Any] = ObjectType(WIDGETS, decode)
    record = kind.on_arrival(encoded())
    first = kind.to_view(record)
    assert kind.to_view(record) is first
    assert len(calls) == 1
    del first
    assert kind.to_view(record).spec.size == 3
    assert len(calls) == 2


@pytest.mark.parametrize("decoder", [object(), "V1Pod", 7])
def test_unusable_decoder_is_refused(decoder: Any) -> None:
    with pytest.raises(UsageError, match="decoder"):
        ObjectType(WIDGETS, decoder)


@pytest.mark.parametrize("storage", ["stripped", "projection", "metadata"])
def test_user_model_is_decoded_from_kept_fields(storage: str) -> None:
    kind: ObjectType[Any] = ObjectType(WIDGETS, json.loads, storage=storage, fields=["spec.size"])
    metadata = {**WIDGET["metadata"], "managedFields": [{"manager": "me"}]}  # type: ignore[dict-item]  # it is a dict
    record = kind.on_arrival(encoded(metadata=metadata, spec={"size": 3, "more": 4}))
    first = kind.to_view(record)
    assert first == kind.to_view(record) == json.loads(record.json)


# Transforms.


def admitted(transform: Any, resource: Resource[Any] = WIDGETS, decoder: Any = None) -> Any:
    kind: ObjectType[Any] = ObjectType(resource, decoder, transform)
    return kind.to_view(kind.on_arrival(encoded()))


@pytest.mark.conformance("DF-07")
def test_identity_transform_changes_nothing() -> None:
    record = encoded()
    assert ObjectType(WIDGETS, transform=lambda obj: obj).on_arrival(record) is record


@pytest.mark.conformance("DF-07")
@pytest.mark.parametrize("resource", [WIDGETS, PODS], ids=["mapping", "model"])
def test_transform_may_return_a_changed_dict(resource: Resource[Any]) -> None:
    def strip(obj: Any) -> Any:
        plain = obj.to_dict()
        del plain["spec"]
        plain["status"] = {"phase": "Small"}
        return plain

    seen = admitted(strip, resource)
    assert "spec" not in seen.to_dict()
    assert seen.to_dict()["status"] == {"phase": "Small"}
    assert seen.metadata.resource_version == "7"


@pytest.mark.parametrize("model", MODELS)
def test_transform_may_return_a_user_model(model: Any) -> None:
    def double(obj: Any) -> Any:
        obj.spec.size *= 2
        return model(metadata=obj.metadata, spec=obj.spec)

    assert admitted(double, decoder=model).spec.size == 6


def test_transform_may_return_a_client_library_model() -> None:
    seen = admitted(lambda pod: V1Pod(metadata=V1ObjectMeta(name="a", namespace="ns", resource_version="7")), PODS)
    assert seen.metadata.resource_version == "7"


REFUSED: dict[str, tuple[Any, str]] = {
    "None": (lambda obj: None, "returned None: .*it must return the object"),
    "another-name": (
        lambda obj: {"metadata": {**obj["metadata"], "name": "b"}},
        "the transform returned an object with another name or namespace",
    ),
    "another-namespace": (
        lambda obj: {"metadata": {**obj["metadata"], "namespace": "other"}},
        "the transform returned an object with another name or namespace",
    ),
    "no-name": (lambda obj: {"metadata": {}}, "returned dict: .*field `name`.*it must return the object"),
    "no-metadata": (lambda obj: {"spec": {}}, "returned dict: .*field `metadata`.*it must return the object"),
    "no-object": (lambda obj: 7, "returned int: .*it must return the object"),
    "list": (lambda obj: [obj], "returned list: .*it must return the object"),
    "no-json": (lambda obj: object(), "returned object, which has no JSON form; it must return the object"),
    "version": (
        lambda obj: {"metadata": {**obj["metadata"], "resourceVersion": 7}},
        r"returned dict: .*\$\.metadata\.resourceVersion",
    ),
    "raises": (lambda obj: 1 / 0, "ZeroDivisionError in transform or decoder"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_transform_result_is_refused(case: str) -> None:
    transform, reason = REFUSED[case]
    decoder = RecordDecoder(ObjectType(WIDGETS, transform=transform).on_arrival)
    with pytest.raises(DecodeError, match=reason) as caught:
        decoder.admit(encoded())
    assert (caught.value.key, caught.value.version) == ("ns/a", "7")


LEFT: dict[str, Any] = {
    "nothing": {},
    "other values": {"uid": "other", "resourceVersion": "99"},
    "null": {"uid": None, "resourceVersion": None},
}


@pytest.mark.parametrize("storage", Storage)
@pytest.mark.parametrize("left", LEFT)
def test_uid_and_version_are_those_of_the_server_whatever_a_transform_leaves(left: str, storage: str) -> None:
    def slim(widget: Any) -> Any:
        return {"metadata": {"name": "a", "namespace": "ns", **LEFT[left]}, "spec": widget.get("spec")}

    fields = ["spec"] if storage == Storage.PROJECTION else []
    kind: ObjectType[Any] = ObjectType(WIDGETS, transform=slim, storage=storage, fields=fields)
    seen = kind.to_view(kind.on_arrival(encoded()))
    document = json.loads(to_json(seen))["metadata"]
    assert (document["uid"], document["resourceVersion"]) == ("u", "7")
    if storage != "dict":
        assert (seen.metadata.uid, seen.metadata.resource_version) == ("u", "7")
        assert merge_patch(seen, seen.evolve("metadata.labels", {"a": "b"}))["metadata"]["resourceVersion"] == "7"


def test_version_that_the_server_has_not_sent_is_not_kept() -> None:
    kind: ObjectType[Any] = ObjectType(WIDGETS, transform=lambda obj: {**obj, "metadata": {**obj["metadata"], **more}})
    more = {"resourceVersion": "7"}
    record = kind.on_arrival(decode_record(b'{"metadata":{"name":"a","uid":"u"}}'))
    assert record.resource_version == ""
    assert json.loads(record.json) == {"metadata": {"name": "a", "uid": "u"}}


# Bodies that records remember.


def test_collected_body_does_not_clear_its_successor() -> None:
    found, first, second = encoded(), DataSpec(1), DataSpec(2)
    found.remember(first)
    found.remember(second)
    del first
    assert found.recall() is second
    del second
    assert found.recall() is None


# Messages about undecodable objects name the field and the error, and never the value.


SECRET = "s3cret-value"


class Colour(enum.Enum):
    RED = "red"


class StructSpec(msgspec.Struct, forbid_unknown_fields=True):
    size: int = 0
    colour: Colour = Colour.RED
    names: dict[str, int] = {}
    short: Annotated[str, msgspec.Meta(max_length=3)] = ""


class Struct(msgspec.Struct):
    spec: StructSpec


class PydanticSpec(pydantic.BaseModel):
    size: int = 0
    names: dict[str, int] = {}


class Pydantic(pydantic.BaseModel):
    spec: PydanticSpec

    @pydantic.field_validator("spec")
    @classmethod
    def checked(cls, spec: PydanticSpec) -> PydanticSpec:
        if spec.size == 13:
            raise ValueError(f"{SECRET} is not lucky")
        return spec


@dataclass
class CheckedSpec:
    size: int = 0
    word: str = ""

    def __post_init__(self) -> None:
        if self.word:
            raise ValueError(f"no such word: {self.word}")


@dataclass
class Data:
    spec: CheckedSpec


def from_function(body: bytes) -> Any:
    return Pydantic.model_validate_json(body)


def failing(body: bytes) -> Any:
    raise LookupError(json.loads(body)["spec"])


@pytest.mark.parametrize(
    ("decoder", "spec", "reason"),
    [
        (Struct, {"size": SECRET}, "Expected `int`, got `str` at $.spec.size"),
        (Struct, {"colour": SECRET}, "invalid value at $.spec.colour"),
        (Struct, {"names": {SECRET: SECRET}}, "Expected `int`, got `str` at $.spec.names[...]"),
        (Struct, {"short": SECRET}, "Expected `str` of length <= 3 at $.spec.short"),
        (Struct, {SECRET: 1}, "invalid value at $.spec"),
        (Pydantic, {"size": SECRET}, "int_parsing at $.spec.size"),
        (Pydantic, {"size": SECRET, "names": {SECRET: SECRET}}, "int_parsing at $.spec.size and 1 more"),
        (Pydantic, {"names": {SECRET: SECRET}}, "int_parsing at $.spec.names[...]"),
        (Pydantic, {"size": 13}, "value_error at $.spec"),
        (Data, {"size": SECRET}, "Expected `int`, got `str` at $.spec.size"),
        (Data, {"word": SECRET}, "refused by the class (ValueError) at $.spec"),
        (from_function, {"size": SECRET}, "int_parsing at $.spec.size"),
        (failing, {"size": SECRET}, "LookupError"),
    ],
)
def test_refusal_names_the_field_and_no_value(decoder: Any, spec: dict[str, Any], reason: str) -> None:
    raw = json.dumps({"metadata": {"name": "w", "namespace": "ns"}, "spec": spec}).encode()
    records = RecordDecoder(ObjectType(WIDGETS, decoder).on_arrival)
    with pytest.raises(DecodeError) as caught:
        records.from_list(raw)
    assert str(caught.value) == f"ns/w: the decoder refuses it: {reason}"
    told = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    error: BaseException | None = caught.value
    while error is not None:
        told += str(error) + repr(error)
        error = error.__cause__ or error.__context__
    assert SECRET not in told


def test_failing_transform_quotes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def transform(widget: Any) -> Any:
        return Pydantic.model_validate(widget.to_dict())

    raw = json.dumps({"metadata": {"name": "w"}, "spec": {"size": SECRET}}).encode()
    with pytest.raises(DecodeError, match=r"int_parsing at \$\.spec\.size") as caught:
        RecordDecoder(ObjectType(WIDGETS, transform=transform).on_arrival).from_list(raw)
    assert SECRET not in "".join(traceback.format_exception(caught.value)) + caplog.text
    assert "the transform raised for w: int_parsing at $.spec.size" in caplog.text


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (msgspec.DecodeError("JSON is malformed"), "not JSON"),
        (RecursionError(), "nested too deeply"),
        (KeyError("secret"), "KeyError"),
    ],
)
def test_other_errors_are_named_by_class(error: Exception, reason: str) -> None:
    assert refusal(error) == reason
