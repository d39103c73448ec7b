"""Each step of a conversion, both ways: what it moves, where it has no place, and what it passes over."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from aioinformer.crds import ConversionError, Default, Function, Join, Map, Move, Split
from aioinformer.errors import OptionError

MOVE = Move("spec.size", "spec.scaling.replicas")
PORTS = Move("spec.ports[].port", "spec.ports[].number")
POOLS = Move("spec.pools{}.port", "spec.pools{}.number")
MAP = Map("spec.port", to=int, back=str)
MOVING_MAP = Map("spec.port", to=int, back=str, hub_field="spec.number")
SPLIT = Split("spec.address", ["spec.host", "spec.zone"], separator="/")
JOIN = Join(["spec.first", "spec.last"], "spec.name.full", separator=" ")
PAIR = Split("spec.pair", ["spec.low", "spec.high"], split=list, join=lambda low, high: [low, high])
DEFAULT = Default("spec.tier", {"name": "basic", "level": 1})
INNER = Default("spec.ports[].options.protocol", "TCP")


@pytest.mark.parametrize(
    ("step", "given", "found"),
    [
        (MOVE, {"size": 3}, {"scaling": {"replicas": 3}}),
        (MOVE, {"size": None, "scaling": {"most": 5}}, {"scaling": {"most": 5, "replicas": None}}),
        (MOVE, {"size": 3, "scaling": {"replicas": 4}}, {"size": 3, "scaling": {"replicas": 4}}),
        (MOVE, {"size": 3, "scaling": {"replicas": None}}, {"size": 3, "scaling": {"replicas": None}}),
        (MOVE, {"size": 3, "scaling": "auto"}, {"size": 3, "scaling": "auto"}),
        (MOVE, {"host": "a"}, {"host": "a"}),
        (PORTS, {"ports": [{"port": 1}, {"name": "b"}, None, {"port": 2}]}, None),
        (PORTS, {"ports": {"a": {"port": 1}}}, {"ports": {"a": {"port": 1}}}),
        (POOLS, {"pools": {"a": {"port": 1}, "b": None}}, {"pools": {"a": {"number": 1}, "b": None}}),
        (POOLS, {"pools": [{"port": 1}]}, {"pools": [{"port": 1}]}),
        (MAP, {"port": "80"}, {"port": 80}),
        (MAP, {"port": None}, {"port": None}),
        (MOVING_MAP, {"port": "80"}, {"number": 80}),
        (MOVING_MAP, {"port": None}, {"number": None}),
        (MOVING_MAP, {"port": "80", "number": 1}, {"port": "80", "number": 1}),
        (SPLIT, {"address": "h/z"}, {"host": "h", "zone": "z"}),
        (SPLIT, {"address": "h/z/y"}, {"host": "h", "zone": "z/y"}),
        (SPLIT, {"address": "/"}, {"host": "", "zone": ""}),
        (SPLIT, {"address": "h"}, {"address": "h"}),
        (SPLIT, {"address": ""}, {"address": ""}),
        (SPLIT, {"address": None}, {"address": None}),
        (SPLIT, {"address": 7}, {"address": 7}),
        (SPLIT, {"address": "h/z", "zone": "y"}, {"address": "h/z", "zone": "y"}),
        (SPLIT, {"address": "h/z", "host": None}, {"address": "h/z", "host": None}),
        (PAIR, {"pair": [1, 2]}, {"low": 1, "high": 2}),
        (PAIR, {"pair": [1, 2, 3]}, {"pair": [1, 2, 3]}),
        (PAIR, {"pair": None}, {"pair": None}),
        (JOIN, {"first": "a", "last": "b"}, {"name": {"full": "a b"}}),
        (JOIN, {"first": "a"}, {"first": "a"}),
        (JOIN, {"first": "a", "last": None}, {"first": "a", "last": None}),
        (JOIN, {"first": "a", "last": 7}, {"first": "a", "last": 7}),
        (JOIN, {"first": "a", "last": "b", "name": {"full": ""}}, {"first": "a", "last": "b", "name": {"full": ""}}),
        (DEFAULT, {}, {"tier": {"name": "basic", "level": 1}}),
        (DEFAULT, {"tier": None}, {"tier": None}),
        (DEFAULT, {"tier": {"name": "gold"}}, {"tier": {"name": "gold"}}),
        (
            INNER,
            {"ports": [{"options": {}}, {}, {"options": None}, {"options": {"protocol": "UDP"}}]},
            {"ports": [{"options": {"protocol": "TCP"}}, {}, {"options": None}, {"options": {"protocol": "UDP"}}]},
        ),
    ],
)
def test_step_to_the_hub(step: Any, given: Any, found: Any) -> None:
    document = {"spec": copy.deepcopy(given)}
    step.to_hub(document)
    expected = {"ports": [{"number": 1}, {"name": "b"}, None, {"number": 2}]} if found is None else found
    assert document == {"spec": expected}


@pytest.mark.parametrize(
    ("step", "given", "found"),
    [
        (MOVE, {"scaling": {"replicas": 3}}, {"size": 3}),
        (MOVE, {"scaling": {"replicas": 3, "most": 5}}, {"size": 3, "scaling": {"most": 5}}),
        (MOVE, {"scaling": {"replicas": 3}, "size": 4}, {"scaling": {"replicas": 3}, "size": 4}),
        (MOVE, {"scaling": None}, {"scaling": None}),
        (MAP, {"port": 80}, {"port": "80"}),
        (MOVING_MAP, {"number": 80}, {"port": "80"}),
        (SPLIT, {"host": "h", "zone": "z"}, {"address": "h/z"}),
        (SPLIT, {"host": "h"}, {"host": "h"}),
        (SPLIT, {"host": "h", "zone": None}, {"host": "h", "zone": None}),
        (SPLIT, {"host": "h", "zone": 7}, {"host": "h", "zone": 7}),
        (PAIR, {"low": 1, "high": 2}, {"pair": [1, 2]}),
        (PAIR, {"low": None, "high": 2}, {"low": None, "high": 2}),
        (JOIN, {"name": {"full": "a b c"}}, {"first": "a", "last": "b c"}),
        (JOIN, {"name": {"full": "a"}}, {"name": {"full": "a"}}),
        (DEFAULT, {"tier": {"level": 1, "name": "basic"}}, {}),
        (DEFAULT, {"tier": {"level": 1.0, "name": "basic"}}, {"tier": {"level": 1.0, "name": "basic"}}),
        (DEFAULT, {"tier": {"level": True, "name": "basic"}}, {"tier": {"level": True, "name": "basic"}}),
        (DEFAULT, {"tier": None}, {"tier": None}),
        (DEFAULT, {}, {}),
        (
            INNER,
            {"ports": [{"options": {"protocol": "TCP"}}, {"options": {"protocol": "UDP"}}, {"options": None}, {}]},
            {"ports": [{"options": {}}, {"options": {"protocol": "UDP"}}, {"options": None}, {}]},
        ),
    ],
)
def test_step_from_the_hub(step: Any, given: Any, found: Any) -> None:
    document = {"spec": copy.deepcopy(given)}
    step.from_hub(document)
    assert document == {"spec": found}


def test_default_of_one_object_is_not_that_of_another() -> None:
    first: dict[str, Any] = {"spec": {}}
    second: dict[str, Any] = {"spec": {}}
    DEFAULT.to_hub(first)
    first["spec"]["tier"]["name"] = "gold"
    DEFAULT.to_hub(second)
    assert second == {"spec": {"tier": {"name": "basic", "level": 1}}}


@pytest.mark.parametrize(
    ("given", "returned", "found"),
    [
        ({"name": "a", "labels": {"x": "1"}}, {"name": "b", "labels": {"y": "2"}}, {"name": "a", "labels": {"y": "2"}}),
        ({"name": "a", "annotations": {"x": "1"}}, {"name": "a"}, {"name": "a"}),
        ({"name": "a"}, {"annotations": {"x": "1"}, "uid": "2"}, {"name": "a", "annotations": {"x": "1"}}),
        ({"name": "a", "labels": {"x": "1"}}, None, {"name": "a"}),
        (None, {"name": "b"}, {"name": "b"}),
    ],
)
def test_function_changes_labels_and_annotations_only(given: Any, returned: Any, found: Any) -> None:
    step = Function(lambda document: {"metadata": returned, "spec": {"b": 1}}, lambda document: document)
    document = {"metadata": given, "spec": {"a": 1}}
    step.to_hub(document)
    assert document == {"metadata": found, "spec": {"b": 1}}


def test_function_gets_a_copy() -> None:
    def change(document: dict[str, Any]) -> dict[str, Any]:
        document["spec"]["a"] = 2
        raise ValueError

    document = {"spec": {"a": 1}}
    with pytest.raises(ConversionError, match="raised ValueError"):
        Function(change, change).from_hub(document)
    assert document == {"spec": {"a": 1}}


@pytest.mark.parametrize("returned", [None, [], "text"])
def test_function_that_returns_no_object_is_an_error(returned: Any) -> None:
    with pytest.raises(ConversionError, match=f"returned {type(returned).__name__}; return the object"):
        Function(lambda document: returned, lambda document: document).to_hub({"spec": {}})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"split": list},
        {"join": list},
        {"separator": "/", "split": list, "join": list},
    ],
)
def test_parts_need_a_separator_or_both_functions(options: Any) -> None:
    with pytest.raises(OptionError, match="give a separator, or both"):
        Split("spec.a", ["spec.b", "spec.c"], **options)
    with pytest.raises(OptionError, match="give a separator, or both"):
        Join(["spec.b", "spec.c"], "spec.a", **options)
