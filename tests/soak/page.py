"""Writes docs/soak.md from the figures in benchmarks/results: `python -m tests.soak.page`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.soak.verdict import verdict

PROJECT = Path(__file__).resolve().parent.parent.parent
RESULTS = PROJECT / "benchmarks" / "results"
PAGE = PROJECT / "docs" / "soak.md"
PLOT = PROJECT / "docs" / "soak.svg"
TARGETS = ("soak-real", "soak-own")

_HEAD = """\
# Soak

Informers of one collection in every form (both queues, every tier of storage, streams and pages), each with handlers:
quick, slow, raising, on a thread, told again by resyncs. Every four seconds a handler joins for a while, and another
informer comes and goes. Somebody writes all the time, and something goes wrong every few seconds. About every two
minutes the writing stops: all caches and all handlers must arrive at what the server holds; then everything is counted
*at rest*, where a leak has no excuse. The informers have a process of their own.

`make soak DURATION=1h TARGET=own` does it with the API server for tests, `TARGET=real` with a
[kube-apiserver](testing.md) that can also be told to `pause` and `resume`, and its etcd likewise. The figures are in
`benchmarks/results/`.

![Memory of the process over the time](soak.svg)

"""


def rows(figures: dict[str, Any]) -> list[tuple[str, str]]:
    """What is said of one run."""
    said = verdict(figures)
    rests = figures["rests"]
    return [
        ("duration", f"{figures['seconds'] / 60:.0f} min"),
        ("writes", f"{figures['writes']:,}"),
        ("faults, kinds of them", f"{said['faults']}, {len(figures['faults'])}"),
        ("informers that came and went", f"{rests[-1]['visits']:,}"),
        ("changes of state", f"{rests[-1]['state_changes']:,}"),
        ("checkpoints, of them arrived at the truth", f"{said['checkpoints']}, {said['checkpoints_settled']}"),
        ("longest until the truth, with whatever backoff was under way", f"{said['longest_to_settle']:.0f} s"),
        ("resident, first and last third after the warm-up", f"{said['rss_mib_early']}, {said['rss_mib_late']} MiB"),
        ("objects of the garbage collector, likewise", f"{said['objects_early']:,}, {said['objects_late']:,}"),
        ("tasks at rest, fewest and most", f"{said['tasks_at_rest'][0]}, {said['tasks_at_rest'][-1]}"),
        ("sockets at rest, most, of so many watches", f"{said['sockets_at_rest'][-1]}, {len(figures['informers'])}"),
        ("threads at rest, most", str(said["threads_at_rest"][-1])),
        ("told and untrue, or nobody's exception", str(len(said["lies"]))),
        ("tasks and sockets left at the end", f"{len(said['tasks_left'])}, {said['sockets_left']}"),
        ("share of a core", f"{said['cpu_share']:.1%}"),
    ]


def page(runs: list[dict[str, Any]]) -> str:
    """The page."""
    table = ["| | " + " | ".join(run["target"] for run in runs) + " |", "|---|" + "--:|" * len(runs)]
    for line in zip(*map(rows, runs), strict=True):
        table.append(f"| {line[0][0]} | " + " | ".join(value for _, value in line) + " |")
    faults = [
        f"Faults of {run['target']}: " + ", ".join(f"{name} {count}" for name, count in run["faults"].items())
        for run in runs
    ]
    return _HEAD + "\n".join(table) + "\n\n" + ".\n\n".join(faults) + ".\n"


def plot(runs: list[dict[str, Any]]) -> str:
    """Resident memory at rest and under way, over the time."""
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
        "<title>Memory of the process over the time</title>",
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
    """Writes the page and its plot."""
    runs = [json.loads((RESULTS / f"{name}.json").read_text()) for name in TARGETS]
    PAGE.write_text(page(runs))
    PLOT.write_text(plot(runs))


if __name__ == "__main__":
    main()
