"""ListedObjects: an ordered mapping of many small dicts."""

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
def test_behaves_as_a_dict(kind: type[DividedDict[int]], steps: list[tuple[str, str, int]]) -> None:
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
def test_missing_keys_raise_as_in_a_dict(objects: Any) -> None:
    assert "none" not in objects
    with pytest.raises(KeyError):
        objects["none"]
    with pytest.raises(KeyError):
        objects.pop("none")
    with pytest.raises(KeyError):
        del objects["none"]
    with pytest.raises(KeyError):
        objects.popitem()


def test_long_list_keeps_its_order() -> None:
    assert [*listed(*names(5000))] == names(5000)


def test_object_listed_twice_keeps_place_and_last_state() -> None:
    objects = listed("a", "b")
    assert objects.put("a", 2) is False
    assert [*objects.items()] == [("a", 2), ("b", 1)]


@pytest.mark.parametrize(("again", "order"), [([], ["a", "c"]), (["b"], ["a", "b", "c"])])
def test_deleted_and_added_object_moves_to_the_end(again: list[str], order: list[str]) -> None:
    objects = listed("a", "b", "c")
    del objects["b"]
    for key in again:
        objects.put(key, 2)
    assert [*objects] == order
    assert objects.detach()[1] == deque(order)


def test_apart_returns_objects_and_order_and_empties() -> None:
    objects = listed("b", "a")
    by_key, line = objects.detach()
    assert (dict(by_key), line) == ({"a": 1, "b": 1}, deque("ba"))
    assert (len(objects), [*objects]) == (0, [])


def test_absent_key_leaves_no_gap() -> None:
    objects = listed("a")
    objects.pop("b", None)
    assert not [*objects.close_gaps()]


def test_dicts_of_a_long_list_stay_small() -> None:
    assert max(map(len, listed(*names(100_000))._parts)) < 2500
