"""What controllers and managers report: snapshots, and what happened at the stop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

import msgspec

from aioinformer.informer.snapshots import FactorySnapshot
from aioinformer.ring import RingSnapshot


class RunningSnapshot(TypedDict):
    """An attempt that runs.

    Attributes:
        key: of the object.
        seconds: since it began.
        attempt: 1 for the first.
        causes: why it runs.
        threads: the functions that it runs in threads.
    """

    key: str
    seconds: float
    attempt: int
    causes: list[str]
    threads: list[str]


class ControllerSnapshot(TypedDict):
    """The state of one controller.

    Attributes:
        name: of the controller.
        resource: "apps/v1/deployments".
        phase: "syncing", "standby", "catching up", "working", "stopping", or "failed".
        waits_for: the inputs that have not synced, or may lack writes of the former leader, and why.
        workers: how many keys are reconciled at a time.
        running: the attempts that run.
        settling: keys whose own writes are not in the caches yet.
        ready: how many requests wait for a worker.
        delayed: how many requests wait for their time.
        gone: how many keys of a standby have no object any more: they run last if it takes over soon.
        parked: keys that wait for a change because of an error, and why.
        waiting: keys that wait for a change on purpose, and the reason that `Result(parked=…)` gave.
        failing: keys whose last attempt did not succeed, how often, and the last reason, or the place and the text of
            the last error; a hundred of them.
        failing_keys: how many keys there are whose last attempt did not succeed.
        results: how many attempts there were by result: "success", "again", "retry_after", "conflict", "error",
            "timeout", "stale", "parked", "cancelled".
        undecodable: objects of the primary that cannot be decoded, and why; none if the controller has a handler for
            them.
        loops: how many runs have triggered themselves.
        braked: keys whose runs are 1 to 30 s apart because their own writes cause them in a loop, and why.
        input_errors: inputs whose functions have raised, and how often.
        lost_changes: inputs for whose changes no keys were found in the end, and how many objects are concerned.
    """

    name: str
    resource: str
    phase: str
    waits_for: list[str]
    workers: int
    running: list[RunningSnapshot]
    settling: list[str]
    ready: int
    delayed: int
    gone: int
    parked: dict[str, str]
    waiting: dict[str, str]
    failing: dict[str, str]
    failing_keys: int
    results: dict[str, int]
    undecodable: dict[str, str]
    loops: int
    braked: dict[str, str]
    input_errors: dict[str, int]
    lost_changes: dict[str, int]


class BackgroundSnapshot(TypedDict):
    """The state of a background task.

    Attributes:
        name: of the task.
        elected: whether only the leader runs it.
        phase: "standby" before its first run and while another replica leads, "running", "restarting", "ended" once it
            has returned, or "stopped".
        seconds: how long it has been in this phase.
        restarts: how often it was restarted since the start of the manager.
        failure: the last error, with its type, place and text, without credentials; "" if the task has not failed, or
            has run for ten seconds since.
    """

    name: str
    elected: bool
    phase: str
    seconds: float
    restarts: int
    failure: str


class ManagerSnapshot(TypedDict):
    """The state of a manager.

    Attributes:
        name: of the manager.
        running: whether it was started and has not stopped.
        leader: whether it leads; None without leader election.
        election: what is wrong with the Lease of the election; "" for nothing.
        ring: the ring as this replica sees it; None without one.
        controllers: the controllers by name.
        failed: the controllers that have failed, for good or until their restart, and why.
        lifespan: "entering", "entered", "leaving", or "" before and after that; None without one.
        background: the background tasks by name.
        webhooks: what the admission functions wait for; None without functions.
        informers: the informers; None before the start.
    """

    name: str
    running: bool
    leader: bool | None
    election: str
    ring: RingSnapshot | None
    controllers: dict[str, ControllerSnapshot]
    failed: dict[str, str]
    lifespan: str | None
    background: dict[str, BackgroundSnapshot]
    webhooks: list[str] | None
    informers: FactorySnapshot | None


def idle_snapshot(name: str) -> ManagerSnapshot:
    """Return the state of a manager that does not run."""
    return ManagerSnapshot(
        name=name,
        running=False,
        leader=None,
        election="",
        ring=None,
        controllers={},
        failed={},
        lifespan=None,
        background={},
        webhooks=None,
        informers=None,
    )


class ControllerReport(msgspec.Struct, frozen=True):
    """How the stop of one controller went.

    Attributes:
        finished: the keys whose attempts ended by themselves after the stop had begun.
        cancelled: the keys whose attempts were cancelled, and how many seconds they had run.
        abandoned: the keys whose attempts ignored the cancellation and still run, and for how many seconds they have.
        threads: the functions that still run in threads, as "key: function".
        queued: how many requests were waiting.
        parked: how many keys were parked.
    """

    finished: tuple[str, ...] = ()
    cancelled: dict[str, float] = {}
    abandoned: dict[str, float] = {}
    threads: tuple[str, ...] = ()
    queued: int = 0
    parked: int = 0


class StopReport(msgspec.Struct, frozen=True):
    """How the stop of a manager went.

    Attributes:
        reason: why it stopped: "signal SIGTERM", "stop()", "the block ended", or a failure.
        seconds: how long the stop took.
        controllers: the reports of the controllers, by name.
        others: what else has ignored its cancellation and still runs: background tasks, and the lifespan.
    """

    reason: str
    seconds: float
    controllers: Mapping[str, ControllerReport]
    others: tuple[str, ...] = ()

    @property
    def abandoned(self) -> list[str]:
        """What still runs: attempts, as "controller: key", and `others`."""
        attempts = [f"{name}: {key}" for name, each in self.controllers.items() for key in each.abandoned]
        return [*attempts, *self.others]

    def __str__(self) -> str:
        reports = self.controllers.values()
        counts = (
            (sum(len(each.finished) for each in reports), "finished"),
            (sum(len(each.cancelled) for each in reports), "cancelled"),
            (len(self.abandoned), "abandoned"),
            (sum(each.queued for each in reports), "left in queues"),
        )
        what = ", ".join(f"{count} {word}" for count, word in counts if count)
        return f"stopped within {self.seconds:.1f} s because of {self.reason}: {what or 'no attempt was running'}"
