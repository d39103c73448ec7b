"""Changes by another thread while index functions of `put` run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.cache.store import Indexer

if TYPE_CHECKING:
    from collections.abc import Callable


def pod(name: str, color: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns"}, "color": color}


def by_color(obj: Any) -> list[str]:
    return [obj["color"]]


class Between:
    """An index function that calls `strike` during its first call after that is set."""

    def __init__(self) -> None:
        self.strike: Callable[[], Any] | None = None

    def __call__(self, obj: Any) -> list[str]:
        strike, self.strike = self.strike, None
        if strike is not None:
            strike()
        return by_color(obj)


@pytest.fixture
def between() -> Between:
    return Between()


@pytest.fixture
def store(between: Between) -> Indexer[Any]:
    store: Indexer[Any] = Indexer(indexers={"color": between})
    store.add(pod("a", "red"))
    return store


def colors(store: Indexer[Any], index: str, value: str) -> list[str]:
    return sorted(obj["metadata"]["name"] for obj in store.by_index(index, value))


def test_replace_during_a_put_loses_nothing(store: Indexer[Any], between: Between) -> None:
    between.strike = lambda: store.replace([pod("b", "blue")])
    store.add(pod("a", "green"))
    assert sorted(store.list_keys()) == ["ns/a", "ns/b"]
    assert colors(store, "color", "green") == ["a"]
    assert colors(store, "color", "red") == []


def test_index_added_during_a_put_has_the_new_value(store: Indexer[Any], between: Between) -> None:
    between.strike = lambda: store.add_indexers({"also": by_color})
    store.update(pod("a", "green"))
    assert colors(store, "also", "green") == ["a"]
    assert colors(store, "also", "red") == []
