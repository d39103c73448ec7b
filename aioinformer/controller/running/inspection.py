"""What probes, metrics and the debug page read of a controller that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.metrics.counters import RUN_BOUNDS
from aioinformer.metrics.statistics import ControllerStatistics
from aioinformer.workqueue.waiting import loop_time

if TYPE_CHECKING:
    from aioinformer.controller.report import ControllerSnapshot
    from aioinformer.controller.running.active import ActiveController


def snapshot(active: ActiveController) -> ControllerSnapshot:
    """Return the state of a controller, as plain data: names and counts, no contents. Thread-safe."""
    now = active.queue.snapshot()
    return {
        "name": active.name,
        "resource": active.controller.resource.gvr,
        "phase": active.phase,
        "waits_for": active.inputs.waits_for() + (active.catch_up.waits_for() if active.permitted else []),
        "workers": active.controller.workers,
        "running": [
            {
                "key": str(each.run.key),
                "seconds": now.time - each.run.started,
                "attempt": each.run.attempt,
                "causes": [str(cause) for cause in each.run.causes],
                "threads": [] if each.threads is None else list(each.threads.running.values()),
            }
            for each in tuple(active.attempts.values())
        ],
        "settling": [str(key) for key in tuple(active.gate.settling)],
        "ready": now.ready,
        "delayed": now.delayed,
        "gone": now.gone,
        "parked": {str(key): each.reason for key, each in now.parked.items() if each.kind != "result"},
        "waiting": {str(key): each.reason for key, each in now.parked.items() if each.kind == "result"},
        "failing": {str(key): f"{each.attempts} times, {each.error}" for key, each in now.failing.items()},
        "failing_keys": now.failing_keys,
        "results": dict(active.results),
        "undecodable": {}
        if active.controller.undecodable_handler
        else {key: reason for key, (reason, _) in active.inputs.undecodable.copy().items()},
        "loops": active.loops.detected,
        "braked": active.loops.braked_at(now.time),
        "input_errors": {name: count for name, count in active.inputs.counts("errors").items() if count},
        "lost_changes": {name: count for name, count in active.inputs.counts("lost").items() if count},
    }


def statistics(active: ActiveController) -> ControllerStatistics:
    """Return the numbers of a controller for metrics. Thread-safe."""
    parked, failing, oldest = active.queue.problems()
    waiting = parked.pop("result", 0)
    return ControllerStatistics(
        name=active.name,
        phase=active.phase,
        workers=active.controller.workers,
        active=len(active.attempts),
        results=active.results.copy(),
        worked=active.queue.durations.snapshot().within(RUN_BOUNDS),
        answered=active.queue.answered.snapshot(),
        parked=parked,
        waiting=waiting,
        failing=failing,
        oldest=oldest,
        loops=active.loops.detected,
        braked=len(active.loops.braked_at(loop_time())),
        own_writes=len(active.own),
        write_waits=active.gate.waits.snapshot(),
        input_errors=active.inputs.counts("errors"),
        lost_changes=active.inputs.counts("lost"),
        longest_failure=active.queue.longest_failure(),
        longest_write_wait=active.gate.longest_wait(),
    )
