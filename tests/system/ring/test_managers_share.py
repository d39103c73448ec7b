"""Managers that share a ring, with the embedded API server over HTTP and short times: who runs and writes what."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from aioinformer import HttpTransport, LeaderElectionOptions
from aioinformer.cli.controllers.needs import needs
from aioinformer.controller import Controller, LeaderElection, Manager, Request
from aioinformer.errors import TransportError, UsageError, WriteOutcomeUnknown
from aioinformer.models import core_v1
from aioinformer.prometheus import PrometheusMetrics
from aioinformer.ring import ControllerRing, RingRefused, SlotLost
from tests.support.limits import clean_up_within
from tests.support.unanswered import Unanswered
from tests.system.ring.replicas import OBJECTS, SHORT, Replica, do_nothing, owners, ring_object, settled, until

if TYPE_CHECKING:
    from aioinformer.testing import ApiServer


@pytest.mark.behaviour("C-134")
async def test_each_change_runs_in_one_replica(server: ApiServer, shared: list[Replica]) -> None:
    before = [Counter(each.runs) for each in shared]
    for number in range(OBJECTS):
        server.patch("configmaps", f"m{number:02}", {"data": {"seen": "1"}}, namespace="default")

    def ran() -> Counter[str]:
        """Return in how many replicas each key ran."""
        return Counter(key for each, known in zip(shared, before, strict=True) for key in each.runs - known)

    await until(lambda: len(ran()) == OBJECTS)
    assert set(ran().values()) == {1}


@pytest.mark.behaviour("C-135")
async def test_replica_that_is_cut_off_writes_nothing(server: ApiServer, shared: list[Replica]) -> None:
    first, *others = shared
    first.gate = asyncio.Event()
    for number in range(OBJECTS):
        server.patch("configmaps", f"m{number:02}", {"data": {"by": "", "seen": "1"}}, namespace="default")
    await until(lambda: first.running)
    first.transport.cut = True
    running = set(first.running)
    await until(lambda: first.ring["remaining"] <= 0)
    await until(lambda: settled(server, *others))
    first.transport.cut = False
    await until(lambda: not first.running)
    assert len(first.failures) >= len(running)
    assert all(isinstance(each, SlotLost | TransportError) for each in first.failures)
    assert any(isinstance(each, SlotLost) for each in first.failures)
    first.gate.set()
    await until(lambda: settled(server, *shared))


@pytest.mark.behaviour("C-134")
async def test_stop_hands_the_slots_over(server: ApiServer, shared: list[Replica]) -> None:
    await shared[0].stop()
    assert not [each for each in server.list("leases") if each["metadata"]["name"] == "widgets-a"]
    document = json.loads(ring_object(server)["data"]["ring.json"])["ring"]
    assert {owner for owner, _, _ in document["slots"]} == {"widgets-b", "widgets-c"}
    await until(lambda: settled(server, *shared[1:]))


@pytest.mark.behaviour("C-134")
async def test_thread_that_a_stop_gives_up_keeps_its_slots(
    server: ApiServer, replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    clean_up_within(monkeypatch, 0.1)
    began, go_on = asyncio.Event(), threading.Event()

    def wait(loop: asyncio.AbstractEventLoop) -> None:
        loop.call_soon_threadsafe(began.set)
        go_on.wait(30)

    async def reconcile(request: Request[Any]) -> None:
        await request.to_thread(wait, asyncio.get_running_loop())

    first = replicas[0]
    first.instead["default/m00"] = reconcile
    await first.start()
    try:
        await began.wait()
        await first.stop()
        assert server.get("leases", "widgets-a", "default")
        document = json.loads(ring_object(server)["data"]["ring.json"])["ring"]
        assert {owner for owner, _, _ in document["slots"]} == {"widgets-a"}
    finally:
        go_on.set()


@pytest.mark.behaviour("C-134")
async def test_change_during_a_move_runs(server: ApiServer, shared: list[Replica]) -> None:
    stop = asyncio.create_task(shared[0].stop())
    for name in owners(server)["a"]:
        server.patch("configmaps", name, {"data": {"by": ""}}, namespace="default")
        await asyncio.sleep(0)
    await stop
    await until(lambda: settled(server, *shared[1:]))


@pytest.mark.behaviour("C-134")
async def test_slot_that_comes_back_waits_for_caches_that_have_what_was_written_meanwhile(server: ApiServer) -> None:
    async with Replica(server, "a") as first:
        first.transport.gate = asyncio.Event()
        await until(lambda: first.transport.held)
        async with Replica(server, "b") as other:
            await until(lambda: len(other.ring["mine"]) == 8 and other.runs.keys() >= other.cached() != set())
            theirs = other.cached()
            await until(lambda: len(owners(server)["b"]) == len(theirs))
        await until(lambda: len(first.ring["mine"]) == 16)
        gate, first.transport.gate = first.transport.gate, asyncio.Event()
        gate.set()
        await until(lambda: first.runs.keys() >= {f"default/m{number:02}" for number in range(OBJECTS)} - theirs)
        await asyncio.sleep(0.1)
        assert not first.runs.keys() & theirs
        first.transport.gate.set()
        await until(lambda: settled(server, first))


@pytest.mark.behaviour("C-135")
async def test_writes_without_an_answer_end_with_their_slot_and_no_others(server: ApiServer) -> None:
    first = Replica(server, "a", workers=OBJECTS)
    silent = Unanswered(first.transport, lambda request: "/configmaps/m" in request.path)
    first.manager = Manager(
        "a",
        [Controller("widgets", core_v1.CONFIG_MAPS, first.reconcile, informer={"label_selector": "app=web"})],
        client=silent,
        ring=ControllerRing("widgets", slots=16, options=SHORT, member="a"),
        grace=0.5,
    )
    writes: list[asyncio.Task[Any]] = []

    async def outlive(request: Request[Any]) -> None:
        """Leave a write behind that goes on after the attempt."""
        patched = request.client.core.v1.configmaps.patch(str(request.key), {"data": {"by": "a"}})
        writes.append(asyncio.create_task(patched))

    keys = [f"default/m{number:02}" for number in range(OBJECTS)]
    first.instead = dict.fromkeys(keys, outlive)
    async with first:
        await until(lambda: len(silent.carried) == OBJECTS)
        async with Replica(server, "b") as other:
            await until(lambda: len(other.ring["mine"]) == 8 and other.runs.keys() >= other.cached() != set())
            theirs = {f"/api/v1/namespaces/default/configmaps/{key.rpartition('/')[2]}" for key in other.cached()}
            assert silent.aborted == theirs
    assert len(silent.aborted) == OBJECTS
    failures = await asyncio.gather(*writes, return_exceptions=True)
    assert {type(each) for each in failures} == {WriteOutcomeUnknown}


@pytest.mark.behaviour("C-138")
async def test_deleted_ring_is_made_again(
    server: ApiServer, shared: list[Replica], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    uid = ring_object(server)["metadata"]["uid"]
    server.delete("configmaps", "widgets-ring", "default")
    await until(lambda: not any(each.ring["mine"] for each in shared))
    await until(lambda: settled(server, *shared))
    assert ring_object(server)["metadata"]["uid"] != uid
    assert (
        len([each for each in caplog.records if "the ring is new; slots have owners after" in each.getMessage()]) == 1
    )


@pytest.mark.behaviour("C-138")
async def test_ring_that_was_edited_stops_all(server: ApiServer, shared: list[Replica]) -> None:
    text = ring_object(server)["data"]["ring.json"].replace("widgets-a", "widgets-b")
    server.patch("configmaps", "widgets-ring", {"data": {"ring.json": text}}, namespace="default")
    await until(lambda: not any(each.ring["mine"] for each in shared))
    for each in shared:
        assert "edited by hand" in str(each.manager.ready())
    await until(lambda: [event for event in server.list("events") if event.get("reason") == "RingUnusable"])
    server.delete("configmaps", "widgets-ring", "default")
    await until(lambda: settled(server, *shared))


@pytest.mark.behaviour("C-138")
async def test_ring_that_is_edited_again_is_reported_again(server: ApiServer, caplog: pytest.LogCaptureFixture) -> None:
    def reports() -> int:
        lines = [each for each in caplog.records if each.levelno >= logging.ERROR]
        return sum("widgets-a: the ConfigMap default/widgets-ring is unusable" in each.getMessage() for each in lines)

    async with Replica(server, "a") as replica:
        for times in (1, 2):
            await until(lambda: settled(server, replica))
            text = ring_object(server)["data"]["ring.json"].replace("widgets-a", "widgets-b")
            server.patch("configmaps", "widgets-ring", {"data": {"ring.json": text}}, namespace="default")
            await until(lambda times=times: reports() == times)  # type: ignore[misc]
            server.delete("configmaps", "widgets-ring", "default")
        await until(lambda: settled(server, replica))


@pytest.mark.behaviour("C-138")
async def test_ring_of_a_later_version_stops_all_and_stays(server: ApiServer, shared: list[Replica]) -> None:
    text = ring_object(server)["data"]["ring.json"].replace('"version":1,', '"version":2,')
    later = server.patch("configmaps", "widgets-ring", {"data": {"ring.json": text}}, namespace="default")
    await until(lambda: not any(each.ring["mine"] for each in shared))
    reason = (
        "the ConfigMap default/widgets-ring is unusable: another version of aioinformer has written ring.json: its "
        "version is 2, and this one knows 1; run that version of aioinformer, or scale the replicas to 0"
    )
    assert all(reason in str(each.manager.ready()) for each in shared)
    await until(lambda: [each for each in server.list("events") if each.get("message", "").startswith(reason)])
    assert ring_object(server)["metadata"]["resourceVersion"] == later["metadata"]["resourceVersion"]
    server.delete("configmaps", "widgets-ring", "default")
    await until(lambda: settled(server, *shared))


@pytest.mark.behaviour("C-138")
async def test_ring_of_a_restored_server_stops_all(server: ApiServer, shared: list[Replica]) -> None:
    backup = server.backup()
    await shared[0].stop()
    await until(lambda: settled(server, *shared[1:]))
    server.restore(backup)
    for each in shared[1:]:
        await until(lambda each=each: "an older ring was put back" in str(each.manager.ready()))  # type: ignore[misc]
        assert not each.ring["mine"]
    await until(lambda: [event for event in server.list("events") if event.get("reason") == "RingUnusable"])
    server.delete("configmaps", "widgets-ring", "default")
    await until(lambda: settled(server, *shared[1:]))


@pytest.mark.behaviour("C-138")
@pytest.mark.parametrize("resource", ["leases", "configmaps"])
async def test_resource_that_is_not_served_for_a_moment_is_no_deletion(server: ApiServer, resource: str) -> None:
    async with Replica(server, "a") as replica:
        await until(lambda: settled(server, replica))
        before = replica.ring
        async with server.fault("not_found", resources=[resource]):
            await until(lambda: "could not find the requested resource" in str(replica.manager.ready()))
        await until(lambda: settled(server, replica))
        assert replica.ring["epoch"] == before["epoch"]


async def test_missing_namespace_is_named(server: ApiServer, caplog: pytest.LogCaptureFixture) -> None:
    manager = Manager("a", client=server.url, ring=ControllerRing("widgets", "nowhere"))
    async with manager:
        await until(lambda: 'namespaces "nowhere" not found' in str(manager.ready()))
    assert caplog.text.count('namespaces "nowhere" not found') == 1


async def test_label_of_the_ring_object_changes_nothing(server: ApiServer, shared: list[Replica]) -> None:
    mine = [each.ring["mine"] for each in shared]
    server.patch("configmaps", "widgets-ring", {"metadata": {"labels": {"team": "x"}}}, namespace="default")
    looks = [each.looks() for each in shared]
    await until(lambda: all(each.looks() > seen + 2 for each, seen in zip(shared, looks, strict=True)))
    assert ([each.ring["mine"] for each in shared], settled(server, *shared)) == (mine, True)


@pytest.mark.behaviour("C-138")
async def test_what_others_add_to_ring_and_lease_stays(server: ApiServer, shared: list[Replica]) -> None:
    lease = f"widgets-{shared[1].name}"
    added = {"metadata": {"labels": {"team": "x"}, "annotations": {"backup": "no"}}}
    server.patch("configmaps", "widgets-ring", {**added, "data": {"note": "ours"}}, namespace="default")
    server.patch("leases", lease, added, namespace="default")
    ring, renewed = (server.get(*each, "default") for each in (("configmaps", "widgets-ring"), ("leases", lease)))
    await shared[0].stop()  # the others take its slots

    def written() -> Any:
        now = server.get("configmaps", "widgets-ring", "default"), server.get("leases", lease, "default")
        return now[0]["data"] != ring["data"] and now[1]["spec"] != renewed["spec"]

    await until(written)
    for kind, name in (("configmaps", "widgets-ring"), ("leases", lease)):
        metadata = server.get(kind, name, "default")["metadata"]
        assert metadata["labels"] == {"team": "x", "aioinformer/ring": "widgets"}
        assert metadata["annotations"].items() >= {"backup": "no"}.items()
    assert server.get("configmaps", "widgets-ring", "default")["data"]["note"] == "ours"


@pytest.mark.behaviour("C-138")
@pytest.mark.parametrize(
    ("member", "ring", "reason"),
    [
        ("d", {"slots": 32}, "has 16 slots by uid, and this replica is configured for 32"),
        ("d", {"by": "namespace"}, "configured for 16 by namespace"),
        ("a", {}, "another process"),
    ],
)
async def test_replica_that_does_not_fit_is_refused(
    server: ApiServer, shared: list[Replica], member: str, ring: dict[str, Any], reason: str
) -> None:
    other = Replica(server, member, **ring)
    try:
        async with asyncio.timeout(50):
            with pytest.raises(RingRefused, match=reason):
                await other.manager.run()
    finally:
        await other.transport.aclose()
    await until(lambda: settled(server, *shared))


async def test_caches_have_the_objects_of_the_slots(server: ApiServer, shared: list[Replica]) -> None:
    def divided(*replicas: Replica) -> bool:
        keys = [each.cached() for each in replicas]
        return sum(map(len, keys)) == len(set().union(*keys)) == OBJECTS and all(keys)

    await until(lambda: divided(*shared))
    runs = Counter(shared[1].runs)
    await shared[0].stop()
    await until(lambda: divided(*shared[1:]))
    assert sum((shared[1].runs - runs).values()) < OBJECTS
    await shared[0].start()
    await until(lambda: divided(*shared))


@pytest.mark.behaviour("C-138")
@pytest.mark.parametrize("path", ["/configmaps/widgets-ring", "/leases"])
async def test_missing_rights_are_named(server: ApiServer, replicas: list[Replica], path: str) -> None:
    replicas[0].transport.refused = path
    await replicas[0].start()
    await until(lambda: "`aioinformer check` prints the roles" in str(replicas[0].manager.ready()))
    assert not replicas[0].runs
    replicas[0].transport.refused = ""
    await until(lambda: settled(server, replicas[0]))


@pytest.mark.behaviour("C-139")
async def test_slot_that_is_not_handed_over_is_reported(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aioinformer.ring.troubles._PATIENCE", 0.0)
    go_on = asyncio.Event()

    async def stay(request: Request[Any]) -> None:
        while not go_on.is_set():
            with suppress(asyncio.CancelledError):
                await go_on.wait()

    # All objects run at the same time, so that there is one in each slot that moves.
    async with Replica(server, "a", workers=OBJECTS) as first:
        first.instead = {f"default/m{number:02}": stay for number in range(OBJECTS)}
        try:
            await until(lambda: first.ring["mine"] and not first.instead)
            async with Replica(server, "b") as second:
                await until(lambda: "widgets-a hands slot" in second.ring["gap"])
                await until(lambda: "widgets-a hands slot" in first.ring["gap"])
                assert not second.manager.ready()
                await until(lambda: [each for each in server.list("events") if each.get("reason") == "SlotsUnowned"])
                go_on.set()
                await until(lambda: first.manager.ready() and second.manager.ready())
        finally:
            go_on.set()  # the manager cannot stop before that


@pytest.mark.behaviour("C-138")
async def test_replica_that_may_not_write_the_ring_says_so_and_tries_once_a_period(server: ApiServer) -> None:
    calm = LeaderElectionOptions(lease_duration=6, renew_deadline=4, retry_period=1.0)
    async with Replica(server, "a", options=calm) as replica:
        replica.transport.writes_refused = True
        await until(lambda: "a write of the ring" in replica.ring["waits_for"])
        before = replica.looks()
        await asyncio.sleep(2)
        assert replica.looks() - before <= 4
        replica.transport.writes_refused = False
        await until(lambda: replica.ring["mine"] and not replica.ring["waits_for"])


@pytest.mark.behaviour("C-139")
async def test_metrics_have_the_map(server: ApiServer) -> None:
    registry = CollectorRegistry()
    async with HttpTransport(server.url) as transport:
        manager = Manager("shared", client=transport, ring="shared", metrics=PrometheusMetrics(registry))
        async with manager:
            await until(lambda: b'ring_slot_owner{member="shared-' in generate_latest(registry))
            assert b"ring_unowned_slots_seconds{" in generate_latest(registry)


@pytest.mark.parametrize(("prefix", "count"), [("team-", 40), ("", 2)])
async def test_namespaces_in_one_slot_are_reported_once(
    api_server: ApiServer, caplog: pytest.LogCaptureFixture, prefix: str, count: int
) -> None:
    for number in range(count):
        name = f"{prefix}{number:02}"
        api_server.create("namespaces", {"metadata": {"name": name}})
        api_server.create("configmaps", {"metadata": {"name": "m", "namespace": name, "labels": {"app": "web"}}})
    async with Replica(api_server, "a", by="namespace") as replica:
        replica.instead = {f"{prefix}{number:02}/m": do_nothing for number in range(count)}
        await until(lambda: len(replica.runs) == count)
        assert sum(replica.ring["namespaces"].values()) == count
        if prefix:
            await until(lambda: [each for each in api_server.list("events") if each.get("reason") == "SlotsUneven"])
        looks = replica.looks()
        await until(lambda: replica.looks() > looks + 3)
    warned = [each.getMessage() for each in caplog.records if "similar names have similar hashes" in each.getMessage()]
    assert len(warned) == (1 if prefix else 0)
    assert not prefix or f"of the {count} namespaces in the 16 slots" in warned[0]


def test_check_prints_the_rights_of_a_ring() -> None:
    rules = {str(rule): rule.names for rule in needs(Manager("widgets", ring=ControllerRing("widgets", "ops")))}
    assert rules["get, list, create, update, delete leases.coordination.k8s.io in namespace ops"] == ()
    assert rules["create configmaps in namespace ops"] == ()
    assert rules["get, watch, update configmaps in namespace ops"] == ("widgets-ring",)


async def test_key_of_another_replica_is_refused(server: ApiServer, shared: list[Replica]) -> None:
    theirs = sorted(owners(server)["b"])[0]
    controller = shared[0].manager.controllers["widgets"]
    with pytest.raises(UsageError, match=r"does not run default/.* in this replica"):
        shared[0].manager.enqueue(controller, f"default/{theirs}")


async def test_lease_deleted_by_hand_ends_a_life(server: ApiServer, shared: list[Replica]) -> None:
    uid = server.get("leases", "widgets-a", "default")["metadata"]["uid"]
    server.delete("leases", "widgets-a", "default")
    await until(lambda: [each for each in server.list("leases") if each["metadata"]["name"] == "widgets-a"])
    assert server.get("leases", "widgets-a", "default")["metadata"]["uid"] != uid
    await until(lambda: settled(server, *shared))


def test_ring_excludes_leader_election() -> None:
    with pytest.raises(UsageError, match="pass ring or leader_election"):
        Manager("widgets", ring="widgets", leader_election=LeaderElection("widgets"))


@pytest.mark.parametrize(
    "options", [{"slots": 63}, {"slots": 2048}, {"by": "name"}, {"name": ""}, {"member": ""}, {"name": "A b"}]
)
def test_ring_with_wrong_options_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        ControllerRing(**{"name": "widgets", **options})
