"""Run one controller of aioinformer, and answer `controller_process.py` by lines on stdin and stdout.

python own_controllers.py [--uvloop] pods URL             an empty reconciler for the pods of a load server
python own_controllers.py [--uvloop] observed URL         the same, with metrics, a debug page and max_staleness
python own_controllers.py [--uvloop] empty|write|widgets  for the Widgets of the cluster of KUBECONFIG
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from peers.runs import Runs
from prometheus_client import CollectorRegistry
from servers import HERE

from aioinformer import HttpTransport, Resource
from aioinformer.controller import Manager, Request
from aioinformer.models import core_v1
from aioinformer.prometheus import PrometheusMetrics

if TYPE_CHECKING:
    from aioinformer.controller import Controller, Result

_WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", kind="Widget", subresources=("status",))


async def run_pods(runs: Runs, url: str, **options: Any) -> None:
    async with HttpTransport(url) as transport:
        manager = Manager("pods", client=transport, **options)
        if options:
            manager.debug_app()

        @manager.controller(core_v1.PODS)
        async def pods(request: Request[Any]) -> None:
            runs.note(str(request.key))

        await manager.run(signals=False)


async def run_empty(runs: Runs) -> None:
    manager = Manager("widgets")

    @manager.controller(_WIDGETS)
    async def empty(request: Request[Any]) -> None:
        runs.note(str(request.key))

    runs.again = partial(manager.enqueue, empty)
    await manager.run(signals=False)


async def run_write(runs: Runs) -> None:
    manager = Manager("widgets")

    @manager.controller(_WIDGETS)
    async def write(request: Request[Any]) -> None:
        if request.name.startswith("write-"):
            client = request.client.resource(_WIDGETS)
            await client.status.patch(request.name, {"status": {"size": 7}}, namespace=request.namespace)
        runs.note(str(request.key))

    await manager.run(signals=False)


async def run_widgets(runs: Runs) -> None:
    """Run the manager of the example, without leader election: the last process may have kept the Lease."""
    sys.path.insert(0, str(HERE.parent / "examples"))
    manager: Manager = importlib.import_module("widgets").manager
    manager.leader_election = None
    for controller in manager.controllers.values():
        _note_runs(controller, runs)
        runs.again = partial(manager.enqueue, controller)
    await manager.run(signals=False)


def _note_runs(controller: Controller[Any], runs: Runs) -> None:
    inner = controller.reconcile

    async def reconcile(request: Request[Any]) -> Result | None:
        result = await inner(request)
        runs.note(str(request.key))
        return result

    controller.reconcile = reconcile


async def _main(mode: str, url: str) -> None:
    runs = Runs()
    runs.begin()
    match mode:
        case "pods":
            await run_pods(runs, url)
        case "observed":
            metrics = PrometheusMetrics(CollectorRegistry())
            await run_pods(runs, url, metrics=metrics, max_staleness=60.0)
        case "empty":
            await run_empty(runs)
        case "write":
            await run_write(runs)
        case "widgets":
            await run_widgets(runs)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=("pods", "observed", "empty", "write", "widgets"))
    parser.add_argument("url", nargs="?", default="")
    parser.add_argument("--uvloop", action="store_true")
    arguments = parser.parse_args()
    loop_factory = None
    if arguments.uvloop:
        import uvloop

        loop_factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(_main(arguments.mode, arguments.url))


if __name__ == "__main__":
    main()
