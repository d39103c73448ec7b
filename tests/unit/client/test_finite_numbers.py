"""NaN and infinity: JSON would have null in their place, which deletes a member, so no body with one is sent."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pydantic
import pytest
from kubernetes_asyncio.client import V1ConfigMap, V1ObjectMeta

from aioinformer import Client, Resource, UsageError, evolve
from tests.support.scripted_transport import OBJECT, Answer, Scripted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget")
META = {"name": "a", "namespace": "shop", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}


class Spec(msgspec.Struct):
    size: float
    other: str | None = None


class Struct(msgspec.Struct):
    metadata: dict[str, Any]
    spec: Spec


@dataclasses.dataclass
class Data:
    metadata: dict[str, Any]
    spec: Spec


class Model(pydantic.BaseModel):
    metadata: dict[str, Any]
    spec: dict[str, float]


class Constants(Model):
    model_config = pydantic.ConfigDict(ser_json_inf_nan="constants")


def widget(number: float) -> dict[str, Any]:
    return {"metadata": META, "spec": {"size": number, "none": None}}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(
    "make",
    [
        widget,
        lambda number: {**widget(number), "apiVersion": "example.com/v1", "kind": "Widget"},
        lambda number: Struct(META, Spec(number)),
        lambda number: Data(META, Spec(number)),
        lambda number: Model(metadata=META, spec={"size": number}),
        lambda number: Constants(metadata=META, spec={"size": number}),
    ],
)
async def test_object_with_such_a_number_is_not_sent(make: Callable[[float], Any], number: float) -> None:
    transport = Scripted()
    client = Client(cast("Any", transport), field_manager="tests")
    widgets = client.resource(WIDGETS)
    obj = make(number)
    for call in (widgets.create, widgets.replace, widgets.apply):
        with pytest.raises(UsageError, match=r"spec\.size is NaN or infinite"):
            await call(obj)
    assert transport.requests == []


CALLS: list[Callable[[Client, float], Awaitable[Any]]] = [
    lambda c, number: c.resource(WIDGETS).patch("shop/a", {"spec": {"list": [0, {"size": number}]}}),
    lambda c, number: c.resource(WIDGETS).patch("shop/a", [{"op": "add", "path": "/x", "value": number}], "json"),
    lambda c, number: c.resource(WIDGETS).subresource("scale").create("shop/a", {"spec": {"replicas": number}}),
    lambda c, number: c.resource(WIDGETS).apply_if_changed(widget(number), None),
    lambda c, number: c.request("POST", "/apis/x/v1/y", body={"a": number}),
    lambda c, number: c.resource(WIDGETS).edit(cast("Any", widget(1.0)), lambda _: widget(number)),
]


@pytest.mark.parametrize("call", CALLS)
async def test_no_call_sends_such_a_number(call: Callable[[Client, float], Awaitable[Any]]) -> None:
    transport = Scripted()
    for number in (float("nan"), float("inf")):
        with pytest.raises(UsageError, match="is NaN or infinite"):
            await call(Client(cast("Any", transport), field_manager="tests"), number)
    assert transport.requests == []


async def test_evolve_names_the_member() -> None:
    obj = await Client(cast("Any", Scripted(Answer()))).core.v1.configmaps.get("shop/a")
    for old in (widget(1.0), OBJECT):
        with pytest.raises(UsageError, match=r"spec\.sizes\.1 is NaN"):
            evolve(old, {"spec": {"sizes": [1, float("nan")]}})
        with pytest.raises(UsageError, match=r"is NaN or infinite"):
            evolve(old, "spec.size", float("inf"))
    with pytest.raises(UsageError, match=r"metadata\.labels\.x is NaN"):
        obj.evolve({"metadata": {"labels": {"x": float("nan")}}})


async def test_null_and_words_are_sent_unchanged() -> None:
    transport = Scripted()
    widgets = Client(cast("Any", transport)).resource(WIDGETS)
    await widgets.patch("shop/a", {"a": None, "b": "NaN", "c": "Infinity null", "d": 1e308})
    assert transport.requests[0].body == b'{"a":null,"b":"NaN","c":"Infinity null","d":1e308}'
    await Client(cast("Any", transport)).core.v1.configmaps.create(
        V1ConfigMap(metadata=V1ObjectMeta(name="a", namespace="shop"), data={"x": "null"})
    )
    assert len(transport.requests) == 2
