"""Compare Widget controllers on a real API server: aioinformer, controller-runtime and kopf.

    AIOINFORMER_TEST_CLUSTER=../cluster python benchmarks/controllers_real.py
    AIOINFORMER_TEST_CLUSTER=../cluster python benchmarks/controllers_real.py --widgets 500 --only kopf

There are 10,000 Widgets with one ConfigMap each. Before each subject, etcd is brought to the same state. Each subject
starts three times, with four workers (kopf has one for each object):

1. with an empty reconciler;
2. with one that patches the status of each fifth Widget;
3. with the Widget controller. While none ran, each twentieth Widget was changed. Then 200 Widgets are created; and then
   the API server is restarted, and a Widget is changed.

After the restart, each Widget runs once more, and nothing is to be done. A program on aiohttp alone sends the requests
of the restart, too: what that costs is the server's, the library's and that of decoding (`floor_widgets.py`).

All processes share the cores of the machine, so all times contain the work of the API server and etcd. The API server
logs the requests of the subject. `--widgets` implies `--dry-run`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from controller_process import ControllerProcess
from harness import Question, run
from lone_events import has_uvloop
from peers import Peers
from servers import HERE, CannotServe
from widgets_cluster import COUNT, FOLDER, WIDGETS, Cluster, WidgetsCluster, changed_count, widget, written_count

if TYPE_CHECKING:
    from collections import Counter

    from harness import Figures, Measure
    from widgets_cluster import Sent

_WIDGETS, _NEW, _NEW_SIZE = 10_000, 200, 2
_CREATORS = 4
#: Seconds in which a controller may still send requests after its last one was needed.
_REST = 3.0
_PATIENCE = 300.0
_CHOSEN = "CONTROLLERS_WIDGETS"
_OWN, _RUNTIME, _KOPF = "aioinformer", "controller-runtime", "kopf"
_UVLOOP = "aioinformer, uvloop"
#: With its experimental option that reads of the cache wait for own writes.
_CONSISTENT = "controller-runtime, own writes"
#: The requests of a restart, and no framework.
_FLOOR = "aiohttp alone"
#: The files of the Widget controllers.
_PROGRAMS = {
    _OWN: HERE.parent / "examples" / "widgets.py",
    _UVLOOP: HERE.parent / "examples" / "widgets.py",
    _RUNTIME: HERE / "peers" / "controller_runtime" / "widgets.go",
    _CONSISTENT: HERE / "peers" / "controller_runtime" / "widgets.go",
    _KOPF: HERE / "peers" / "kopf_widgets.py",
}
_READS = frozenset({"get", "list", "watch"})


async def measure(url: str, *, subject: str, command: list[str]) -> Figures:
    """Measure one framework."""
    count = int(os.environ[COUNT])
    figures: Figures = {"lines": lines(_PROGRAMS[subject])}
    async with Cluster(Path(os.environ[FOLDER])) as cluster:
        await cluster.seed(count)
        figures |= await _measure_empty([*command, "empty"], count)
        figures |= await _measure_writes([*command, "write"], count)
        await cluster.seed(count)
        await cluster.seed(count, changed=True)
        figures |= await _measure_widgets(cluster, [*command, "widgets"], count, runs_again=subject != _KOPF)
    return figures


async def measure_floor(url: str) -> Figures:
    """Measure the restart of the program on aiohttp alone."""
    count = int(os.environ[COUNT])
    async with Cluster(Path(os.environ[FOLDER])) as cluster:
        await cluster.seed(count)
        await cluster.seed(count, changed=True)
        command = [sys.executable, str(HERE / "floor_widgets.py")]
        cluster.sent()
        version, begin = await cluster.version(), perf_counter()
        async with asyncio.timeout(_PATIENCE), ControllerProcess(command, before=0, measured=count) as controller:
            return await _measure_restart(cluster, controller, count, version, begin)


def lines(program: Path) -> int:
    """Return the lines of a program without empty ones, comments and docstrings."""
    found, inside = 0, False
    for line in program.read_text().splitlines():
        text = line.strip()
        quotes = text.count('"""')
        if inside or text.startswith('"""'):
            inside = inside if quotes != 1 else not inside
        elif text and not text.startswith(("#", "//")):
            found += 1
    return found


async def _measure_empty(command: list[str], count: int) -> Figures:
    begin = perf_counter()
    async with ControllerProcess(command, before=1, measured=count - 1) as controller:
        report = await controller.report()
        return {
            "empty_start_seconds": max(report.times) - begin,
            "empty_per_second": (count - 1) / (max(report.times) - min(report.times)),
            "empty_us": report.cpu / (count - 1) * 1e6,
        }


async def _measure_writes(command: list[str], count: int) -> Figures:
    async with ControllerProcess(command, before=1, measured=count - 1) as controller:
        report = await controller.report()
    written = [
        at for key, at in zip(report.keys, report.times, strict=True) if key.partition("/")[2].startswith("write-")
    ]
    assert len(written) == written_count(count), written
    return {
        "write_per_second": len(written) / (max(written) - min(report.times)),
        "write_us": report.cpu / len(written) * 1e6,
    }


async def _measure_widgets(cluster: Cluster, command: list[str], count: int, *, runs_again: bool) -> Figures:
    cluster.sent()
    version, begin = await cluster.version(), perf_counter()
    async with asyncio.timeout(_PATIENCE), ControllerProcess(command, before=0, measured=count) as controller:
        figures = await _measure_restart(cluster, controller, count, version, begin)
        if runs_again:  # kopf has no call for that
            await controller.expect(0, count)
            await controller.again()
            figures["unchanged_us"] = (await controller.report()).cpu / count * 1e6
        figures |= await _measure_new(cluster, controller)
        figures |= await _measure_outage(cluster, controller)
    return figures


