"""A ring of processes on a real API server, under faults; and what its observer finds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.reflector import shard_hash
from tests.real.e2e.ring_faults import Scale, run_faults
from tests.real.e2e.ring_observer import Gap, Mark, Observer, hash_of
from tests.support.real_cluster import Operator, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.real_cluster import RealCluster

SCALE = Scale()
UID = "8f1d2c3b-4a59-4687-9c0d-000000000001"


@pytest.fixture
def audited_cluster(tmp_path: Path) -> Iterator[RealCluster]:
    """Provide a cluster whose API server logs all writes of ConfigMaps."""
    yield from running(tmp_path, *SCALE.options(tmp_path))


async def test_ring_under_faults(audited_cluster: RealCluster, tmp_path: Path) -> None:
    async with Operator(audited_cluster) as operator:
        found = await run_faults(audited_cluster, operator, SCALE, tmp_path)
    print(found)
    assert not found["objects whose last version was not observed"]
    assert not found["objects with two owners"], found["examples"]
    assert not found["changes lost"]
    assert found["writes of replicas"] >= SCALE.objects
    for fault, each in found["faults"].items():
        assert not each["changes lost"], fault
        assert not each["slots without an owner for too long"], fault


class Log:
    """An audit log of one object, and of a ring with one slot."""

    def __init__(self, folder: Path) -> None:
        self.observer = Observer(folder, "widgets")
        self._version = 0

    def _take(self, verb: str, name: str, sent: dict[str, str], data: dict[str, str]) -> None:
        self._version += 1
        time = f"2026-03-01T00:00:{self._version:02}.000000Z"
        metadata = {"name": name, "uid": UID, "resourceVersion": str(self._version), "labels": {"app": "web"}}
        if verb == "watch":
            self.observer.see({"metadata": metadata, "data": data}, self._version)
            return
        event: dict[str, Any] = {
            "stage": "ResponseComplete",
            "verb": verb,
            "objectRef": {"name": name},
            "responseStatus": {"code": 200},
            "requestReceivedTimestamp": time,
            "stageTimestamp": time,
            "requestObject": {"data": sent},
            "responseObject": {"metadata": metadata, "data": data},
        }
        self.observer.take(event)

    def ring(self, owner: str, epoch: int, to: str = "") -> None:
        text = json.dumps({"ring": {"slots": [[owner, epoch, to]], "of": "x"}})
        self._take("update", "widgets-ring", {}, {"ring.json": text})

    def ring_deleted(self) -> None:
        self._take("delete", "widgets-ring", {}, {})

    def change(self) -> None:
        self._take("patch", "m", {"seq": "1"}, {"seq": "1", "done": "0"})

    def write(self, by: str, epoch: int, *, answered: bool = True) -> None:
        sent = {"by": by, "epoch": str(epoch), "done": "1"}
        self._take("patch" if answered else "watch", "m", sent, {"seq": "1", **sent})


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def test_observer_accepts_owners_one_after_the_other(log: Log) -> None:
    log.ring("widgets-a", 1)
    log.write("a", 1)
    log.ring("widgets-b", 2)
    log.write("b", 2)
    log.ring_deleted()
    log.write("b", 2)
    log.ring("widgets-a", 3)
    log.write("a", 3)
    assert not log.observer.violations()


def test_observer_finds_two_writers_of_an_epoch(log: Log) -> None:
    log.ring("widgets-a", 1)
    log.write("a", 1)
    log.write("b", 1)
    assert [how for _, how in log.observer.violations()[UID]] == [
        "widgets-a in epoch 1, and then widgets-b in 1",
        "widgets-b in epoch 1 in a slot of ['widgets-a', 1, '']",
    ]


def test_observer_finds_a_write_after_the_slot_was_lost(log: Log) -> None:
    log.ring("widgets-a", 1)
    log.write("a", 1)
    log.ring("widgets-b", 2)
    log.write("a", 1)
    assert log.observer.violations()[UID]


def test_observer_finds_a_write_without_an_answer_after_the_slot_was_lost(log: Log) -> None:
    log.ring("widgets-a", 1)
    log.write("a", 1)
    log.ring("widgets-b", 2)
    log.write("b", 2)
    log.write("a", 1, answered=False)
    assert log.observer.violations()[UID]
    assert log.observer.unanswered() == 1


def test_observer_finds_slots_without_an_owner(log: Log) -> None:
    log.ring("widgets-a", 1)
    log.ring("widgets-a", 1, to="widgets-b")
    log.ring("widgets-b", 2)
    log.ring_deleted()
    log.ring("widgets-a", 3)
    began = log.observer.ring[0].ended
    gaps = log.observer.gaps([Mark(began + 5, "widgets-a", is_able=False)])
    assert gaps == [Gap(0, began + 1, began + 2), Gap(0, began + 3, began + 4), Gap(0, began + 5, float("inf"))]


def test_observer_finds_changes_that_are_lost(log: Log) -> None:
    log.ring("widgets-a", 1)
    log.change()
    log.write("a", 1)
    log.change()
    assert [seconds for _, seconds in log.observer.delays()] == [1.0, float("inf")]


def test_observer_hashes_as_the_server() -> None:
    assert hash_of(UID) == shard_hash(UID)
