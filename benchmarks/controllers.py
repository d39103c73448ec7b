"""Compare controllers on pods of 5.8 KB: CPU time of an event, and latency, until an empty reconciler runs.

    python benchmarks/controllers.py --only aioinformer --only "controller-runtime, protobuf" --rounds 1

The load server speaks TLS, and sends each event by a write of its own. Each event changes the resourceVersion and an
annotation of a pod. Each framework runs with its default predicates: aioinformer compares the content of old and new
object, controller-runtime and kopf have no predicate. Each has four workers, except kopf, whose workers belong to
objects.

As fast as it goes, the server sends one event for each of the pods, or of some of them, several times; the next events
come when the reconciler has run for all, so no two events are merged into one run. At the even rate, latency is the
time from the server's write to the run for that pod, by the clock that both processes share. If many events came
together or the process had to wait for a core, the machine was busy: then the rate is measured again, at most twice.
An idle event loop on the same core shows what the machine adds.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import aiohttp
from controller_process import ControllerProcess
from harness import Offer, Question, Requirement, run
from lone_events import has_uvloop
from peers import Peers
from servers import HERE
from ticker import Ticker, quantile

if TYPE_CHECKING:
    from controller_process import Report
    from harness import Figures, Measure

PODS = 10_000
_RATE = 1_000
#: The key of the annotation that changes.
ANNOTATION = "example.com/changed"
#: The order in which the load server changes pods.
_STRIDE = 7919
#: The rate is measured again if one of the shares is not below this.
_BUSY, _ATTEMPTS = 0.1, 3
OWN_PROGRAM = [sys.executable, str(HERE / "own_controllers.py")]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many events a subject receives.

    Attributes:
        flood: events at once, as fast as the subject reads them.
        floods: how often, after one that is not measured.
        before, measured: events at the even rate.
    """

    flood: int = PODS
    floods: int = 3
    before: int = 500
    measured: int = 6_000


#: kopf takes more than a millisecond for each event, so events at the even rate wait longer and longer.
_FEW = Sizes(flood=4_000, floods=1, measured=3_000)


async def measure(url: str, *, command: list[str], sizes: Sizes = Sizes(), mode: str = "pods") -> Figures:
    """Measure one program."""
    process = ControllerProcess([*command, mode, url], before=1, measured=PODS - 1)
    async with process as controller, aiohttp.ClientSession() as session:
        first = await controller.report()
        figures: Figures = {"initial_us": first.cpu / (PODS - 1) * 1e6}
        cpu = wall = 0.0
        for number in range(sizes.floods + 1):
            await controller.expect(0, sizes.flood)
            await _send(session, url, 0, sizes.flood)
            report = await controller.report()
            if number:
                cpu += report.cpu
                wall += max(report.times) - min(report.times)
        figures["cpu_us_flood"] = cpu / sizes.flood / sizes.floods * 1e6
        figures["reconciles_per_second_flood"] = sizes.flood * sizes.floods / wall
        for _ in range(_ATTEMPTS):
            found = await _measure_rate(controller, session, url, sizes)
            if max(found["uneven_share_1000"], found.get("waited_share_1000", 0.0)) < _BUSY:
                break
        figures |= found
        figures["rss_mib"] = (await controller.usage()).rss_kib / 1024
    return figures


async def _measure_rate(
    controller: ControllerProcess, session: aiohttp.ClientSession, url: str, sizes: Sizes
) -> Figures:
    async with Ticker() as idle:
        await asyncio.sleep(1)
    await controller.expect(sizes.before, sizes.measured)
    waited = _waited(controller.pid)
    await _send(session, url, _RATE, sizes.before + sizes.measured)
    report = await controller.report()
    waited = _waited(controller.pid) - waited
    async with session.get(f"{url}/times") as response:
        sent: list[float] = await response.json()
    delays = _delays(report, sent)[sizes.before :]
    close = sum(sent[at] - sent[at - 1] < 0.5 / _RATE for at in range(sizes.before, len(sent)))
    quiet, p99 = idle.summary(), quantile(delays, 0.99)
    return {
        "cpu_us_1000": report.cpu / sizes.measured * 1e6,
        "p50_ms_1000": quantile(delays, 0.5),
        "p99_ms_1000": p99,
        "idle_ms_p99": quiet["p99"],
        "over_idle_ms_p99": p99 - quiet["p99"],
        "uneven_share_1000": close / sizes.measured,
        "waited_share_1000": waited / (max(report.times) - sent[0]),
    }


def _delays(report: Report, sent: list[float]) -> list[float]:
    """Return the milliseconds from event to run, in the order of the events. The end of a pod's name is its number."""
    runs = {int(key[-6:], 16): time for key, time in zip(report.keys, report.times, strict=True)}
    return [(runs[index * _STRIDE % PODS] - at) * 1000 for index, at in enumerate(sent)]


def _waited(pid: int) -> float:
    """Return the seconds in which the main thread waited for a core, 0 if the system does not count them."""
    try:
        with open(f"/proc/{pid}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


async def _send(session: aiohttp.ClientSession, url: str, rate: int, events: int) -> None:
    async with session.post(f"{url}/go?rate={rate}&events={events}", raise_for_status=True):
        pass


_JSON, _PROTOBUF, _KOPF = "controller-runtime, JSON", "controller-runtime, protobuf", "kopf"


def own() -> dict[str, Measure]:
    """Return the measurements of aioinformer."""
    found: dict[str, Measure] = {"aioinformer": partial(measure, command=OWN_PROGRAM)}
    if has_uvloop:
        found["aioinformer, uvloop"] = partial(measure, command=[*OWN_PROGRAM, "--uvloop"])
    return found


def others() -> dict[str, Measure]:
    """Return the measurements of the peers, which must be built."""
    peers = Peers()
    program = peers.controller_runtime_program
    return {
        _JSON: partial(measure, command=[program, "-json"]),
        _PROTOBUF: partial(measure, command=[program]),
        _KOPF: partial(measure, command=peers.kopf_program, sizes=_FEW),
    }


def question() -> Question:
    """Return the question with the peers that can be built."""
    peers = Peers()
    peers.go(0)  # encodes protobuf
    built = {_JSON, _PROTOBUF} if peers.controller_runtime() else set()
    built |= {_KOPF} if peers.kopf() else set()
    here = str(HERE / "controllers.py")
    subjects: dict[str, Any] = dict(own())
    subjects |= {name: [sys.executable, here, "--subject", name, "--url", "URL"] for name in others() if name in built}
    requirements = [
        Requirement(f"CPU of an event {how}, ratio to {what}", "aioinformer", figure, at_most, base)
        for how, figure in (("as fast as it goes", "cpu_us_flood"), ("at 1,000/s", "cpu_us_1000"))
        for what, at_most, base in (
            ("controller-runtime on JSON", 1 / 2, _JSON),
            ("controller-runtime on protobuf", 1.0, _PROTOBUF),
            ("kopf", 1 / 6, _KOPF),
        )
    ]
    return Question(
        "controllers",
        "How much CPU time does an event cost until a reconciler runs, and how late does it run?",
        subjects,
        Offer(PODS, event_by_event=True, protobuf_tool=peers.protobuf_tool, annotation=ANNOTATION),
        [
            *requirements,
            Requirement("p99 at 1,000/s above that of an idle loop, ms", "aioinformer", "over_idle_ms_p99", 3.0),
        ],
        rounds=3,
        seconds=300.0,
        notes=peers.notes,
    )


if __name__ == "__main__":
    # The process of a single measurement does not build the peers.
    run(Question("controllers", "", {**own(), **others()}) if "--subject" in sys.argv else question())
