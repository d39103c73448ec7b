"""The terminal screen of the demo."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from aioinformer.cli.demo.view import InformerRow, PodRow, Snapshot, duration, layout


def snapshot(pods: int = 3, lines: int = 2, *, reason: str = "", staleness: float | None = 0.5) -> Snapshot:
    return Snapshot(
        title="the title",
        pods=[
            PodRow(f"ns/pod-{number}", "Running", "1/1", "node-1", str(number), 65, number) for number in range(pods)
        ],
        lines=[f"\x1b[32mline {number}\x1b[0m" for number in range(lines)],
        informers=[
            InformerRow("pods", "backing_off" if reason else "watching", reason, pods, 12, 3.25, staleness),
            InformerRow("nodes", "watching", "", 1, 1, 0.0, 100.0),
        ],
    )


def drawn(shown: Snapshot, width: int = 100, height: int = 30) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(layout(shown, height))
    return capture.get().splitlines()


def test_screen_shows_pods_lines_and_informers() -> None:
    lines = drawn(snapshot())
    assert lines[0].startswith("the title")
    (pod,) = [line for line in lines if "pod-1" in line]
    assert pod.split() == ["ns/pod-1", "Running", "1/1", "node-1", "1", "1m05s", "1.0s", "ago"]
    assert any("line 1" in line for line in lines)
    assert " ".join(lines[-2].split()) == "● pods watching 3 objects 12 events 3.2/s last event 0.5s ago"
    assert lines[-1].split()[-3:] == ["event", "1m40s", "ago"]
    assert any("backing off: 503" in line for line in drawn(snapshot(reason="503 again")))
    assert any("no event yet" in line for line in drawn(snapshot(staleness=None)))


@pytest.mark.parametrize("height", [12, 24, 60])
def test_screen_fits_the_terminal(height: int) -> None:
    lines = drawn(snapshot(pods=200, lines=200), height=height)
    assert len(lines) == height
    assert lines[-1].startswith("● nodes")


def test_screen_counts_hidden_pods() -> None:
    lines = drawn(snapshot(pods=200), height=30)
    shown = sum("ns/pod-" in line for line in lines)
    assert any(f"and {200 - shown} more" in line for line in lines)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0.0s"), (0.04, "0.0s"), (9.94, "9.9s"), (10, "10s"), (61, "1m01s"), (3661, "1h01m")],
)
def test_duration_is_short(seconds: float, text: str) -> None:
    assert duration(seconds) == text
