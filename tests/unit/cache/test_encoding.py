"""The JSON of objects of users' classes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pydantic
import pytest

from aioinformer import UsageError, evolve
from aioinformer.cache.objects.encoding import checked_json, encoded


@dataclass
class Point:
    x: int | None
    y: int | None = None


class Part(pydantic.BaseModel):
    needed: int | None
    absent: int | None = None
    three: int | None = 3
    known_as: str = pydantic.Field(default="x", alias="knownAs")


class Secrets(pydantic.BaseModel):
    text: pydantic.SecretStr = pydantic.SecretStr("hunter2")
    raw: pydantic.SecretBytes = pydantic.SecretBytes(b"hunter2")
    numbers: list[pydantic.Secret[int]] = [pydantic.Secret[int](5)]
    texts: dict[str, pydantic.SecretStr | None] = {"a": pydantic.SecretStr("b"), "c": None}


class Whole(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")

    parts: list[Part] = []
    point: Point = Point(None)
    secrets: Secrets = Secrets()
    root: pydantic.RootModel[list[Part]] = pydantic.RootModel[list[Part]]([])

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def computed(self) -> int | None:
        return None


def json_of(obj: Any) -> Any:
    return json.loads(encoded(obj))


def test_none_is_left_out_where_it_is_the_default_alone() -> None:
    assert json_of(Part(needed=None, three=None)) == {"needed": None, "three": None, "knownAs": "x"}
    part = Part(needed=None)
    whole = Whole(parts=[part], root=pydantic.RootModel[list[Part]]([part]), more=None)  # type: ignore[call-arg]
    expected = {"needed": None, "three": 3, "knownAs": "x"}
    found = json_of(whole)
    assert (found["parts"], found["root"], found["point"]) == ([expected], [expected], {"x": None})
    assert found.keys() == {"parts", "root", "point", "secrets"}


def test_secrets_are_written_with_their_values() -> None:
    expected = {"text": "hunter2", "raw": "hunter2", "numbers": [5], "texts": {"a": "b", "c": None}}
    assert json_of(Secrets()) == expected
    assert json_of(Whole())["secrets"] == expected
    assert json_of({"in": [Secrets()]})["in"] == [expected]
    assert "hunter2" not in repr(Secrets())


def test_models_are_changed_with_their_nulls_and_secrets() -> None:
    assert evolve(Part(needed=None, three=None), "absent", 4) == Part(needed=None, absent=4, three=None)
    changed = evolve(Secrets(), "texts", {})
    assert changed.text.get_secret_value() == "hunter2"
    assert [each.get_secret_value() for each in changed.numbers] == [5]


class Numbers(pydantic.BaseModel):
    optional: int | None
    value: float = 0


def test_infinite_numbers_are_refused_beside_nulls() -> None:
    assert checked_json(Numbers(optional=None)) == b'{"optional":null,"value":0.0}'
    with pytest.raises(UsageError, match="value"):
        checked_json(Numbers(optional=None, value=float("inf")))
