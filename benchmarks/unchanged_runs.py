"""Compare what a run costs that changes nothing: with aioinformer, and with controller-runtime.

    python benchmarks/unchanged_runs.py --rounds 1

There are 500 Widgets. Each has its finalizer, two ConfigMaps and its status, which its controller has written before.
Then each Widget runs again, in turns: the controller reads the Widget and its ConfigMaps from the cache, compares, and
sends nothing. The figure is the median of the turns: the CPU time of the process for each run. In between, a reconciler
that does nothing runs in the same way. It shows what the queue and the framework do around a run.

Each measurement has a server for tests of its own. controller-runtime reads its cache with `Get` and compares with
`CreateOrPatch`; with own writes, these reads wait until the cache has what the controller has written.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import aiohttp
import yaml
from controller_process import ControllerProcess
from controllers import OWN_PROGRAM
from harness import Offer, Question, Requirement, Server, on_core, run
from peers import Peers
from servers import HERE, client_environment

if TYPE_CHECKING:
    from harness import Figures, Measure

_WIDGETS, _CHILDREN = 500, 2
#: Turns that are not measured, and those that are.
_BEFORE, _TURNS = 2, 15
#: Seconds without a run after which the events of all writes have arrived.
_QUIET = 1.0
_CREATORS = 8
_DEFINITION = HERE.parent / "examples" / "widgets.yaml"
_OWN, _RUNTIME, _CONSISTENT = "aioinformer", "controller-runtime", "controller-runtime, own writes"


class OwnServers:
    """Stands for a server that all subjects share: each measurement has its own."""

    def __init__(self) -> None:
        self.environment = client_environment()

    def __enter__(self) -> str:
        return ""

    def __exit__(self, *exc: object) -> None:
        pass


async def measure(_: str, *, command: list[str]) -> Figures:
    """Measure one program."""
    with Server(Offer(pods=0, program="api_server.py")) as url, tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "kubeconfig"
        config.write_text(json.dumps(_kubeconfig(url)))
        await _create_widgets(url)
        environment = {**client_environment(), "KUBECONFIG": str(config)}
        figures: Figures = {}
        for mode, figure in (("widgets", "unchanged_us"), ("empty", "unchanged_empty_us")):
            program = on_core(0, [*command, mode])
            process = ControllerProcess(program, before=0, measured=_WIDGETS, environment=environment)
            async with process as controller:
                await controller.report()
                figures[figure] = await _measure_turns(controller)
    return figures


async def _measure_turns(controller: ControllerProcess) -> float:
    before = -1
    runs = (await controller.usage()).runs
    while before != runs:
        before = runs
        await asyncio.sleep(_QUIET)
        runs = (await controller.usage()).runs
    turns = []
    for _ in range(_BEFORE + _TURNS):
        await controller.expect(0, _WIDGETS)
        await controller.again()
        turns.append((await controller.report()).cpu / _WIDGETS * 1e6)
    if (await controller.usage()).runs != before + _WIDGETS * (_BEFORE + _TURNS):
        raise RuntimeError("a write has caused further runs")
    return median(turns[_BEFORE:])


def _kubeconfig(url: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": url}}],
        "users": [{"name": "controller", "user": {}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "controller"}}],
        "current-context": "test",
    }


async def _create_widgets(url: str) -> None:
    definitions = f"{url}/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    widgets = f"{url}/apis/example.com/v1/namespaces/default/widgets"
    numbers = iter(range(_WIDGETS))
    async with aiohttp.ClientSession(raise_for_status=True) as session:

        async def create() -> None:
            for number in numbers:
                body = {"metadata": {"name": f"widget-{number}"}, "spec": {"size": _CHILDREN}}
                body |= {"apiVersion": "example.com/v1", "kind": "Widget"}
                async with session.post(widgets, json=body):
                    pass

        async with session.post(definitions, json=yaml.safe_load(_DEFINITION.read_text())):
            pass
        await asyncio.gather(*(create() for _ in range(_CREATORS)))


def own() -> dict[str, Measure]:
    """Return the measurement of aioinformer."""
    return {_OWN: partial(measure, command=OWN_PROGRAM)}


def others() -> dict[str, Measure]:
    """Return the measurements of controller-runtime, which must be built."""
    program = Peers().controller_runtime_program
    return {
        _RUNTIME: partial(measure, command=[program]),
        _CONSISTENT: partial(measure, command=[program, "-own-writes"]),
    }


def question() -> Question:
    """Return the question with the peers that can be built."""
    peers = Peers()
    subjects: dict[str, Any] = dict(own())
    if peers.controller_runtime():
        here = str(HERE / "unchanged_runs.py")
        subjects |= {name: [sys.executable, here, "--subject", name, "--url", "URL"] for name in others()}
    return Question(
        "unchanged_runs",
        "What does a run cost that changes nothing?",
        subjects,
        requirements=[Requirement("a run that changes nothing, CPU µs", _OWN, "unchanged_us", 100.0)],
        rounds=5,
        seconds=200.0,
        notes=peers.notes,
        serve=OwnServers(),
    )


if __name__ == "__main__":
    # The process of a single measurement does not build the peers.
    run(Question("unchanged_runs", "", {**own(), **others()}) if "--subject" in sys.argv else question())
