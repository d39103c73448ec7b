"""ExpirationStore: a store whose entries expire."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.cache.expiration_store import ExpirationStore, TimestampedEntry, TTLPolicy, ttl_store
from aioinformer.resources.keys import DeletedFinalStateUnknown


def obj(name: str, value: int = 0) -> dict[str, Any]:
    return {"metadata": {"name": name}, "value": value}


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> ExpirationStore[Any]:
    return ExpirationStore(TTLPolicy(10), clock=clock)


@pytest.mark.conformance("EXP-01")
@pytest.mark.parametrize(
    ("ttl", "age", "expired"), [(10, 10, False), (10, 10.1, True), (10, 0, False), (0, 1e9, False), (-1, 1e9, False)]
)
def test_entry_expires_after_its_time_to_live(ttl: float, age: float, expired: bool) -> None:
    assert TTLPolicy(ttl).is_expired(TimestampedEntry("a", 100), 100 + age) is expired


@pytest.mark.conformance("EXP-01")
def test_read_drops_an_expired_entry(store: ExpirationStore[Any], clock: Clock) -> None:
    store.add(obj("a"))
    store.add(obj("b"))
    clock.now += 11
    assert store.list_keys() == ["a", "b"]
    assert store.get(obj("a")) is None
    assert store.list_keys() == ["b"]
    assert store.get_by_key("b") is None
    assert len(store) == 0


@pytest.mark.conformance("EXP-01")
def test_list_drops_expired_entries(store: ExpirationStore[Any], clock: Clock) -> None:
    store.replace([obj("old"), obj("gone")])
    clock.now += 6
    store.add(obj("young"))
    store.delete(DeletedFinalStateUnknown("gone", None))
    clock.now += 6
    assert store.list() == [obj("young")]
    assert store.list_keys() == ["young"]


@pytest.mark.conformance("EXP-01")
@pytest.mark.parametrize("method", ["add", "update"])
def test_write_renews_an_entry(store: ExpirationStore[Any], clock: Clock, method: str) -> None:
    store.add(obj("a", 1))
    clock.now += 8
    getattr(store, method)(obj("a", 2))
    clock.now += 8
    assert store.get_by_key("a") == obj("a", 2)
    clock.now += 3
    assert store.get_by_key("a") is None


@pytest.mark.conformance("EXP-01")
def test_replace_renews_all_entries(store: ExpirationStore[Any], clock: Clock) -> None:
    store.add(obj("a"))
    store.add(obj("b"))
    clock.now += 9
    store.replace([obj("b")], "7")
    store.resync()
    clock.now += 9
    assert store.list() == [obj("b")]


def test_default_clock_keeps_new_entries() -> None:
    store = ttl_store(1000)
    store.add(obj("a"))
    assert store.list() == [obj("a")]
