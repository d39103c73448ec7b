"""The harness: steps, crashes, what it reports, that a plan repeats a run, and that it finds each planted bug."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from math import inf
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.controller import BackgroundRun, Controller, LeaderElection, Manager, Request, Result
from aioinformer.handlers import stalls
from aioinformer.harness import Crash, HarnessFailure, NotConverged, Plan, explore, run
from aioinformer.models import core_v1
from tests.system.harness import sample
from tests.system.harness.sample import DEFINITION, Widgets, life, namesake, taken_name

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from aioinformer.harness import Harness
    from aioinformer.harness.exploring import Scenario

    Reconcile = Callable[[Request[Any]], Awaitable[Result | None]]


MAPS = core_v1.CONFIG_MAPS


def managing(*reconcilers: Callable[[Request[Any]], Any], **options: Any) -> Callable[[Harness], Manager]:
    """Return a function that makes a manager with these reconcilers of ConfigMaps."""

    def make_manager(harness: Harness) -> Manager:
        controllers = [Controller(each.__name__, MAPS, each) for each in reconcilers]
        return Manager("maps", controllers, client=harness.transport, **options)

    return make_manager


def making(widgets: type[Widgets]) -> Callable[[Harness], Manager]:
    """Return a function that makes a manager with this controller of widgets."""
    return lambda harness: widgets(harness).manager()


def data_of(request: Request[Any]) -> dict[str, str]:
    """Return the data of the ConfigMap of a request."""
    return dict(request.object.data) if request.object is not None else {}


def config_map(name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def paint(request: Request[Any], colour: str) -> None:
    if data_of(request)["colour"] != colour:
        await request.client.core.v1.configmaps.patch(str(request.key), {"data": {"colour": colour}})


async def painting(request: Request[Any]) -> None:
    await paint(request, "red")


async def one_map(harness: Harness) -> None:
    await harness.create(config_map("a", colour="grey"))


@pytest.mark.behaviour("C-99")
def test_oscillation_is_reported_with_its_field() -> None:
    async def red(request: Request[Any]) -> None:
        await paint(request, "red")

    async def blue(request: Request[Any]) -> None:
        await paint(request, "blue")

    with pytest.raises(
        NotConverged, match=r'configmaps default/a oscillates: .*data.colour: "(red|blue)" -> "(red|blue)"'
    ):
        run(managing(red, blue), one_map)


@pytest.mark.behaviour("C-99")
def test_writes_without_effect_are_reported() -> None:
    async def hot(request: Request[Any]) -> Result:
        await request.client.core.v1.configmaps.patch(str(request.key), {"data": {"colour": "red"}})
        return Result(after=1.0)

    with pytest.raises(NotConverged, match=r"PATCH configmaps default/a was sent \d+ times while no object changed"):
        run(managing(hot), one_map)


@pytest.mark.behaviour("C-99")
def test_key_that_fails_is_reported_with_its_error() -> None:
    async def failing(request: Request[Any]) -> None:
        raise ValueError("no such colour")

    with pytest.raises(NotConverged, match=r"controller failing does not rest: .*'default/a'.*ValueError") as failure:
        run(managing(failing), one_map)
    assert "no such colour" in failure.value.__notes__[0]  # in the story


@pytest.mark.behaviour("C-99")
def test_new_manager_must_find_nothing_to_do() -> None:
    async def counting(request: Request[Any]) -> None:
        if request.causes[0].trigger == "initial":
            count = int(data_of(request).get("count", 0)) + 1
            await request.client.core.v1.configmaps.patch(str(request.key), {"data": {"count": str(count)}})

    with pytest.raises(
        HarnessFailure, match=r'a new manager finds something to do: configmaps default/a: data.count: "1"'
    ):
        run(managing(counting), one_map)


@pytest.mark.behaviour("C-96")
@pytest.mark.parametrize("after", [False, True])
def test_crashed_process_runs_no_further_code(after: bool) -> None:
    ended: list[str] = []
    written: list[tuple[str, bool]] = []

    async def painting(request: Request[Any]) -> None:
        try:
            await paint(request, "red")
        finally:
            ended.append("ended")

    async def scenario(harness: Harness) -> None:
        await one_map(harness)
        await harness.settle()
        # Only the run of the second manager has ended, and perhaps the one that its own write caused.
        assert len(ended) <= (1 if after else 2)
        assert harness.objects(MAPS)[0]["data"] == {"colour": "red"}
        written.extend((each.process, each.changed) for each in harness.writes)

    run(managing(painting), scenario, Plan(crashes=(Crash(1, after),)))
    assert written == [("manager 1" if after else "manager 2", True)]


@pytest.mark.behaviour("C-96")
def test_next_leader_continues_after_a_crash() -> None:
    async def scenario(harness: Harness) -> None:
        await one_map(harness)
        await harness.settle()
        assert harness.objects(MAPS)[0]["data"] == {"colour": "red"}
        assert [each.process for each in harness.writes] == ["manager 2"]
        (lease,) = harness.objects("leases.coordination.k8s.io")
        assert lease["spec"]["leaseTransitions"] == 1

    run(managing(painting, leader_election=LeaderElection("maps")), scenario, Plan(crashes=(Crash(1, False),)))


def test_one_event_happens_in_a_step() -> None:
    async def scenario(harness: Harness) -> None:
        await one_map(harness)
        seen = []
        while not harness.writes:
            await harness.step()
            seen.append(str(harness.story).splitlines()[-1].split("manager 1")[-1].strip())
        assert seen[:3] == ["sends WATCH configmaps", "sees configmaps ADDED default/a (version 6)", seen[2]]
        assert seen[-1] == "sends PATCH configmaps default/a"

    run(managing(painting), scenario)


def test_check_fails_at_the_change_that_breaks_it() -> None:
    async def painting(request: Request[Any]) -> None:
        for colour in ("red", "blue"):
            if data_of(request)["colour"] == "grey":
                await request.client.core.v1.configmaps.patch(str(request.key), {"data": {"colour": colour}})

    async def scenario(harness: Harness) -> None:
        harness.always(no_red)
        await one_map(harness)
        await harness.settle()

    def no_red(harness: Harness) -> None:
        colours = [each["data"]["colour"] for each in harness.objects(MAPS)]
        assert "red" not in colours, "there must be no red, not even for a moment"

    with pytest.raises(AssertionError, match="no red") as failure:
        run(managing(painting), scenario)
    assert failure.value.__notes__[0].count("sends PATCH") == 1


def test_end_of_the_manager_is_a_failure() -> None:
    def make_manager(harness: Harness) -> Manager:
        raise RuntimeError("there is no configuration")

    with pytest.raises(HarnessFailure, match="manager 1 has ended") as failure:
        run(make_manager, one_map)
    assert str(failure.value.__cause__) == "there is no configuration"


@pytest.mark.behaviour("C-100")
def test_plan_repeats_a_run_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stalls, "LIMIT", inf)  # a busy machine would add warnings about blocks of the event loop
    stories: list[str] = []

    async def scenario(harness: Harness) -> None:
        await life(harness)
        stories.append(str(harness.story))

    plan = Plan(seed=3, crashes=(Crash(4, True),), stale=0.2, lost=0.2, conflicts=0.2, merged=0.05)
    for again in (plan, plan, Plan(seed=4, stale=0.2)):
        run(making(Widgets), scenario, again, objects=[DEFINITION])
    assert stories[0] == stories[1] != stories[2]


@pytest.mark.behaviour("C-100")
@pytest.mark.parametrize(
    ("seed", "needed"),
    [(1, Plan(lost=0.2)), (7, Plan(crashes=(Crash(4, True),)))],
    ids=["lost", "crash"],
)
def test_failure_has_only_the_faults_that_it_needs(seed: int, needed: Plan) -> None:
    make_manager = making(sample.AdoptsLater)
    with pytest.raises(AssertionError, match="the parts are") as failure:
        explore(make_manager, life, seeds=[seed], objects=[DEFINITION])
    assert failure.value.__notes__[0].endswith(f"To repeat this run: run(make_manager, scenario, {needed!r})")
    with pytest.raises(AssertionError, match="the parts are"):
        run(make_manager, life, needed, objects=[DEFINITION])


def test_wait_lets_steps_happen_until_the_condition_holds() -> None:
    async def red(request: Request[Any]) -> Result | None:
        if request.causes[0].trigger != "result" and data_of(request).get("colour") != "red":
            return Result(after=60)
        await request.client.core.v1.configmaps.patch(str(request.key), {"data": {"colour": "red"}})
        return None

    async def scenario(harness: Harness) -> None:
        await one_map(harness)
        found = await harness.wait_for("configmaps", "default/a", lambda obj: obj["data"]["colour"] == "red")
        assert found["data"] == {"colour": "red"}

    assert explore(managing(red), scenario, seeds=range(3)).runs == 4


def test_wait_for_a_condition_that_never_holds_is_reported() -> None:
    async def idle(request: Request[Any]) -> None:
        pass

    async def scenario(harness: Harness) -> None:
        await one_map(harness)
        await harness.wait_for(MAPS, "default/a", lambda obj: obj["data"]["colour"] == "red", timeout=60)

    with pytest.raises(NotConverged, match=r'^after 60 s, v1/configmaps default/a does not .*"colour":"grey"'):
        run(managing(idle), scenario)


#: The bug, the scenario, and what is wrong then.
NEED_FAULTS: list[tuple[type[Widgets], Scenario, str]] = [
    (sample.CreatesFromStaleCache, life, "the parts are"),
    (sample.RemovesFinalizerFirst, life, "a disk is left"),
    (sample.FollowsDeletions, life, "a disk is left"),
    (sample.FollowsDeletions, namesake, "a disk is left"),
    (sample.AdoptsLater, life, "the parts are .*nobody"),
    (sample.SwallowsErrors, life, "the parts are"),
]
NEED_NONE: list[tuple[type[Widgets], Scenario, str]] = [
    (sample.CountsRuns, life, "was changed 30 times .* metadata.annotations.example.com/runs"),
    (sample.MakesDiskFirst, life, "a disk is left"),
    (sample.RemembersParts, life, "the parts are"),
    (sample.ReportsLatestGeneration, life, "the status is that of another generation"),
    (sample.TakesOver, taken_name, "it was taken over"),
]


@pytest.mark.behaviour("C-96")
@pytest.mark.parametrize("scenario", [life, namesake, taken_name])
def test_right_controller_passes_all_seeds(scenario: Scenario) -> None:
    outcome = explore(making(Widgets), scenario, seeds=range(40), objects=[DEFINITION])
    assert outcome.runs == 41
    assert min(outcome.faults[kind] for kind in ("stale", "lost", "conflicts", "merged")) > 0


@pytest.mark.behaviour("C-96")
@pytest.mark.parametrize(("bug", "scenario", "wrong"), NEED_FAULTS)
def test_faults_reveal_bugs(bug: type[Widgets], scenario: Scenario, wrong: str) -> None:
    run(making(bug), scenario, objects=[DEFINITION])  # without faults, all is well
    with pytest.raises(AssertionError, match=wrong) as failure:
        explore(making(bug), scenario, seeds=range(100), objects=[DEFINITION])
    assert "To repeat this run" in failure.value.__notes__[0]


@pytest.mark.behaviour("C-96")
@pytest.mark.parametrize(("bug", "scenario", "wrong"), NEED_NONE)
def test_first_run_reveals_bugs(bug: type[Widgets], scenario: Scenario, wrong: str) -> None:
    with pytest.raises(AssertionError, match=wrong):
        run(making(bug), scenario, objects=[DEFINITION])


@pytest.mark.behaviour("C-150", "C-153")
def test_each_process_has_a_lifespan_and_background_tasks() -> None:
    story: list[str] = []

    @asynccontextmanager
    async def colours(manager: Manager) -> AsyncGenerator[str]:
        story.append("enters")
        yield "red"
        story.append("leaves")

    async def painting(request: Request[Any, str]) -> None:
        await paint(request, request.state)

    def make_manager(harness: Harness) -> Manager:
        maps = [Controller("painting", MAPS, painting)]
        manager = Manager("maps", maps, client=harness.transport, lifespan=colours)

        @manager.background(elected=True)
        async def reset(run: BackgroundRun[str]) -> None:
            await asyncio.sleep(60)
            story.append(f"resets {run.state}")
            await run.client.core.v1.configmaps.patch("default/a", {"data": {"colour": "grey"}})

        return manager

    async def scenario(harness: Harness) -> None:
        await one_map(harness)
        await harness.wait_for(MAPS, "default/a", lambda obj: obj["data"]["colour"] == "red")
        await harness.wait_for(MAPS, "default/a", lambda obj: obj["data"]["colour"] == "grey")
        await harness.settle()
        assert harness.objects(MAPS)[0]["data"] == {"colour": "red"}
        assert story == ["enters", "resets red"]
        await harness.restart()
        assert story == ["enters", "resets red", "leaves"]

    run(make_manager, scenario)
    assert story[:3] == ["enters", "resets red", "leaves"]
    assert story.count("enters") == story.count("leaves")


@pytest.mark.behaviour("C-154")
def test_background_task_that_fails_is_reported() -> None:
    def make_manager(harness: Harness) -> Manager:
        manager = Manager("maps", client=harness.transport)

        @manager.background
        async def reset(run: BackgroundRun) -> None:
            raise OSError("no such colour")

        return manager

    with pytest.raises(NotConverged, match=r"background task reset fails: OSError at harness/test_harness.py:\d+"):
        run(make_manager, one_map)
