"""Messages about undecodable objects name the field and the error, and never the value."""

from __future__ import annotations

import enum
import json
import traceback
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pydantic
import pytest

from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.record import decode_record
from aioinformer.cache.objects.refusals import refusal
from aioinformer.errors import DecodeError
from aioinformer.reflector.watch_events import RecordDecoder
from aioinformer.resources.resource import Resource

WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget")
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
class DataSpec:
    size: int = 0
    word: str = ""

    def __post_init__(self) -> None:
        if self.word:
            raise ValueError(f"no such word: {self.word}")


@dataclass
class Data:
    spec: DataSpec


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


def test_memory_error_of_a_decoder_is_raised() -> None:
    def exhausted(body: bytes) -> Any:
        raise MemoryError

    record = decode_record(b'{"metadata":{"name":"w"}}')
    with pytest.raises(MemoryError):
        ObjectType(WIDGETS, exhausted).on_arrival(record)


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
