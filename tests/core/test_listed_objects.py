"""The objects of a list: a mapping in its order, made of many small dicts."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.queue.listed_objects import DividedDict, ListedObjects


def names(count: int) -> list[str]:
    return [f"ns/o{number}" for number in range(count)]


def listed(*keys: str) -> ListedObjects[int]:
    objects: ListedObjects[int] = ListedObjects()
    for key in keys:
        objects.put(key, 1)
    return objects


STEPS = st.lists(
    st.tuples(st.sampled_from(["set", "put", "pop", "delete", "popitem"]), st.sampled_from("abcde"), st.integers(1, 9)),
    max_size=20,
)


@pytest.mark.parametrize("kind", [DividedDict, ListedObjects])
@given(steps=STEPS)
def test_it_holds_what_a_dict_would_hold(kind: type[DividedDict[int]], steps: list[tuple[str, str, int]]) -> None:
    objects, plain = kind(), dict[str, int]()
    for step, key, value in steps:
        if step == "put" and isinstance(objects, ListedObjects):
            assert objects.put(key, value) is (key not in plain)
            plain[key] = value
        elif step in ("put", "set"):
            objects[key] = plain[key] = value
        elif step == "pop":
            assert objects.pop(key, None) == plain.pop(key, None)
        elif step == "delete" and key in plain:
            del objects[key], plain[key]
        elif step == "popitem" and plain:
            taken, what = objects.popitem()
            assert plain.pop(taken) == what
    assert objects == plain
    assert sorted(objects) == sorted(plain)
    assert (len(objects), [objects.get(key) for key in "abcde"]) == (len(plain), [plain.get(key) for key in "abcde"])


@pytest.mark.parametrize("objects", [DividedDict(), ListedObjects()])
def test_what_is_not_there_is_missed_as_in_a_dict(objects: Any) -> None:
    assert "none" not in objects
    with pytest.raises(KeyError):
        objects["none"]
    with pytest.raises(KeyError):
        objects.pop("none")
    with pytest.raises(KeyError):
        del objects["none"]
    with pytest.raises(KeyError):
        objects.popitem()


def test_a_list_is_in_its_own_order_however_long_it_is() -> None:
    assert [*listed(*names(5000))] == names(5000)


def test_an_object_that_is_listed_twice_keeps_its_place_and_has_its_last_state() -> None:
    objects = listed("a", "b")
    assert objects.put("a", 2) is False
    assert [*objects.items()] == [("a", 2), ("b", 1)]


@pytest.mark.parametrize(("again", "order"), [([], ["a", "c"]), (["b"], ["a", "b", "c"])])
def test_an_object_that_was_deleted_on_the_way_is_in_the_list_if_it_came_again(
    again: list[str], order: list[str]
) -> None:
    objects = listed("a", "b", "c")
    del objects["b"]
    for key in again:
        objects.put(key, 2)
    assert [*objects] == order
    assert objects.apart()[1] == deque(order)


def test_objects_and_order_can_be_had_apart_and_are_gone_then() -> None:
    objects = listed("b", "a")
    by_key, line = objects.apart()
    assert (dict(by_key), line) == ({"a": 1, "b": 1}, deque("ba"))
    assert (len(objects), [*objects]) == (0, [])


def test_what_was_never_there_leaves_no_gap() -> None:
    objects = listed("a")
    objects.pop("b", None)
    assert not [*objects.closing_gaps()]


def test_no_dict_of_a_long_list_is_large() -> None:
    assert max(map(len, listed(*names(100_000))._parts)) < 2500
