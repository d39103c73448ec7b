"""Liveness and readiness of managers, in virtual time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from aioinformer.controller import Controller, LeaderElection, Manager, Request
from aioinformer.controller.health import Progress, Pulse, readiness
from aioinformer.controller.snapshots import Health
from aioinformer.leaderelection.leadership import Leadership
from tests.support.limits import measure_ages
from tests.support.managers import CONFIG_MAPS, Runs, Server, config_map, manager_of, now, server_with, started
from tests.support.stalling_loop import stall


async def hang(request: Request[Any]) -> None:
    await asyncio.sleep(1e6)


async def hang_on(request: Request[Any]) -> None:
    for _ in range(2):
        with suppress(asyncio.CancelledError):
            await hang(request)


async def never_lead(leadership: Leadership, protected: Any) -> None:
    await asyncio.sleep(1e6)


def controller(reconcile: Any = hang, **options: Any) -> Controller[Any]:
    return Controller("maps", CONFIG_MAPS, reconcile, **options)


# Alive.


@pytest.mark.behaviour("C-80")
async def test_attempt_that_outlives_its_timeout_makes_the_manager_not_alive() -> None:
    server = server_with("one")
    async with manager_of(server, controller(hang_on, timeout=5), grace=0.0) as manager:
        await asyncio.sleep(590)
        assert manager.alive()
        await asyncio.sleep(20)
        health = manager.alive()
        assert not health
        assert health.reasons == ("controller maps: the attempt for default/one has been running for 610 s",)
        assert manager.ready()


@pytest.mark.behaviour("C-80")
@pytest.mark.parametrize("limit", [None, 1e5])
async def test_attempt_has_no_limit_but_its_timeout(limit: float | None) -> None:
    server = server_with("one")
    async with manager_of(server, controller(workers=1, timeout=limit), grace=0.0) as manager:
        for _ in range(100):
            await asyncio.sleep(100)
            assert manager.alive()


@pytest.mark.behaviour("C-80")
def test_idle_worker_has_a_limit_although_attempts_have_none() -> None:
    progress = Progress(lambda name: float("inf"))
    assert progress.check(snapshot(running=[{"key": "a", "seconds": 1e6}]), 0.0) == {"controller maps": ""}
    assert progress.check(snapshot(running=[{"key": "a", "seconds": 1e6}]), 599.0) == {"controller maps": ""}
    assert (
        "3 requests wait for 1 free workers"
        in progress.check(snapshot(running=[{"key": "a", "seconds": 1e6}]), 601.0)["controller maps"]
    )


@pytest.mark.behaviour("C-80")
async def test_idle_and_busy_managers_are_alive() -> None:
    server, runs = Server(), Runs(seconds=50)
    async with manager_of(server, controller(runs, workers=1), grace=0.0) as manager:
        await asyncio.sleep(1000)
        assert manager.alive()
        for number in range(40):
            server.put("configmaps", config_map(f"m{number}"))
        for _ in range(30):
            await asyncio.sleep(60)
            assert manager.alive()


def snapshot(**changes: Any) -> dict[str, Any]:
    """Return a part of the snapshot of a controller that works, and has requests for its free worker."""
    return {"maps": {"phase": "working", "running": [], "ready": 3, "workers": 2, "results": {"success": 5}, **changes}}


@pytest.mark.behaviour("C-80")
def test_requests_that_no_free_worker_takes_are_noticed() -> None:
    progress = Progress(lambda name: 100.0)

    def reason(now: float, **changes: Any) -> str:
        return progress.check(snapshot(**changes), now)["controller maps"]

    assert reason(0.0) == ""
    assert reason(100.0) == ""
    assert "3 requests wait for 2 free workers" in reason(101.0)
    assert reason(102.0, results={"success": 6}) == ""
    assert reason(190.0, results={"success": 6}) == ""
    assert reason(203.0, results={"success": 6}) != ""
    assert reason(204.0, results={"success": 6}, ready=0) == ""
    assert reason(205.0, results={"success": 6}) == ""


@pytest.mark.behaviour("C-80")
@pytest.mark.parametrize(
    "changes", [{"phase": "standby"}, {"ready": 0}, {"workers": 1, "running": [{"key": "a", "seconds": 1.0}]}]
)
def test_controller_that_cannot_take_requests_does_not_hang(changes: dict[str, Any]) -> None:
    progress = Progress(lambda name: 100.0)
    for at in (0.0, 50.0, 101.0, 500.0):
        assert progress.check(snapshot(**changes), at) == {"controller maps": ""}
    assert progress.check(snapshot(), 501.0) == {"controller maps": ""}


@pytest.mark.behaviour("C-80")
async def test_expired_lease_makes_the_manager_not_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leadership, "failure", lambda self: "it expired")
    monkeypatch.setattr(Leadership, "run", never_lead)
    async with manager_of(Server(), controller(), leader_election=LeaderElection("it")) as manager:
        await started()
        assert manager.alive().reasons == ("leadership: it expired",)
        assert manager.ready()


@pytest.mark.behaviour("C-80")
async def test_blocked_event_loop_is_noticed_until_it_runs_again() -> None:
    pulse = Pulse()
    pulse.start()
    await asyncio.sleep(5)
    assert pulse.late < 0.1
    stall(20)
    await asyncio.sleep(0.1)
    assert 18 < pulse.late < 21
    await asyncio.sleep(2)
    assert pulse.late < 0.1
    pulse.stop()
    delays = pulse.delays.snapshot()
    late = delays.count - dict(zip(delays.bounds, delays.buckets, strict=True))[10.0]
    assert (late, delays.count > 5, 18 < delays.total < 21) == (1, True, True)


def test_manager_that_does_not_run_is_alive_and_not_ready() -> None:
    manager = Manager()
    assert manager.alive()
    assert manager.ready().reasons == ("manager: it does not run",)


# Ready.


@pytest.mark.behaviour("C-81")
async def test_manager_is_ready_when_its_controllers_have_synced() -> None:
    server = Server()
    server.refuse_reads = 503
    async with manager_of(server, controller()) as manager:
        await started()
        [reason] = manager.ready().reasons
        assert reason.startswith("controller maps: not synced: ")
        assert manager.alive()
        server.refuse_reads = 0
        await asyncio.sleep(60)
        assert manager.ready()
        manager.stop()
        assert not manager.ready()


@pytest.mark.behaviour("C-81")
async def test_standby_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leadership, "run", never_lead)
    async with manager_of(Server(), controller(), leader_election=LeaderElection("it")) as manager:
        await started()
        assert manager.snapshot()["controllers"]["maps"]["phase"] == "standby"
        assert manager.ready()


def informers(**changes: Any) -> Any:
    cache = {"synced": True, "healthy": False, "phase": "backing_off", "reason": "down", "since": 990.0}
    return {
        "time": 1000.0,
        "informers": {"v1/configmaps": {**cache, "last_event": 5.0, "stale_since": 935.0, **changes}},
    }


@pytest.mark.behaviour("C-81")
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, "not fresh for 65 s: backing_off: down"),
        ({"stale_since": 945.0}, ""),  # in a quiet cluster, the last event was long ago
        ({"healthy": True, "stale_since": None}, ""),
        ({"phase": "degraded", "stale_since": None}, ""),
        ({"phase": "stopped", "stale_since": 999.0, "reason": "crashed: KeyError"}, "stopped: crashed: KeyError"),
        ({"synced": False}, ""),  # its controller says so
    ],
)
def test_cache_that_does_not_follow_the_server_is_not_fresh(changes: dict[str, Any], reason: str) -> None:
    whole: Any = {
        "running": True,
        "leader": None,
        "ring": None,
        "controllers": {},
        "failed": {},
        "lifespan": None,
        "background": {},
        "webhooks": None,
    }
    whole["informers"] = informers(**changes)
    assert readiness(whole).checks["cache v1/configmaps"] == reason


@pytest.mark.behaviour("C-81")
async def test_quiet_cache_becomes_stale_a_minute_after_the_loss_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    measure_ages(monkeypatch, now)
    server = Server()
    async with manager_of(server, controller()) as manager:
        await asyncio.sleep(80)
        assert manager.ready()
        server.refuse_reads = 503
        await asyncio.sleep(40)  # the silent watch was opened again after 90 s
        informers = manager.snapshot()["informers"]
        assert informers is not None
        cache = informers["informers"]["v1/configmaps"]
        assert cache["phase"] == "backing_off"
        assert cache["last_event_age"] == pytest.approx(120, abs=1)
        assert manager.ready()
        await asyncio.sleep(40)
        [reason] = manager.ready().reasons
        assert reason.startswith("cache v1/configmaps: not fresh for 70 s: backing_off: ")
        server.refuse_reads = 0
        await asyncio.sleep(60)
        assert manager.ready()


@pytest.mark.behaviour("C-81")
def test_controller_that_has_failed_for_good_is_not_ready() -> None:
    controllers = {
        "maps": {"phase": "failed", "waits_for": [], "undecodable": {}},
        "others": {"phase": "syncing", "waits_for": ["v1/pods: forbidden"], "undecodable": {}},
    }
    whole: Any = {
        "running": True,
        "leader": None,
        "ring": None,
        "controllers": controllers,
        "failed": {"maps": "it crashed"},
        "lifespan": None,
        "background": {},
        "webhooks": None,
        "informers": None,
    }
    assert readiness(whole).reasons == (
        "controller maps: it crashed",
        "controller others: not synced: v1/pods: forbidden",
    )


def test_health_is_true_without_failures_and_shows_all_reasons() -> None:
    assert Health({"a": "", "b": ""})
    assert str(Health()) == "ok"
    assert str(Health({"a": "x", "b": "", "c": "y"})) == "a: x; c: y"
