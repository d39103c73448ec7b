"""ExpirationStore: entries that expire, and what renews them."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import DeletedFinalStateUnknown
from aioinformer.cache import ExpirationStore, TTLPolicy


def valued(name: str, value: int = 0) -> dict[str, Any]:
    return {"metadata": {"name": name}, "value": value}


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def expiring(clock: Clock) -> ExpirationStore[Any]:
    return ExpirationStore(TTLPolicy(10), clock=clock)


@pytest.mark.conformance("EXP-01")
@pytest.mark.parametrize(
    ("ttl", "age", "expired"), [(10, 10, False), (10, 10.1, True), (10, 0, False), (0, 1e9, False), (-1, 1e9, False)]
)
def test_entry_expires_after_its_time_to_live(clock: Clock, ttl: float, age: float, expired: bool) -> None:
    store: ExpirationStore[Any] = ExpirationStore(TTLPolicy(ttl), clock=clock)
    store.add(valued("a"))
    clock.now += age
    assert (store.get(valued("a")) is None) is expired


@pytest.mark.conformance("EXP-01")
def test_read_drops_an_expired_entry(expiring: ExpirationStore[Any], clock: Clock) -> None:
    expiring.add(valued("a"))
    expiring.add(valued("b"))
    clock.now += 11
    assert expiring.list_keys() == ["a", "b"]
    assert expiring.get(valued("a")) is None
    assert expiring.list_keys() == ["b"]
    assert expiring.get_by_key("b") is None
    assert len(expiring) == 0


@pytest.mark.conformance("EXP-01")
def test_list_drops_expired_entries(expiring: ExpirationStore[Any], clock: Clock) -> None:
    expiring.replace([valued("old"), valued("gone")])
    clock.now += 6
    expiring.add(valued("young"))
    expiring.delete(DeletedFinalStateUnknown("gone", None))
    clock.now += 6
    assert expiring.list() == [valued("young")]
    assert expiring.list_keys() == ["young"]


@pytest.mark.conformance("EXP-01")
@pytest.mark.parametrize("method", ["add", "update"])
def test_write_renews_an_entry(expiring: ExpirationStore[Any], clock: Clock, method: str) -> None:
    expiring.add(valued("a", 1))
    clock.now += 8
    getattr(expiring, method)(valued("a", 2))
    clock.now += 8
    assert expiring.get_by_key("a") == valued("a", 2)
    clock.now += 3
    assert expiring.get_by_key("a") is None


@pytest.mark.conformance("EXP-01")
def test_replace_renews_all_entries(expiring: ExpirationStore[Any], clock: Clock) -> None:
    expiring.add(valued("a"))
    expiring.add(valued("b"))
    clock.now += 9
    expiring.replace([valued("b")], "7")
    expiring.resync()
    clock.now += 9
    assert expiring.list() == [valued("b")]
