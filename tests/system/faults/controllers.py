"""Runs Widget controllers through the faults of the server, in virtual time, with leader election.

The manager has the controller of examples/widgets.py, and one whose children have generated names: nothing but its
cache keeps it from making a second one. Widgets change all the time.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import yaml

from aioinformer.controller import Controller, LeaderElection, Manager, QueueOptions
from aioinformer.harness import Plan, run
from aioinformer.models import core_v1
from aioinformer.testing import FAULTS
from tests.system.faults.matrix import ROWS, Row

EXAMPLES = Path(__file__).parents[3] / "examples"
sys.path.insert(0, str(EXAMPLES))

import widgets as example  # noqa: E402

if TYPE_CHECKING:
    from aioinformer.controller import Request
    from aioinformer.harness import Harness
    from aioinformer.transport import HttpRequest, Response, Transport

#: The renew deadline of leader election by default, in seconds.
RENEW_DEADLINE = 10.0
_FINALIZER = "example.com/register"
_LEASES = {"resources": "leases.coordination.k8s.io"}
_WRITES = ("create", "update", "patch", "delete")

DEFINITIONS = [
    each
    for each in yaml.safe_load_all((EXAMPLES / "widgets.yaml").read_text())
    if each["kind"] == "CustomResourceDefinition"
]
#: The faults of informers but those of sockets, which need real ones; and faults of writes and of the Lease.
CONTROLLER_ROWS = [
    *(row for row in ROWS if FAULTS[row.fault].sort != "act" and row.fault != "black_hole"),
    # Longer than the header timeout of lists, and over before a second watch is silent.
    Row("connections stay open without further data", "black_hole", {}, "watch_close", 55.0),
    Row("writes are answered with 500", "server_error", {"verbs": _WRITES}),
    Row("writes are answered with 503 and `Retry-After: 1`", "unavailable", {"verbs": _WRITES}),
    Row("writes are answered with 429 and `Retry-After: 2`", "throttle", {"verbs": _WRITES, "retry_after": 2}),
    Row("answers to writes are a second late", "latency", {"verbs": _WRITES}),
    Row("writes are never answered", "black_hole", {"verbs": _WRITES}, lasts=40.0),
    Row("lists and gets come from an old replica", "stale_replica", {"back": 5}, "expired"),
    Row("500 for the Lease", "server_error", _LEASES, lasts=30.0),
    Row("403 for the Lease", "forbidden", _LEASES, lasts=30.0),
    Row("the Lease is never answered", "black_hole", _LEASES, lasts=40.0),
    Row("the Lease is answered 4 s late", "latency", {**_LEASES, "seconds": 4.0}, lasts=40.0),
]


@dataclass
class Sent:
    """A request of the manager: when it was sent, and when and how it was answered."""

    at: float
    method: str
    path: str
    answered: float = float("inf")
    status: int = 0

    @property
    def is_lease(self) -> bool:
        """Whether it is about the Lease."""
        return "/leases" in self.path


@dataclass(eq=False)
class Recorder:
    """Notes the requests of a transport."""

    transport: Transport
    sent: list[Sent] = field(default_factory=list)

    async def request(self, request: HttpRequest) -> Response:
        """Send a request, as a `Transport`."""
        clock = asyncio.get_running_loop().time
        entry = Sent(clock(), request.method, request.path)
        self.sent.append(entry)
        response = await self.transport.request(request)
        entry.answered, entry.status = clock(), response.status
        return response


@dataclass
class Figures:
    """The measurement of one row.

    Attributes:
        title: of the row.
        writes: that reached the server during the fault and until all had converged, without Leases and Events.
        terms: of leadership in all.
        caught_up: seconds from the end of the fault until nothing changed any more.
        latest: the longest time from the sending of the last successful renewal to the sending of a write.
    """

    title: str
    writes: int = 0
    terms: int = 0
    caught_up: float = 0.0
    latest: float = 0.0


def measure(row: Row, plan: Plan | None = None) -> Figures:
    """Run the controllers through a fault, and check them all the time. Raise AssertionError if a check fails."""
    figures = Figures(row.title)
    recorders: list[Recorder] = []

    def make_manager(harness: Harness) -> Manager:
        example.register = harness.world.setdefault("register", {})
        recorders.append(Recorder(harness.transport))
        # While the cache of widgets is behind, the garbage collector deletes the Secret of a widget that is gone at
        # once, and the next run creates it again. Without latency, that would go on for ever at one virtual time.
        pace = QueueOptions(min_interval=0.1)
        tokens = Controller("tokens", example.WIDGETS, make_token, owns=[core_v1.SECRETS], queue=pace)
        election = LeaderElection("widgets")
        return Manager("widgets", [example.widgets, tokens], client=recorders[-1], leader_election=election)

    async def scenario(harness: Harness) -> None:
        random, loop = Random(row.title), asyncio.get_running_loop()
        harness.always(check_finalizers)
        harness.always(check_tokens)
        for name in "abc":
            change(harness, random, name)
        await harness.settle()
        before, scope = len(harness.writes), harness.server.fault(row.fault, **row.params)
        await scope
        if row.first:
            await harness.server.fault(row.first, times=1 if FAULTS[row.first].sort == "stream" else 2)
        end, due = loop.time() + row.lasts, 0.0
        while loop.time() < end:
            if loop.time() >= due:
                change(harness, random, random.choice("abcdef"))
                due = loop.time() + 0.2
            harness.scheduler.until = min(due, end)
            await harness.step()
        await scope.end()
        over = loop.time()
        await harness.settle()
        figures.caught_up = round(max([over, *(each.at for each in harness.writes)]) - over, 1)
        figures.writes = len(harness.writes) - before
        check_all(harness)

    run(make_manager, scenario, plan, objects=DEFINITIONS, patience=1800.0)
    sent = [entry for recorder in recorders for entry in recorder.sent]
    figures.latest = round(latest_write(sent), 2)
    figures.terms = terms_of(sent)
    return figures


async def make_token(request: Request[example.Widget]) -> None:
    """Give each widget one Secret."""
    if request.object is not None and not request.owned(core_v1.SECRETS):
        metadata = {"generateName": f"{request.name}-", "namespace": request.namespace}
        owner = {**request.reference.to_dict(), "controller": True}
        owner.pop("namespace", None)
        await request.client.core.v1.secrets.create({"metadata": {**metadata, "ownerReferences": [owner]}})


def change(harness: Harness, random: Random, name: str) -> None:
    """Create, change or delete a widget, as a user."""
    found = {each["metadata"]["name"]: each for each in harness.objects(example.WIDGETS)}
    if name not in found:
        names = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}}
        harness.server.create(example.WIDGETS, {**names, "spec": {"size": random.randint(0, 3)}})
    elif "deletionTimestamp" not in found[name]["metadata"]:
        if random.random() < 0.3:
            harness.server.delete(example.WIDGETS, name)
        else:
            spec = {"size": random.randint(0, 3), "colour": random.choice(("red", "blue"))}
            harness.server.patch(example.WIDGETS, name, {"spec": spec})


def check_finalizers(harness: Harness) -> None:
    """A widget in the register has the finalizer that removes it from there."""
    kept = {
        each["metadata"]["name"]
        for each in harness.objects(example.WIDGETS)
        if _FINALIZER in each["metadata"].get("finalizers", ())
    }
    assert harness.world["register"].keys() <= kept, "a finalizer was lost"


def check_tokens(harness: Harness) -> None:
    """No widget has two Secrets."""
    owners = [each["metadata"]["ownerReferences"][0]["uid"] for each in harness.objects("secrets")]
    assert len(owners) == len(set(owners)), "a child was created twice"


def check_all(harness: Harness) -> None:
    """Everything is as the widgets demand."""
    widgets = harness.objects(example.WIDGETS)
    assert all(each["status"]["size"] == each["spec"]["size"] for each in widgets)
    assert all(each["status"]["observedGeneration"] == each["metadata"]["generation"] for each in widgets)
    sizes = {each["metadata"]["name"]: each["spec"]["size"] for each in widgets}
    assert harness.world["register"] == sizes
    children = {each["metadata"]["name"]: each["data"]["colour"] for each in harness.objects("configmaps")}
    assert children == {
        f"{each['metadata']['name']}-{number}": each["spec"]["colour"]
        for each in widgets
        for number in range(each["spec"]["size"])
    }
    owners = {each["metadata"]["ownerReferences"][0]["uid"] for each in harness.objects("secrets")}
    assert owners == {each["metadata"]["uid"] for each in widgets}


def latest_write(sent: list[Sent]) -> float:
    """Return the longest time from the sending of the last successful renewal to the sending of a write."""
    latest = 0.0
    for write in sent:
        if write.method == "GET" or write.is_lease or "/events" in write.path:
            continue
        renewed = [
            each.at
            for each in sent
            if each.is_lease and each.method != "GET" and each.status in (200, 201) and each.answered <= write.at
        ]
        assert renewed, "a write without leadership"
        latest = max(latest, write.at - max(renewed))
    return latest


def terms_of(sent: list[Sent]) -> int:
    """Return how often a Lease was obtained anew: at first, or after a pause of more than the renew deadline."""
    times = sorted(each.at for each in sent if each.is_lease and each.method != "GET" and each.status in (200, 201))
    return sum(time - before > RENEW_DEADLINE for before, time in zip([-1e9, *times], times, strict=False))
