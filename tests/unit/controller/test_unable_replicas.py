"""A replica that cannot work neither takes the leadership nor keeps it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.controller import Controller, LeaderElection
from aioinformer.controller.running.standing import LONGEST, PAUSE, Standing
from aioinformer.errors import ApiError, OptionError, TransportError
from tests.support.collection import Response
from tests.support.managers import (
    CONFIG_MAPS,
    PODS,
    Cluster,
    Runs,
    manager_of,
    pod,
    started,
)

if TYPE_CHECKING:
    from aioinformer.controller import Manager
    from aioinformer.transport import HttpRequest

OUT = {"in_office": False}
IN = {"in_office": True}


@pytest.mark.behaviour("C-141")
def test_replica_stands_at_once_when_all_controllers_are_able() -> None:
    standing = Standing(120, 0)
    assert not standing.update([True, False], 1, **OUT)
    assert standing.update([True, True], 2, **OUT)
    assert standing.stands


def test_replica_without_elected_controllers_stands_at_once() -> None:
    standing = Standing(120, 0)
    standing.update([], 0, **OUT)
    assert standing.stands


@pytest.mark.behaviour("C-141")
@pytest.mark.parametrize(("able", "seconds"), [([True, False], 10), ([False, False], 120)])
def test_replica_stands_later_when_some_or_no_controllers_are_able(able: list[bool], seconds: float) -> None:
    standing = Standing(120, 1000)
    assert not standing.update(able, 1000 + seconds - 0.1, **OUT)
    assert standing.seconds_left(1000 + seconds - 0.1) == pytest.approx(0.1)
    assert standing.update(able, 1000 + seconds, **OUT)


@pytest.mark.behaviour("C-141")
def test_replica_in_office_steps_down_when_no_controller_was_able_for_the_timeout() -> None:
    standing = Standing(120, 0)
    standing.update([True, True], 0, **OUT)
    assert not standing.update([False, True], 50, **IN)
    assert not standing.update([False, False], 100, **IN)
    assert not standing.update([False, False], 219, **IN)
    assert standing.update([False, False], 220, **IN)
    assert (standing.stands, standing.paused) == (False, PAUSE)
    assert not standing.update([False, False], 220 + PAUSE - 1, **OUT)
    assert standing.update([False, False], 220 + PAUSE, **OUT)


def test_time_out_of_office_does_not_count() -> None:
    standing = Standing(120, 0)
    standing.update([True], 0, **OUT)
    for second in range(0, 600, 100):
        assert not standing.update([False], second, **OUT)
    assert not standing.update([False], 600, **IN)
    assert not standing.update([False], 719, **IN)
    assert standing.update([False], 720, **IN)


@pytest.mark.behaviour("C-141")
def test_pause_doubles_to_ten_minutes_and_begins_anew_with_an_able_controller() -> None:
    standing, time, pauses = Standing(120, 0), 120.0, []
    standing.update([False], time, **OUT)
    for _ in range(7):
        standing.update([False], time, **IN)
        time += 120
        standing.update([False], time, **IN)
        pauses.append(standing.paused)
        time += standing.paused
        assert standing.update([False], time, **OUT)
    assert pauses == [30, 60, 120, 240, 480, LONGEST, LONGEST]
    standing.update([True], time, **IN)
    standing.update([False], time, **IN)
    standing.update([False], time + 120, **IN)
    assert standing.paused == PAUSE


def test_able_controllers_end_the_pause() -> None:
    standing = Standing(120, 0)
    standing.update([True], 0, **OUT)
    standing.update([False], 0, **IN)
    standing.update([False], 120, **IN)
    assert standing.update([True], 121, **OUT)


class Restricted:
    """The transport of one replica; the server answers it with an error, but for requests of Leases."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.error: Exception | None = None
        self.refused = ""

    async def request(self, request: HttpRequest) -> Any:
        if self.error is None or "/leases" in request.path or not request.path.endswith(self.refused):
            return await self.cluster.request(request)
        if not isinstance(self.error, ApiError):
            raise self.error
        response = Response(self.error.status)
        response.feed(json.dumps({"kind": "Status", "code": 403, "reason": "Forbidden"}).encode())
        response.end()
        return response


FORBIDDEN = ApiError(403, "Forbidden", "no rights")


def replica(server: Restricted, name: str, runs: Any, **options: Any) -> Manager:
    election = LeaderElection("it", identity=name)
    return manager_of(server, Controller("it", CONFIG_MAPS, runs), leader_election=election, **options)  # type: ignore[arg-type]


def holder(cluster: Cluster) -> str:
    return str((cluster.leases.lease or {}).get("spec", {}).get("holderIdentity") or "")


@pytest.mark.behaviour("C-141")
async def test_replica_that_cannot_sync_leaves_the_leadership_to_another() -> None:
    cluster, runs = Cluster("a"), Runs()
    bad, good = Restricted(cluster), Restricted(cluster)
    bad.error = FORBIDDEN
    async with replica(bad, "bad", Runs()):
        await asyncio.sleep(60)
        assert holder(cluster) == ""
        async with replica(good, "good", runs):
            await started()
            assert holder(cluster) == "good"
            assert runs.names == ["a"]