async def _measure_restart(
    cluster: Cluster, controller: ControllerProcess, count: int, version: str, begin: float
) -> Figures:
    """Measure until all Widgets have run, and those that had changed are converged."""
    wait = cluster.wait_until_converged(changed_count(count), version, labelSelector="group=changed")
    await controller.meanwhile(wait)
    converged = perf_counter()
    report = await controller.report()
    usage = await controller.usage()
    figures = {
        "restart_seconds": max(converged, *report.times) - begin,
        "restart_cpu_seconds": usage.cpu,
        "rss_mib": usage.rss_kib / 1024,
    }
    await asyncio.sleep(_REST)
    return {**figures, **_counted("restart", cluster.sent())}


async def _measure_new(cluster: Cluster, controller: ControllerProcess) -> Figures:
    """Create Widgets, and wait until the controller has done its work for them."""
    version, begin = await cluster.version(), perf_counter()
    names = iter(range(_NEW))

    async def create() -> None:
        for number in names:
            path = f"{WIDGETS}/namespaces/team-{number % 10}/widgets"
            await cluster.request("POST", path, widget(f"new-{number}", _NEW_SIZE, "new"))

    async with asyncio.TaskGroup() as group:
        for _ in range(_CREATORS):
            group.create_task(create())
        wait = cluster.wait_until_converged(_NEW, version, labelSelector="group=new")
        group.create_task(controller.meanwhile(wait))
    seconds = perf_counter() - begin
    await asyncio.sleep(_REST)
    return {"new_per_second": _NEW / seconds, "new_requests": cluster.sent().total() / _NEW}


async def _measure_outage(cluster: Cluster, controller: ControllerProcess) -> Figures:
    """Restart the API server, and change a Widget when it is ready again."""
    before = await controller.usage()
    cluster.sent()
    await cluster.fault("restart-apiserver")
    begin = perf_counter()
    changed = {"spec": {"size": _NEW_SIZE + 1}}
    answer = await cluster.request("PATCH", f"{WIDGETS}/namespaces/team-0/widgets/new-0", changed)
    version = answer["metadata"]["resourceVersion"]
    await controller.meanwhile(cluster.wait_until_converged(1, version, fieldSelector="metadata.name=new-0"))
    seconds = perf_counter() - begin
    await asyncio.sleep(_REST)
    runs = (await controller.usage()).runs - before.runs
    return {"outage_seconds": seconds, "outage_runs": runs, **_counted("outage", cluster.sent())}


def _counted(phase: str, sent: Counter[Sent]) -> Figures:
    shown = ", ".join(f"{count} {' '.join(map(str, each))}" for each, count in sent.most_common())
    print(f"    {phase}: {shown}", file=sys.stderr, flush=True)
    by_verb = {verb: sum(n for each, n in sent.items() if each.verb == verb) for verb in _READS}
    return {
        f"{phase}_requests": sent.total(),
        f"{phase}_writes": sent.total() - sum(by_verb.values()),
        **{f"{phase}_{verb}": number for verb, number in sorted(by_verb.items())},
    }


def own() -> dict[str, Measure]:
    """Return the measurements that need no peer."""
    command = [sys.executable, str(HERE / "own_controllers.py")]
    found: dict[str, Measure] = {_OWN: partial(measure, subject=_OWN, command=command)}
    if has_uvloop:
        found[_UVLOOP] = partial(measure, subject=_UVLOOP, command=[*command, "--uvloop"])
    return {**found, _FLOOR: measure_floor}


def others() -> dict[str, Measure]:
    """Return the measurements of the peers, which must be built."""
    peers = Peers()
    runtime = peers.controller_runtime_program
    return {
        _RUNTIME: partial(measure, subject=_RUNTIME, command=[runtime]),
        _CONSISTENT: partial(measure, subject=_CONSISTENT, command=[runtime, "-own-writes"]),
        _KOPF: partial(measure, subject=_KOPF, command=peers.kopf_program),
    }


def question() -> Question:
    """Return the question with the peers that can be built."""
    peers = Peers()
    peers.go(0)  # seeds etcd
    built = {_RUNTIME, _CONSISTENT} if peers.controller_runtime() else set()
    built |= {_KOPF} if peers.kopf() else set()
    here = str(HERE / "controllers_real.py")
    subjects: dict[str, Any] = dict(own())
    subjects |= {name: [sys.executable, here, "--subject", name, "--url", "URL"] for name in others() if name in built}
    count = int(os.environ.get(_CHOSEN, _WIDGETS))
    return Question(
        "controllers_real",
        "How do Widget controllers compare on a real API server?",
        subjects,
        rounds=1,
        seconds=500.0,
        patience=400.0,
        notes=peers.notes,
        serve=WidgetsCluster(os.environ.get("AIOINFORMER_TEST_CLUSTER", ""), peers.driver, count),
    )


def main() -> None:
    if "--subject" in sys.argv:  # the process of a single measurement does not build the peers
        run(Question("controllers_real", "", {**own(), **others()}))
        return
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--widgets", help="the number of Widgets")
    chosen, rest = parser.parse_known_args()
    if chosen.widgets:
        os.environ[_CHOSEN] = chosen.widgets
        rest.append("--dry-run")
    sys.argv[1:] = rest
    try:
        run(question())
    except CannotServe as error:
        sys.exit(f"not measured: {error}")


if __name__ == "__main__":
    main()
