"""Standbys and new leaders, in virtual time: queues keep what is gone, and caches have the last writes of others."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from aioinformer.controller import Controller, LeaderElection, Manager, Owns, Request, TerminalError
from aioinformer.controller.inputs import Source
from aioinformer.errors import TransportError, WriteOutcomeUnknown
from tests.support.managers import (
    CONFIG_MAPS,
    PODS,
    Cluster,
    Runs,
    config_map,
    manager_of,
    now,
    pod,
    settled,
    snapshot_of,
    started,
)
from tests.support.unanswered import Unanswered

if TYPE_CHECKING:
    from aioinformer.transport import HttpRequest


class Led(Cluster):
    """A server with a Lease that another process holds, and renews until it is told not to.

    Attributes:
        terms: how many terms there have been.
        failure: raised by further lists; None for none.
        repeats: whether each page of a list is the first one.
    """

    def __init__(self, *names: str, held: bool = True) -> None:
        super().__init__(*names)
        if held:
            self.leases.take("former")
        self.terms = 1
        self.failure: BaseException | None = None
        self.repeats = False

    async def request(self, request: HttpRequest) -> Any:
        if self.failure is not None and "/leases" not in request.path and ("watch", "true") not in request.query:
            raise self.failure
        if self.repeats:
            query = tuple(each for each in request.query if each[0] != "continue")
            request = msgspec.structs.replace(request, query=query)
        return await super().request(request)

    async def lead(self, seconds: float, gone: int = 0) -> None:
        """Let the other process lead for a time; so many objects come and go meanwhile."""
        for number in range(steps := max(1, round(seconds / 2))):
            self.leases.take("former", self.terms)
            for each in range(number * gone // steps, (number + 1) * gone // steps):
                await self.come_and_go(f"gone-{each}")
            await asyncio.sleep(seconds / steps)

    async def come_and_go(self, name: str) -> None:
        """Put a config map, and remove it."""
        self.put("configmaps", config_map(name))
        await settled()
        self.remove("configmaps", f"default/{name}")
        await settled()

    async def hand_over(self) -> None:
        """Release the Lease on behalf of the former leader; return when the next one has taken it."""
        self.leases.take("", self.terms)
        self.terms += 2
        await started()

    def lists(self, plural: str) -> list[HttpRequest]:
        """Return the requests for pages of a collection so far."""
        return [each for each in self.reads if each.path.endswith(plural) and ("watch", "true") not in each.query]


@pytest.mark.behaviour("C-115")
async def test_standby_forgets_objects_whose_deletion_the_leader_has_seen() -> None:
    server, runs = Led("a"), Runs()
    controller = Controller("it", CONFIG_MAPS, runs)
    async with elected(server, controller) as manager:
        await server.lead(seconds=1200, gone=1200)
        snapshot = snapshot_of(manager)
        assert snapshot["ready"] + snapshot["delayed"] == 1
        assert 100 < snapshot["gone"] < 150  # those of two minutes
        await server.lead(seconds=200)
        await server.come_and_go("late")
        assert snapshot_of(manager)["gone"] == 1
        await server.hand_over()
        assert runs.names == ["a", "late"]
        assert [each.trigger for each in runs.requests[1].causes] == ["deleted"]


@pytest.mark.behaviour("C-115")
async def test_deletions_that_no_leader_has_seen_are_kept() -> None:
    server, runs = Led(), Runs()
    server.leases.take("former", seconds=3000)  # it has died, and its Lease is still valid
    async with elected(server, Controller("it", CONFIG_MAPS, runs)) as manager:
        await started()
        server.put("configmaps", config_map("a"))
        await settled()
        server.remove("configmaps", "default/a")
        await asyncio.sleep(2900)
        server.put("configmaps", config_map("b"))
        await settled()
        assert manager.snapshot()["controllers"]["it"]["gone"] == 1
        await asyncio.sleep(200)
        assert runs.names == ["b", "a"]


@pytest.mark.behaviour("C-115")
async def test_sign_of_life_is_not_younger_than_the_last_read() -> None:
    server, runs = Led(), Runs()
    async with elected(server, Controller("it", CONFIG_MAPS, runs)):
        await asyncio.sleep(10)
        server.leases.down = True
        server.leases.take("former")  # the last renewal; the former leader dies
        server.put("configmaps", config_map("a"))
        await settled()
        server.remove("configmaps", "default/a")
        await asyncio.sleep(3600)
        server.leases.down = False
        await asyncio.sleep(60)
        assert runs.names == ["a"]


@pytest.mark.behaviour("C-115")
async def test_object_that_comes_back_or_is_requested_stays_in_the_queue() -> None:
    server, runs = Led(), Runs()

    async def hooks() -> Any:
        yield "default/from-a-source"
        await asyncio.Event().wait()

    controller = Controller("it", CONFIG_MAPS, runs, owns=[Owns(PODS)], sources=[Source(hooks)])
    async with elected(server, controller) as manager:
        await started()
        manager.enqueue(controller, "default/asked")
        for _ in range(2):
            await server.come_and_go("back")
        assert snapshot_of(manager)["gone"] == 1
        server.put("configmaps", config_map("back"))
        await settled()
        assert (snapshot_of(manager)["gone"], snapshot_of(manager)["ready"]) == (0, 3)
        await server.lead(seconds=600)
        await server.hand_over()
        assert sorted(runs.names) == ["asked", "back", "from-a-source"]


@pytest.mark.behaviour("C-115")
async def test_former_leader_keeps_no_deletions_either() -> None:
    server, runs = Led("parked", "here", held=False), Runs()

    async def reconcile(request: Request[Any]) -> None:
        await runs(request)
        raise TerminalError("it cannot work")

    controller = Controller("it", CONFIG_MAPS, reconcile)
    async with elected(server, controller) as manager:
        await started()
        assert len(manager.parked(controller)) == 2
        server.leases.take("former", 7)
        await asyncio.sleep(5)
        server.terms = 7
        server.remove("configmaps", "default/parked")
        await server.lead(seconds=300)
        server.put("configmaps", config_map("other"))
        await settled()
        assert list(map(str, manager.parked(controller))) == ["default/here"]
        runs.requests.clear()
        await server.hand_over()
        assert runs.names == ["other"]


@pytest.mark.behaviour("C-115")
@pytest.mark.parametrize("seconds", [30, 300])
async def test_deletions_that_a_leader_has_left_over_run_last(seconds: float) -> None:
    server, runs = Led("busy", "gone", "here", held=False), Runs(seconds=1000)
    controller = Controller("it", CONFIG_MAPS, runs, workers=1)
    async with elected(server, controller) as manager:
        await started()
        server.remove("configmaps", "default/gone")
        await settled()
        assert (runs.names, snapshot_of(manager)["ready"]) == (["busy"], 2)
        server.terms = 7
        await server.lead(seconds)
        runs.requests.clear()
        runs.seconds = 0.01
        await server.hand_over()
        await asyncio.sleep(1)
        assert runs.names == ["here", "busy", "gone"][: 3 if seconds == 30 else 2]


def elected(server: Led, *controllers: Controller[Any], **options: Any) -> Manager:
    return manager_of(server, *controllers, leader_election=LeaderElection("it", identity="new"), **options)


async def ensure_child(request: Request[Any]) -> None:
    if not request.lister(PODS).list():
        await request.client.core.v1.pods.create({"metadata": {"generateName": "child-", "namespace": "default"}})


def child_controller(reconcile: Any = ensure_child, name: str = "it", **options: Any) -> Controller[Any]:
    return Controller(name, CONFIG_MAPS, reconcile, owns=[PODS], **options)


@pytest.mark.behaviour("C-79")
@pytest.mark.parametrize("delay", [3.0, 20.0])
@pytest.mark.parametrize("opaque", [False, True])
async def test_new_leader_creates_no_child_twice(delay: float, opaque: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "aioinformer.controller")
    server = Led("a")
    server.opaque = opaque
    controller = child_controller()
    async with elected(server, controller) as manager:
        await started()
        server.delay = lambda: delay
        server.put("pods", pod("child-of-the-former"))
        await server.hand_over()
        assert snapshot_of(manager)["phase"] == "catching up"
        assert snapshot_of(manager)["waits_for"] == ["informer of pods: compared with the server"]
        assert manager.ready().reasons == ("controller it: not caught up: informer of pods: compared with the server",)
        await asyncio.sleep(60)
        assert server.names("pods") == ["default/child-of-the-former"]
        assert snapshot_of(manager)["results"] == {"success": 1}
        assert snapshot_of(manager)["phase"] == "working"
        assert manager.ready()
    lines = [line for line in caplog.messages if "have the writes of the former leader" in line]
    assert len(lines) == 1
    assert ("lacks changes of default/child-of-the-former" in caplog.text) == (delay > 5)


@pytest.mark.behaviour("C-79")
@pytest.mark.parametrize("namespaces", [(), ("default",), ("default", "other")], ids=str)
@pytest.mark.parametrize("change", ["update", "delete", "replace", "leave"])
async def test_new_leader_sees_each_change_of_the_former(change: str, namespaces: tuple[str, ...]) -> None:
    server, seen = Led(), []
    for number in range(1200):  # three pages
        server.put("pods", pod(f"p{number:04}", ("default", "other")[number % 2] if len(namespaces) > 1 else "default"))
    server.put("configmaps", config_map("a"))
    target = pod("target", namespaces[-1] if namespaces else "default", app="a")
    key = f"{target['metadata']['namespace']}/target"
    server.put("pods", target)
    informer: dict[str, Any] = {"label_selector": "app=a"} if change == "leave" else {}

    async def reconcile(request: Request[Any]) -> None:
        found = [each for each in request.lister(PODS).list() if each.metadata.name == "target"]
        seen.append([(each.metadata.uid, each.metadata.resource_version) for each in found])

    controller = Controller("it", CONFIG_MAPS, reconcile, owns=[Owns(PODS, **informer)])
    async with elected(server, controller, namespaces=namespaces):
        await started()
        server.delay = lambda: 3.0
        if change in ("delete", "replace"):
            server.remove("pods", key)
        if change != "delete":
            server.put("pods", target if change != "leave" else pod("target", target["metadata"]["namespace"]))
        await server.hand_over()
        assert seen == []
        await asyncio.sleep(10)
    stored = server.objects["pods"].get(key)
    shown = stored is not None and change != "leave"
    assert seen[0] == ([(stored["metadata"]["uid"], stored["metadata"]["resourceVersion"])] if shown and stored else [])


@pytest.mark.behaviour("C-79")
async def test_current_caches_cost_one_list_and_no_wait() -> None:
    server, one, two = Led("a"), Runs(), Runs()
    server.put("pods", pod("p"))
    async with elected(server, child_controller(one, "one"), child_controller(two, "two")):
        await started()
        server.put("deployments", pod("d"))  # the versions of lists are later now than those of all informers
        before = {plural: len(server.lists(plural)) for plural in ("pods", "configmaps")}
        await server.hand_over()
        assert one.names == two.names == ["a"]
        assert {plural: len(server.lists(plural)) for plural in before} == {each: n + 1 for each, n in before.items()}


@pytest.mark.behaviour("C-79")
async def test_list_ends_when_the_cache_has_its_version() -> None:
    server, runs = Led("a"), Runs()
    for number in range(3000):
        server.put("pods", pod(f"p{number}"))
    async with elected(server, child_controller(runs)):
        await started()
        before = len(server.lists("pods"))
        server.delay = lambda: 3.0
        server.put("pods", pod("late"))
        server.reading.clear()
        await server.hand_over()
        await asyncio.sleep(10)
        assert runs.names == []
        server.reading.set()
        await started()
        assert runs.names == ["a"]
        assert len(server.lists("pods")) == before + 1


@pytest.mark.behaviour("C-79")
async def test_leader_that_leads_again_waits_again() -> None:
    server, seen = Led("a"), []
    server.put("pods", pod("first"))

    async def reconcile(request: Request[Any]) -> None:
        seen.append([each.metadata.name for each in request.lister(PODS).list()])

    async with elected(server, child_controller(reconcile)):
        await server.hand_over()
        server.leases.take("other", transitions=2)
        await asyncio.sleep(10)
        server.delay = lambda: 3.0
        server.remove("pods", "default/first")
        server.put("pods", pod("second"))
        await server.hand_over()
        await asyncio.sleep(10)
        assert seen == [["first"], ["second"]]


@pytest.mark.behaviour("C-79")
@pytest.mark.parametrize("waits_for", ["the answer", "the event", "the next attempt"])
async def test_loss_while_waiting_cancels_the_wait(waits_for: str) -> None:
    server, runs, tasks = Led("a"), Runs(), asyncio.all_tasks()
    controller = child_controller(runs)
    async with elected(server, controller) as manager:
        await started()
        waiting = asyncio.all_tasks()
        server.delay = lambda: 60.0
        server.put("pods", pod("p"))
        if waits_for == "the answer":
            server.reading.clear()
        elif waits_for == "the next attempt":
            server.failure = TransportError("it cannot be reached")
        await server.hand_over()
        assert snapshot_of(manager)["phase"] == "catching up"
        server.leases.take("other", transitions=2, seconds=1000)
        await asyncio.sleep(10)
        assert snapshot_of(manager)["phase"] == "standby"
        assert snapshot_of(manager)["waits_for"] == []
        left = {task.get_name() for task in asyncio.all_tasks() - waiting}
        assert not any("catches up" in name or "dispatcher" in name for name in left)
        server.failure = None
        server.reading.set()
        await asyncio.sleep(100)
        assert runs.names == []
        await server.hand_over()
        assert runs.names == ["a"]
    assert asyncio.all_tasks() == tasks


@pytest.mark.behaviour("C-79")
@pytest.mark.parametrize("opaque", [False, True])
async def test_undecodable_object_does_not_stop_a_new_leader(opaque: bool) -> None:
    server, runs = Led("a"), Runs()
    server.opaque = opaque
    server.put("pods", pod("bad"))
    server.put("pods", pod("p"))

    def refuse(obj: Any) -> Any:
        if obj.metadata.name == "bad":
            raise ValueError("it cannot be read")
        return obj

    controller = Controller("it", CONFIG_MAPS, runs, owns=[Owns(PODS, transform=refuse)])
    async with elected(server, controller):
        await started()
        server.put("deployments", pod("d"))
        await server.hand_over()
        await asyncio.sleep(60)
        assert runs.names == ["a"]


@pytest.mark.behaviour("C-79")
@pytest.mark.parametrize("opaque", [False, True])
async def test_new_leader_awaits_no_deletion_after_a_nameless_object(opaque: bool) -> None:
    server, seen = Led("a"), []
    server.opaque = opaque
    server.put("pods", pod("known"))

    async def reconcile(request: Request[Any]) -> None:
        seen.append({each.metadata.name for each in request.lister(PODS).list()})

    async with elected(server, child_controller(reconcile)):
        await started()
        server.objects["pods"]["default/known"] = {"metadata": {"namespace": "default"}}
        server.delay = lambda: 3.0
        server.put("pods", pod("child-of-the-former"))
        await server.hand_over()
        await asyncio.sleep(2.9)
        assert seen == []
        await asyncio.sleep(0.2)
        assert seen == [{"known", "child-of-the-former"}]


@pytest.mark.behaviour("C-79")
async def test_stop_while_waiting_is_quick() -> None:
    server, runs, tasks = Led(), Runs(), asyncio.all_tasks()
    async with elected(server, child_controller(runs)):
        await started()
        server.reading.clear()
        await server.hand_over()
        stopped = now()
    assert now() - stopped < 1
    assert asyncio.all_tasks() == tasks
    assert server.leases.holder == ""


@pytest.mark.behaviour("C-79")
@pytest.mark.parametrize(
    "failure",
    [TransportError("it cannot be reached"), RuntimeError("of the transport"), asyncio.CancelledError()],
    ids=lambda failure: type(failure).__name__,
)
async def test_failed_read_is_repeated(failure: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    server = Led("a")
    controller = child_controller()
    async with elected(server, controller) as manager:
        await started()
        server.delay = lambda: 3.0
        server.put("pods", pod("child-of-the-former"))
        server.failure = failure
        await server.hand_over()
        await asyncio.sleep(20)
        assert snapshot_of(manager)["results"] == {}
        assert manager.alive()
        assert "not caught up: informer of configmaps: " in manager.ready().reasons[0]
        reason = str(failure) or "CancelledError()"
        assert reason in manager.ready().reasons[0]
        server.failure = None
        await asyncio.sleep(60)
        assert snapshot_of(manager)["results"] == {"success": 1}
        assert server.names("pods") == ["default/child-of-the-former"]
    assert 2 < sum("the informer of pods may lack writes" in line for line in caplog.messages) < 10


@pytest.mark.behaviour("C-79")
async def test_pages_that_repeat_are_a_failed_read(caplog: pytest.LogCaptureFixture) -> None:
    server, runs = Led("a"), Runs()
    for number in range(501):
        server.put("pods", pod(f"p{number}"))
    async with elected(server, child_controller(runs)):
        await started()
        server.delay = lambda: 3.0
        server.put("pods", pod("child-of-the-former"))
        server.repeats = True
        await server.hand_over()
        await asyncio.sleep(60)
        assert runs.names == ["a"]
    assert "the server repeats the same page of the list; comparing it with the server again" in caplog.text


@pytest.mark.behaviour("C-79")
async def test_controller_without_leadership_does_not_wait() -> None:
    server, runs = Led("a"), Runs()
    server.leases.take("me")
    async with elected(server, child_controller(runs, elected=False)):
        await started()
        assert runs.names == ["a"]
        assert len(server.lists("pods")) == 1


@pytest.mark.behaviour("C-46")
@pytest.mark.parametrize("end", ["another leads", "no renewal", "a stop"])
async def test_write_that_outlives_its_attempt_ends_with_the_term(end: str) -> None:
    server = Led("elected", "always", held=False)
    silent = Unanswered(server, lambda request: request.method == "PATCH")
    writes: dict[str, asyncio.Task[Any]] = {}

    def controller(name: str) -> Controller[Any]:
        async def outlive(request: Request[Any]) -> None:
            if request.name == name:
                patched = request.client.core.v1.configmaps.patch(str(request.key), {"data": {"n": "1"}}, timeout=None)
                writes[name] = asyncio.create_task(patched)

        return Controller(name, CONFIG_MAPS, outlive, elected=name == "elected")

    election = LeaderElection("it", identity="new")
    manager = Manager("test", [controller("elected"), controller("always")], client=silent, leader_election=election)
    async with manager:
        await started()
        assert not writes["elected"].done()
        if end == "another leads":
            server.leases.take("other", 5)
            await settled()
        elif end == "no renewal":
            server.leases.down = True
            await asyncio.sleep(10.1)
        if end != "a stop":
            assert isinstance(writes["elected"].exception(), WriteOutcomeUnknown)
    assert isinstance(writes["elected"].exception(), WriteOutcomeUnknown)
    # Without a renewal, its own time has ended in the same moment: either ends the write.
    assert end == "no renewal" or len(silent.aborted) == 1
    assert not writes["always"].done()
    await silent.aclose()
    await asyncio.wait(writes.values())


async def test_manager_records_who_leads_and_names_a_long_lease() -> None:
    events: list[tuple[str, str, str]] = []

    class Recorder:
        def event(self, about: Any, type: str, reason: str, message: str) -> None:
            events.append((about.kind, reason, message))

    server = Led("a")
    server.leases.take("former", seconds=20_000)
    async with elected(server, Controller("it", CONFIG_MAPS, Runs()), recorder=Recorder()) as manager:
        await asyncio.sleep(5)
        [(kind, reason, trouble)] = events
        assert (kind, reason) == ("Lease", "LeaseTooLong")
        assert trouble in str(manager.ready())
        await server.hand_over()
        assert events[1:] == [("Lease", "LeaderElection", "new became leader")]
        assert trouble not in str(manager.ready())
    assert events[2:] == [("Lease", "LeaderElection", "new stopped leading")]
