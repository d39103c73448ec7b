"""Judge the figures of a soak run."""

from __future__ import annotations

from statistics import mean
from typing import Any

#: By how much the resident memory may grow from the first third to the last, after the warm-up, due to allocators.
_GROWTH = 1.03
#: By how much the number of objects of the garbage collector may grow.
_OBJECTS = 1.05
#: The share of a run that is its warm-up.
_WARM_UP = 0.2
#: Memory is not judged in runs shorter than this, in seconds: they consist of warm-up.
_LONG_ENOUGH = 1800


def verdict(figures: dict[str, Any]) -> dict[str, Any]:
    """Return the figures that are judged, and whether all are good as `passed`."""
    rests, left = figures["rests"], figures["left"]
    warm = rests[int(len(rests) * _WARM_UP) :]
    third = max(1, len(warm) // 3)
    first, last = warm[:third], warm[-third:]
    memory = [round(mean(rest["rss_kib"] for rest in part)) for part in (first, last)]
    objects = [round(mean(rest["objects"] for rest in part)) for part in (first, last)]
    found: dict[str, Any] = {
        "checkpoints": len(rests),
        "checkpoints_settled": sum(rest["settled_after"] is not None for rest in rests),
        "longest_to_settle": max((rest["settled_after"] or 0.0 for rest in rests), default=0.0),
        "faults": sum(figures["faults"].values()),
        "rss_mib_early": round(memory[0] / 1024, 1),
        "rss_mib_late": round(memory[1] / 1024, 1),
        "rss_kib_per_hour": round(_slope([(rest["at"], rest["rss_kib"]) for rest in warm]) * 3600),
        "objects_early": objects[0],
        "objects_late": objects[1],
        "tasks_at_rest": sorted({rest["tasks"] for rest in warm}),
        "sockets_at_rest": sorted({rest["sockets"] for rest in warm}),
        "threads_at_rest": sorted({rest["threads"] for rest in warm}),
        "cpu_share": round(left["cpu_seconds"] / figures["seconds"], 3),
        "tasks_left": left["tasks_left"],
        "sockets_left": left["sockets"],
        "lies": left["lies"],
    }
    found["passed"] = (
        found["checkpoints_settled"] == len(rests)
        and (memory[1] <= memory[0] * _GROWTH or figures["seconds"] < _LONG_ENOUGH)
        and objects[1] <= objects[0] * _OBJECTS
        and len(found["tasks_at_rest"]) == 1
        # A watch that waits for its backoff has no socket.
        and found["sockets_at_rest"][-1] <= len(figures["informers"])
        and not (left["tasks_left"] or left["sockets"] or left["lies"])
    )
    return found


def _slope(points: list[tuple[float, float]]) -> float:
    """Return the slope of the linear regression through the points."""
    middle_x, middle_y = mean(x for x, _ in points), mean(y for _, y in points)
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / spread if spread else 0.0
