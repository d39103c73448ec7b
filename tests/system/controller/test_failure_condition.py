"""The condition that shows failures to programs: by a field manager of its own, and without a run for its change."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import Condition
from aioinformer.backoff import BackoffOptions
from aioinformer.cli.controllers.needs import needs
from aioinformer.controller import Controller, Manager, QueueOptions, Request, TerminalError, Watch, set_status
from aioinformer.controller.predicates import object_changed
from aioinformer.errors import OptionError
from tests.support.bench import WIDGETS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.bench import Bench

QUICK = QueueOptions(backoff=BackoffOptions(initial=0.02, factor=1.0, jitter=0.0))


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(50):
        while not condition():  # noqa: ASYNC110 - the server changes it
            await asyncio.sleep(0.01)


def conditions_of(widget: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["type"]: each for each in (widget.get("status") or {}).get("conditions") or ()}


class Failing:
    """A reconciler that sets a condition, and fails for a while. Attributes: how often it ran; whether it fails."""

    def __init__(self, error: Callable[[], Exception] = lambda: RuntimeError("the DNS server said no")) -> None:
        self.runs = 0
        self.fails = True
        self.error = error

    async def __call__(self, request: Request[Any]) -> None:
        self.runs += 1
        if request.object is None:
            return
        await set_status(request, [Condition("Ready", "True", "AllThere", "")])
        if self.fails:
            raise self.error()


@pytest.mark.behaviour("C-144")
async def test_condition_says_that_an_object_fails_and_works_again(bench: Bench) -> None:
    failing, other = Failing(), Failing()
    other.fails = False
    seen: list[list[str]] = []

    async def watching(request: Request[Any]) -> None:
        seen.append([str(each) for each in request.causes])

    controllers = [
        Controller("it", WIDGETS, failing, queue=QUICK, when=object_changed),
        Controller("watching", WIDGETS, watching, watches=[Watch(WIDGETS, to=lambda each: each)]),
    ]
    transport = bench.server.url
    async with Manager("it", controllers, client=transport, failure_condition="Reconciled") as manager:
        await until(lambda: "Reconciled" in conditions_of(bench.widget()))
        widget = bench.widget()
        found = conditions_of(widget)["Reconciled"]
        assert (found["status"], found["reason"]) == ("False", "ReconcileFailed")
        assert "controller it: 3 attempts have failed; it is retried: RuntimeError at " in found["message"]
        assert conditions_of(widget)["Ready"]["status"] == "True"
        [fields] = [each for each in widget["metadata"]["managedFields"] if each["manager"] == "it-failures"]
        assert fields["subresource"] == "status"

        version, runs = widget["metadata"]["resourceVersion"], failing.runs
        await until(lambda: failing.runs > runs + 20)
        assert bench.widget()["metadata"]["resourceVersion"] == version, "it is written once"
        assert manager._session is not None
        assert not manager._session.controllers["it"].active.own.recorded, "no run waits for it"
        causes = len(seen)
        manager.enqueue(controllers[1], "default/web")
        await until(lambda: len(seen) > causes)
        await asyncio.sleep(0.2)
        assert conditions_of(bench.widget())["Reconciled"]["status"] == "False", (
            "the other controller works, not this one"
        )
        causes = len(seen)

        failing.fails = False
        await until(lambda: conditions_of(bench.widget())["Reconciled"]["status"] == "True")
        runs = failing.runs
        await asyncio.sleep(0.3)
        assert failing.runs == runs, "its change runs no reconciler"
        assert len(seen) == causes, "nor that of another controller"
        assert conditions_of(bench.widget())["Reconciled"]["reason"] == "ReconcileSucceeded"


@pytest.mark.behaviour("C-144")
async def test_parked_object_has_the_condition_and_the_next_manager_corrects_it(bench: Bench) -> None:
    failing = Failing(lambda: TerminalError("password=hunter2 is wrong"))
    controller = Controller("it", WIDGETS, failing, queue=QUICK)
    transport = bench.server.url
    async with Manager("it", [controller], client=transport, failure_condition="Reconciled"):
        await until(lambda: "Reconciled" in conditions_of(bench.widget()))
        await asyncio.sleep(0.2)
        assert failing.runs <= 2, "the change of the condition runs no parked key"
    found = conditions_of(bench.widget())["Reconciled"]
    assert found["message"] == "controller it: parked until an input changes: password=<redacted> is wrong"
    failing.fails = False
    async with Manager("it", [controller], client=transport, failure_condition="Reconciled"):
        await until(lambda: conditions_of(bench.widget())["Reconciled"]["status"] == "True")


@pytest.mark.behaviour("C-144")
async def test_object_that_works_has_no_condition_and_a_dry_run_writes_none(bench: Bench) -> None:
    failing = Failing()
    controller = Controller("it", WIDGETS, failing, queue=QUICK)
    transport = bench.server.url
    async with Manager("it", [controller], client=transport, failure_condition="Reconciled", dry_run=True):
        await until(lambda: failing.runs > 5)
    failing.fails = False
    async with Manager("it", [controller], client=transport, failure_condition="Reconciled"):
        await until(lambda: "Ready" in conditions_of(bench.widget()))
        await asyncio.sleep(0.1)
    assert "Reconciled" not in conditions_of(bench.widget())


def test_unknown_condition_is_refused() -> None:
    with pytest.raises(OptionError, match="failure_condition must be the type of a condition such as 'Reconciled'"):
        Manager("it", failure_condition="not a type")


@pytest.mark.behaviour("C-144")
def test_roles_have_the_right_to_patch_the_status() -> None:
    controller = Controller("it", WIDGETS, Failing(), writes={})
    rules = {str(each) for each in needs(Manager("it", [controller], failure_condition="Reconciled"))}
    assert "patch widgets/status.example.com in all namespaces" in rules
    assert "create, patch events in all namespaces" in rules
    assert not any("widgets/status" in str(each) for each in needs(Manager("it", [controller])))