@pytest.mark.behaviour("C-141")
async def test_leader_that_becomes_unable_gives_the_lease_up(caplog: pytest.LogCaptureFixture) -> None:
    cluster, runs = Cluster("a"), Runs()
    bad, good = Restricted(cluster), Restricted(cluster)
    async with replica(bad, "bad", Runs()) as manager:
        await started()
        assert holder(cluster) == "bad"
        async with replica(good, "good", runs):
            await asyncio.sleep(10)
            assert runs.names == []
            bad.error = FORBIDDEN
            break_watches(cluster)
            await asyncio.sleep(110)
            assert holder(cluster) == "bad"
            await asyncio.sleep(20)
            assert holder(cluster) == "good"
            assert runs.names == ["a"]
            assert "no controller of this replica has been able to work for 120 s" in str(manager.ready())
            assert "gives up the leadership: no controller has been able to work for 120 s" in caplog.text


@pytest.mark.behaviour("C-141")
async def test_leader_without_another_replica_stands_again_after_doubling_pauses() -> None:
    cluster = Cluster("a")
    bad = Restricted(cluster)
    bad.error = FORBIDDEN
    async with replica(bad, "bad", Runs()):
        held = []
        for _ in range(900):
            await asyncio.sleep(1)
            held.append(bool(holder(cluster)))
    changes = [second for second in range(1, 900) if held[second] is not held[second - 1]]
    spans = [later - earlier for earlier, later in zip([0, *changes], changes, strict=False)]
    assert spans[:5] == pytest.approx([120, 120, 30, 120, 60], abs=4)


async def test_replica_that_recovers_during_the_pause_leads_at_once() -> None:
    cluster, runs = Cluster("a"), Runs()
    bad = Restricted(cluster)
    bad.error = FORBIDDEN
    async with replica(bad, "bad", runs):
        await asyncio.sleep(590)  # 120 until it stands, and three terms of 120 with pauses of 30 and 60 between them
        assert holder(cluster) == ""
        bad.error = None
        await asyncio.sleep(90)  # the third pause takes 120
        assert runs.names == ["a"]


@pytest.mark.behaviour("C-141")
async def test_outage_of_the_server_is_no_reason_to_step_down(caplog: pytest.LogCaptureFixture) -> None:
    cluster, runs = Cluster("a"), Runs()
    only = Restricted(cluster)
    async with replica(only, "only", runs):
        await started()
        only.error = TransportError("cannot connect")
        break_watches(cluster)
        await asyncio.sleep(600)  # the Lease is renewed meanwhile
        assert holder(cluster) == "only"
        only.error, cluster.leases.down = None, True
        await asyncio.sleep(600)
        cluster.leases.down = False
        await asyncio.sleep(60)
        assert holder(cluster) == "only"
    assert "gives up" not in caplog.text


async def test_replica_with_one_able_controller_leads_after_ten_seconds() -> None:
    cluster, runs = Cluster("a"), Runs()
    cluster.put("pods", pod("p"))
    some = Restricted(cluster)
    some.error, some.refused = FORBIDDEN, "/pods"
    controllers = Controller("it", CONFIG_MAPS, runs), Controller("pods", PODS, Runs())
    async with manager_of(some, *controllers, leader_election=LeaderElection("it", identity="some")):  # type: ignore[arg-type]
        await asyncio.sleep(9)
        assert runs.names == []
        await asyncio.sleep(2)
        assert runs.names == ["a"]


async def test_candidate_that_does_not_stand_observes_the_lease_of_a_dead_leader() -> None:
    cluster, runs = Cluster("a"), Runs()
    cluster.leases.take("dead")
    late = Restricted(cluster)
    late.error = FORBIDDEN
    async with replica(late, "late", runs):
        await asyncio.sleep(20)
        late.error = None
        await asyncio.sleep(61)  # the longest delay of a list; the Lease has expired before
        assert runs.names == ["a"]


@pytest.mark.parametrize("seconds", [-1, "2m", None])
def test_invalid_sync_timeout_is_refused(seconds: Any) -> None:
    with pytest.raises(OptionError, match="Manager: sync_timeout must be a number of seconds"):
        manager_of(Cluster(), sync_timeout=seconds)


@pytest.mark.behaviour("C-141")
async def test_sync_timeout_is_an_option() -> None:
    cluster = Cluster("a")
    bad = Restricted(cluster)
    bad.error = FORBIDDEN
    async with replica(bad, "bad", Runs(), sync_timeout=5.0):
        await asyncio.sleep(4)
        assert holder(cluster) == ""
        await asyncio.sleep(3)
        assert holder(cluster) == "bad"


def break_watches(cluster: Cluster) -> None:
    """Let the informers of all replicas ask again."""
    for watch in cluster._open("configmaps"):
        watch.end(TransportError("the connection broke"))
