"""What does the pipeline cost beside the simplest loop? The informer and the floor, side by side in one run.

    python benchmarks/pipeline.py [--rounds 5] [--pods 20000] [--events 20000]

Each measurement is a process of its own against a fresh load server; the clients take turns, so that a machine that
changes its speed changes it for both. Medians, and ratios of what belongs to the same round. Where the system allows
it, server and client have a core each. The result goes to `benchmarks/results/pipeline.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

_HERE = Path(__file__).parent
_FIGURES = ("watch_us_per_event", "watch_events_per_second", "sync_cpu_seconds", "sync_wall_seconds", "kib_per_object")


def _on_core(core: int, command: list[str]) -> list[str]:
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return ["taskset", "-c", str(cores[core]), *command] if len(cores) > core else command


def measure(client: str, pods: int, events: int, options: list[str]) -> dict[str, Any]:
    """One client against a server of its own."""
    environment = {**os.environ, "PYTHONPATH": str(_HERE.parent)}
    arguments = ["--pods", str(pods), "--events", str(events)]
    command = _on_core(1, [sys.executable, str(_HERE / "load_server.py"), *arguments])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            command = [sys.executable, str(_HERE / "client.py"), client, url, "--events", str(events), *options]
            done = subprocess.run(
                _on_core(0, command), stdout=subprocess.PIPE, text=True, check=True, env=environment, timeout=600
            )
            report: dict[str, Any] = json.loads(done.stdout)
            return report
        finally:
            server.terminate()


def over_idle(report: dict[str, Any], phase: str, which: str) -> float:
    """How much longer the loop was held in a phase than while it was idle, in milliseconds."""
    return max(0.0, float(report[f"{phase}_lateness_ms"][which]) - float(report["idle_lateness_ms"][which]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--events", type=int, default=20_000)
    arguments = parser.parse_args()
    result: dict[str, Any] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "pods": arguments.pods,
        "events": arguments.events,
        "rounds": arguments.rounds,
        "variants": {},
    }
    for variant, options in {"streaming list": [], "pages": ["--pages"]}.items():
        rounds = [
            {client: measure(client, arguments.pods, arguments.events, options) for client in ("floor", "informer")}
            for _ in range(arguments.rounds)
        ]
        row: dict[str, Any] = {
            client: {figure: round(median(each[client][figure] for each in rounds), 3) for figure in _FIGURES}
            for client in ("floor", "informer")
        }
        row["informer / floor"] = {
            figure: round(median(each["informer"][figure] / each["floor"][figure] for each in rounds), 3)
            for figure in _FIGURES
        }
        row["informer, loop held over idle, ms"] = {
            f"{phase} {which}": round(median(over_idle(each["informer"], phase, which) for each in rounds), 2)
            for phase in ("sync", "watch")
            for which in ("p99", "max", "held_p99", "held_max")
        }
        row["rounds"] = rounds
        result["variants"][variant] = row
        print(f"{variant}:")
        for name, figures in row.items():
            if name != "rounds":
                print(f"  {name}: " + ", ".join(f"{figure} {value}" for figure, value in figures.items()))
    (_HERE / "results").mkdir(exist_ok=True)
    (_HERE / "results" / "pipeline.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
