"""The brake: keys whose own writes cause their runs in a loop, and what is none."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.controller import Controller, Every, Watch
from aioinformer.controller.inputs import Source
from aioinformer.errors import OptionError
from tests.support.limits import compare_fields_of
from tests.support.managers import (
    CONFIG_MAPS,
    Runs,
    Server,
    active_of,
    config_map,
    manager_of,
    now,
    pod,
    snapshot_of,
)
from tests.support.written_collection import PODS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aioinformer.controller import Request

#: The time that a run takes at least: the way of a watch event.
LAG = 0.01
LIMIT = 60


def server_of(*names: str, **data: str) -> Server:
    server = Server()
    for name in names or ("a",):
        server.put("configmaps", config_map(name, **data))
    server.delay = lambda: LAG
    return server


class Loop(Runs):
    """A reconciler that writes another value in each run.

    Args:
        value: returns it for the number of the run.
        stop: the number of runs after which it writes nothing.
    """

    def __init__(self, value: Callable[[int], str], stop: int = 100_000) -> None:
        super().__init__()
        self.value = value
        self.stop = stop

    async def __call__(self, request: Request[Any]) -> None:
        await super().__call__(request)
        mine = [each for each in self.requests if each.key == request.key]
        if request.object is not None and len(mine) <= self.stop:
            patch = {"data": {"turn": self.value(len(mine))}}
            await request.client.core.v1.configmaps.patch(str(request.key), patch)

    def pauses(self) -> list[int]:
        return [round(after - before) for before, after in zip(self.times, self.times[1:], strict=False)]


def flip(number: int) -> str:
    return "ab"[number % 2]


def moment(number: int) -> str:
    return f"{number * 7919 % 10007:x}.{number % 3}"


@pytest.mark.behaviour("C-142")
@pytest.mark.parametrize(("value", "runs"), [(flip, 12), (moment, 42)])
async def test_a_loop_is_braked(value: Any, runs: int, caplog: pytest.LogCaptureFixture) -> None:
    loop = Loop(value)
    async with manager_of(server_of(), Controller("it", CONFIG_MAPS, loop)) as manager:
        await asyncio.sleep(5 * LAG * runs)
        assert 5 <= len(loop.times) <= runs
        await asyncio.sleep(90)
        shown = snapshot_of(manager)["braked"]["default/a"]
        active = active_of(manager)
    assert shown.startswith("data.turn of configmaps default/a ")
    pauses = [each for each in loop.pauses() if each]
    assert pauses[:6] == [1, 2, 4, 8, 16, 30]
    assert set(pauses[6:]) <= {30}
    assert len(loop.times) < runs + len(pauses)
    assert "It is a loop, because data.turn of configmaps default/a" in caplog.text
    assert caplog.text.count("triggers itself") <= 3
    assert moment(3) not in caplog.text
    assert active.loops.detected > 5


@pytest.mark.behaviour("C-142")
async def test_braked_loop_that_ends_is_forgotten() -> None:
    loop = Loop(flip, stop=12)
    server = server_of()
    async with manager_of(server, Controller("it", CONFIG_MAPS, loop)) as manager:
        await asyncio.sleep(60)
        assert snapshot_of(manager)["braked"] == {}
        assert len(loop.times) == 13
        server.put("configmaps", config_map("a", turn="c"))
        before = now()
        await asyncio.sleep(2)
        assert loop.times[-1] < before + 0.1


@pytest.mark.behaviour("C-142")
async def test_without_the_brake_nothing_waits() -> None:
    loop = Loop(flip, stop=500)
    async with manager_of(server_of(), Controller("it", CONFIG_MAPS, loop, brake=False)) as manager:
        await asyncio.sleep(90)
        assert snapshot_of(manager)["braked"] == {}
    assert len(loop.times) == 501
    assert loop.times[-1] - loop.times[0] < 10


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - in virtual time
            await asyncio.sleep(LAG)


async def braked(manager: Any) -> None:
    """Wait until the key rests for eight seconds."""
    await until(lambda: snapshot_of(manager)["braked"])
    await asyncio.sleep(8)


@pytest.mark.behaviour("C-142")
@pytest.mark.parametrize("by", ["user", "source", "caller", "deletion", "other kind"])
async def test_something_else_releases_the_brake(by: str) -> None:
    loop, server = Loop(flip), server_of()
    keys: asyncio.Queue[str] = asyncio.Queue()

    async def source() -> AsyncIterator[str]:
        while True:
            yield await keys.get()

    watch = Watch(PODS, to=lambda each: "default/a")
    controller = Controller("it", CONFIG_MAPS, loop, sources=[Source(source)], watches=[watch])
    async with manager_of(server, controller) as manager:
        await braked(manager)
        began, before = now(), len(loop.times)
        if by == "user":
            server.put("configmaps", config_map("a", turn="user"))
        elif by == "source":
            keys.put_nowait("default/a")
        elif by == "caller":
            manager.enqueue(controller, "default/a")
        elif by == "deletion":
            server.remove("configmaps", "default/a")
        else:
            server.put("pods", pod("a-1"))
        await asyncio.sleep(2 * LAG)
        assert len(loop.times) > before, "it still waits"
        assert loop.times[before] - began <= 2 * LAG
        await asyncio.sleep(0.01)
        assert snapshot_of(manager)["braked"] == {}


@pytest.mark.behaviour("C-142")
async def test_a_change_during_a_run_releases_the_brake() -> None:
    loop, server = Loop(flip), server_of()
    go_on = asyncio.Event()
    go_on.set()

    async def reconcile(request: Request[Any]) -> None:
        await loop(request)
        await go_on.wait()

    async with manager_of(server, Controller("it", CONFIG_MAPS, reconcile)) as manager:
        await braked(manager)
        go_on.clear()
        runs = len(loop.times)
        await until(lambda: len(loop.times) > runs)
        server.put("configmaps", config_map("a", turn="user"))
        await asyncio.sleep(1)
        assert len(loop.times) == runs + 1
        go_on.set()
        await asyncio.sleep(1.5)
        assert len(loop.times) > runs + 5, "it is a new loop, which is not proven yet"


@pytest.mark.behaviour("C-142")
async def test_timers_do_not_release_the_brake() -> None:
    loop = Loop(flip)
    controller = Controller("it", CONFIG_MAPS, loop, sources=[Every(0.5, jitter=0)])
    async with manager_of(server_of(), controller):
        await asyncio.sleep(90)
    assert len(loop.times) < 30


@pytest.mark.behaviour("C-142")
async def test_two_controllers_that_fight_are_not_braked() -> None:
    """Neither causes a loop by itself: each repairs what the other one does."""
    server = server_of(turn="a")
    runs = {"one": 0, "other": 0}

    def wanting(name: str, value: str) -> Controller[Any]:
        async def reconcile(request: Request[Any]) -> None:
            if runs[name] < 100 and request.object is not None and request.object.data["turn"] != value:
                runs[name] += 1
                await request.client.core.v1.configmaps.patch("default/a", {"data": {"turn": value}})

        return Controller(name, CONFIG_MAPS, reconcile)

    async with manager_of(server, wanting("one", "a"), wanting("other", "b")) as manager:
        await asyncio.sleep(20)
        assert all(each["braked"] == {} for each in manager.snapshot()["controllers"].values())
    assert runs == {"one": 100, "other": 100}


STEPS = 200


async def rolled_out(reconcile: Any, server: Server, steps: list[Any], **options: Any) -> None:
    """Check that a rollout with one step a run takes no longer than its runs."""
    controller = Controller("it", CONFIG_MAPS, reconcile, **options)
    began = now()
    async with manager_of(server, controller) as manager:
        await until(lambda: len(steps) >= STEPS)
        assert snapshot_of(manager)["braked"] == {}
    assert now() - began < 4 * LAG * STEPS


@pytest.mark.behaviour("C-142")
async def test_rollout_of_200_children_is_not_slowed() -> None:
    server, done = server_of(), []

    async def reconcile(request: Request[Any]) -> None:
        pods = request.lister(PODS).list()
        if len(pods) < STEPS and request.object is not None:
            done.append(len(pods))
            owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": request.object.metadata.uid}
            name = f"child-{len(pods)}"
            metadata = {"name": name, "namespace": "default", "ownerReferences": [{**owner, "controller": True}]}
            await request.client.core.v1.pods.create({"metadata": metadata})
            counts = {"data": {"updated": str(len(done)), "at": moment(len(done)), "phase": flip(len(done))}}
            await request.client.core.v1.configmaps.patch("default/a", counts)

    await rolled_out(reconcile, server, done, owns=[PODS])


@pytest.mark.behaviour("C-142")
async def test_rollout_of_200_updates_is_not_slowed() -> None:
    server, done = server_of(step="0"), []
    for number in range(STEPS):
        server.put("pods", pod(f"child-{number}", version="v1"))

    async def reconcile(request: Request[Any]) -> None:
        old = [each for each in request.lister(PODS).list() if each.metadata.labels["version"] == "v1"]
        if old:
            done.append(old[0].metadata.name)
            patch = {"metadata": {"labels": {"version": "v2"}}}
            await request.client.core.v1.pods.patch(f"default/{old[0].metadata.name}", patch)

    await rolled_out(reconcile, server, done, watches=[Watch(PODS, to=lambda each: "default/a")])


@pytest.mark.behaviour("C-142")
async def test_rollout_that_only_counts_to_200_is_not_slowed() -> None:
    server, done = server_of(step="0"), []

    async def reconcile(request: Request[Any]) -> None:
        assert request.object is not None
        step = int(request.object.data["step"])
        if step < STEPS:
            done.append(step)
            await request.client.core.v1.configmaps.patch("default/a", {"data": {"step": str(step + 1)}})

    await rolled_out(reconcile, server, done)


@pytest.mark.behaviour("C-142")
async def test_rollout_whose_children_become_ready_is_not_slowed() -> None:
    """The changes of others between its steps end what might become a proof."""
    server = server_of(phase="a")
    done: list[str] = []
    server.put("pods", pod("child", version="0"))

    async def reconcile(request: Request[Any]) -> None:
        child = request.lister(PODS).get("default/child")
        assert child is not None
        labels = child.metadata.labels
        if len(done) < STEPS and labels.get("ready", "0") == labels["version"]:
            done.append(labels["version"])
            patch = {"metadata": {"labels": {"version": moment(len(done))}}}
            await request.client.core.v1.pods.patch("default/child", patch)
            await request.client.core.v1.configmaps.patch("default/a", {"data": {"phase": flip(len(done))}})

    async def kubelet(request: Request[Any]) -> None:
        assert request.object is not None
        labels = request.object.metadata.labels
        if labels.get("ready") != labels["version"]:
            server.put("pods", pod("child", version=labels["version"], ready=labels["version"]))

    async with manager_of(server, Controller("kubelet", PODS, kubelet)):
        await rolled_out(reconcile, server, done, watches=[Watch(PODS, to=lambda each: "default/a")])


@pytest.mark.behaviour("C-142")
async def test_child_that_is_made_again_in_each_run_is_a_loop() -> None:
    server, runs = server_of(), Runs()
    server.put("pods", pod("child"))

    async def reconcile(request: Request[Any]) -> None:
        await runs(request)
        pods = request.client.core.v1.pods
        if not request.lister(PODS).list():
            await pods.create(pod("child"))
        else:
            await pods.delete("default/child")

    controller = Controller("it", CONFIG_MAPS, reconcile, watches=[Watch(PODS, to=lambda each: "default/a")])
    async with manager_of(server, controller) as manager:
        await asyncio.sleep(90)
        assert snapshot_of(manager)["braked"] == {"default/a": "pods default/child returns to a value that it had"}
    assert len(runs.times) < 30


@pytest.mark.behaviour("C-142")
async def test_all_of_many_loops_are_braked(monkeypatch: pytest.MonkeyPatch) -> None:
    compare_fields_of(monkeypatch, 10)  # their fields are compared in turns
    names = [f"map-{number}" for number in range(80)]
    loop = Loop(flip)
    async with manager_of(server_of(*names), Controller("it", CONFIG_MAPS, loop, workers=50)) as manager:
        await asyncio.sleep(20)
        assert len(snapshot_of(manager)["braked"]) == len(names)
        runs = len(loop.times)
        await asyncio.sleep(30)
    assert len(loop.times) - runs < 4 * len(names)


@pytest.mark.behaviour("C-142")
async def test_braked_keys_are_forgotten_after_a_minute_without_a_run() -> None:
    numbers = count()

    async def reconcile(request: Request[Any]) -> None:
        # The last write changes nothing that makes it run.
        if (number := next(numbers)) < 12:
            await request.client.core.v1.configmaps.patch("default/a", {"data": {"turn": flip(number)}})
        else:
            await request.client.core.v1.pods.create(pod(f"child-{number}"))

    async with manager_of(server_of(), Controller("it", CONFIG_MAPS, reconcile)) as manager:
        await braked(manager)
        await asyncio.sleep(200)
        assert snapshot_of(manager)["braked"] == {}


@pytest.mark.behaviour("C-142")
def test_brake_is_true_or_false() -> None:
    async def reconcile(request: Request[Any]) -> None: ...

    with pytest.raises(OptionError, match="controller it: brake must be True or False, not 30"):
        Controller("it", CONFIG_MAPS, reconcile, brake=30)  # type: ignore[arg-type]
