"""Judge the figures of a soak run, and write those in benchmarks/results into docs/simulation.md:
`python -m tests.system.soak.page`.
"""

from __future__ import annotations

import json
from pathlib import Path
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


PROJECT = Path(__file__).resolve().parents[3]
RESULTS = PROJECT / "benchmarks" / "results"
PAGE = PROJECT / "docs" / "simulation.md"
PLOT = PROJECT / "docs" / "soak.svg"
TARGETS = ("soak-real", "soak-own")
#: The page has the figures between these lines.
_BEGIN, _END = "<!-- soak figures -->\n", "<!-- end of the soak figures -->\n"


def rows(figures: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of the table for one run."""
    found = verdict(figures)
    rests = figures["rests"]
    return [
        ("duration", f"{figures['seconds'] / 60:.0f} min"),
        ("writes", f"{figures['writes']:,}"),
        ("faults, kinds of faults", f"{found['faults']}, {len(figures['faults'])}"),
        ("informers started and stopped", f"{rests[-1]['visits']:,}"),
        ("changes of state", f"{rests[-1]['state_changes']:,}"),
        (
            "checkpoints, of these reached the state of the server",
            f"{found['checkpoints']}, {found['checkpoints_settled']}",
        ),
        ("longest time to reach it, including backoff in progress", f"{found['longest_to_settle']:.0f} s"),
        (
            "resident memory, first and last third after the warm-up",
            f"{found['rss_mib_early']}, {found['rss_mib_late']} MiB",
        ),
        (
            "objects of the garbage collector, first and last third",
            f"{found['objects_early']:,}, {found['objects_late']:,}",
        ),
        ("tasks at rest, minimum and maximum", f"{found['tasks_at_rest'][0]}, {found['tasks_at_rest'][-1]}"),
        (
            "sockets at rest, maximum, and number of watches",
            f"{found['sockets_at_rest'][-1]}, {len(figures['informers'])}",
        ),
        ("threads at rest, maximum", str(found["threads_at_rest"][-1])),
        ("invalid notifications and unhandled exceptions", str(len(found["lies"]))),
        ("tasks and sockets left at the end", f"{len(found['tasks_left'])}, {found['sockets_left']}"),
        ("share of a core", f"{found['cpu_share']:.1%}"),
    ]


def page(runs: list[dict[str, Any]]) -> str:
    """Return the text of the page with the figures of these runs."""
    before, _, rest = PAGE.read_text().partition(_BEGIN)
    table = ["| | " + " | ".join(run["target"] for run in runs) + " |", "|---|" + "--:|" * len(runs)]
    for line in zip(*map(rows, runs), strict=True):
        table.append(f"| {line[0][0]} | " + " | ".join(value for _, value in line) + " |")
    faults = [
        f"Faults of {run['target']}: " + ", ".join(f"{name} {count}" for name, count in run["faults"].items())
        for run in runs
    ]
    figures = "\n".join(table) + "\n\n" + ".\n\n".join(faults) + ".\n"
    return before + _BEGIN + figures + _END + rest.partition(_END)[2]


def plot(runs: list[dict[str, Any]]) -> str:
    """Return a plot of the resident memory over time, as SVG."""
    left, top, width, height = 60, 30, 600, 200
    series = {
        run["target"]: sorted((each["at"], each["rss_kib"] / 1024) for each in run["rests"] + run["samples"])
        for run in runs
    }
    latest = max(at for points in series.values() for at, _ in points)
    highest = 20 * (int(max(mib for points in series.values() for _, mib in points)) // 20 + 1)
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 280" role="img" '
        'font-family="system-ui, sans-serif" font-size="13" fill="#808080">',
        "<title>Memory of the process over time</title>",
        '<text x="0" y="16">MiB resident</text>',
    ]
    for mib in range(0, highest + 1, 20):
        y = top + height * (1 - mib / highest)
        parts.append(f'<line x1="{left}" y1="{y:.0f}" x2="{left + width}" y2="{y:.0f}" stroke="#80808055"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4:.0f}" text-anchor="end">{mib}</text>')
    for minutes in range(0, int(latest / 60) + 1, 10):
        x = left + width * minutes * 60 / latest
        parts.append(f'<text x="{x:.0f}" y="{top + height + 20}" text-anchor="middle">{minutes} min</text>')
    for (name, points), colour in zip(series.items(), ("#5c6bc0", "#ef6c00"), strict=False):
        path = " ".join(
            f"{left + width * at / latest:.1f},{top + height * (1 - mib / highest):.1f}" for at, mib in points
        )
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        x = left + 12 + 160 * list(series).index(name)
        parts.append(f'<text x="{x}" y="{top + height + 42}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    """Write the page and its plot."""
    runs = [json.loads((RESULTS / f"{name}.json").read_text()) for name in TARGETS]
    PAGE.write_text(page(runs))
    PLOT.write_text(plot(runs))


if __name__ == "__main__":
    main()
