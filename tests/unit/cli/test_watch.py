"""The command `watch`: its arguments, what it prints, in which order, until when, and its measurements."""

from __future__ import annotations

import asyncio
import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from aioinformer.cli.output.lines import JsonFormat
from aioinformer.cli.targets import Target, parse_targets
from aioinformer.cli.watch.measurements import LoopLag, max_rss_kib
from aioinformer.cli.watch.printer import ExitCondition, Printer
from aioinformer.errors import UsageError
from tests.support.stalling_loop import stall
from tests.unit.cli.things import thing


@pytest.mark.parametrize(
    ("text", "name", "targets"),
    [
        ("pods", None, [("pods", "")]),
        ("pods/web-1", None, [("pods", "web-1")]),
        ("pod", "web-1", [("pod", "web-1")]),
        ("v1/pods", None, [("v1/pods", "")]),
        ("v1/pods/web-1", None, [("v1/pods", "web-1")]),
        ("v1/pods", "v1", [("v1/pods", "v1")]),
        ("pods/v1", None, [("pods", "v1")]),
        ("apps/v1/deployments", None, [("apps/v1/deployments", "")]),
        ("apps/v1/deployments/web", None, [("apps/v1/deployments", "web")]),
        ("example.com/stable/widgets", None, [("example.com/stable/widgets", "")]),
        ("pods,services, widgets.example.com", None, [("pods", ""), ("services", ""), ("widgets.example.com", "")]),
        ("pods,services", "web", [("pods", "web"), ("services", "web")]),
        ("pods/a,pods/b,pods/a", None, [("pods", "a"), ("pods", "b")]),
    ],
)
def test_targets_are_parsed_as_by_kubectl(text: str, name: str | None, targets: list[tuple[str, str]]) -> None:
    assert parse_targets(text, name) == tuple(Target(*target) for target in targets)


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("", None, "'' is not the name of a resource"),
        ("pods,,services", None, "'' is not the name of a resource"),
        ("pods/", None, "'' is not the name of an object"),
        ("pods", "", "'' is not the name of an object"),
        ("pods", "a/b", "'a/b' is not the name of an object"),
        ("pods/a", "b", "already names an object"),
        ("a/b/c/d", None, "is not the name of a resource"),
    ],
)
def test_invalid_targets_are_refused(text: str, name: str | None, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        parse_targets(text, name)


def test_named_object_becomes_a_field_selector() -> None:
    assert Target("pods", "a=b").field_selector("status.phase=Running") == "metadata.name=a\\=b,status.phase=Running"
    assert Target("pods").field_selector("a=b") == "a=b"


class Output:
    """A printer and its lines."""

    def __init__(self, **options: Any) -> None:
        self.lines: list[dict[str, Any]] = []
        ticks = count()
        self.printer = Printer(
            JsonFormat(), lambda line: self.lines.append(json.loads(line)), clock=lambda: float(next(ticks)), **options
        )

    @property
    def short(self) -> list[str]:
        return [f"{line['event']} {line.get('key', '')}".strip() for line in self.lines]


def test_synced_follows_the_last_initial_add_directly() -> None:
    output = Output(version=lambda: "7")
    output.printer.on_add(thing("1"), True)
    output.printer.on_update(thing("1"), thing("2"))
    output.printer.on_add(thing("3", name="b"), True)
    output.printer.has_synced = lambda: True
    output.printer.on_update(thing("2"), thing("4"))
    output.printer.print_synced()
    assert output.short == ["add ns/a", "update ns/a", "add ns/b", "synced", "update ns/a"]
    assert output.lines[3] == {"event": "synced", "count": 2, "resourceVersion": "7"}


def test_synced_has_the_version_of_the_list() -> None:
    versions = iter(["", "7", "8"])
    output = Output(version=lambda: next(versions))
    output.printer.on_add(thing("1"), True)
    output.printer.on_add(thing("2", name="b"), True)
    output.printer.print_synced()
    assert output.lines[-1]["resourceVersion"] == "7"


def test_exit_after_counts_notifications_after_synced() -> None:
    ends: list[str] = []
    output = Output(condition=ExitCondition(lambda: ends.append("met"), exit_after=2))
    output.printer.on_add(thing("1"), True)
    output.printer.on_update(thing("1"), thing("2"))
    output.printer.print_synced()
    output.printer.on_update(thing("2"), thing("3"))
    output.printer.on_delete(thing("4"))
    output.printer.on_add(thing("5"), False)
    assert output.short == ["add ns/a", "update ns/a", "synced", "update ns/a", "delete ns/a"]
    assert ends == ["met"]


def test_until_synced_prints_nothing_after_synced() -> None:
    ends: list[str] = []
    output = Output(condition=ExitCondition(lambda: ends.append("met"), until_synced=True))
    output.printer.on_add(thing("1"), True)
    output.printer.has_synced = lambda: True
    output.printer.on_update(thing("1"), thing("2"))
    output.printer.print_synced()
    assert output.short == ["add ns/a", "synced"]
    assert ends == ["met"]


async def test_notifications_before_a_dump_lead_exactly_to_it() -> None:
    output = Output(track_objects=True)
    printer = output.printer
    printer.on_add(thing("1"), True)
    printer.on_add(thing("2", name="b"), True)
    printer.print_synced()
    # The cache has a at version 4 and c, but no b; the handler has not been called for any of these changes.
    catching_up = asyncio.create_task(printer.print_up_to([thing("4"), thing("6", name="c")]))
    await asyncio.sleep(0)
    printer.on_update(thing("1"), thing("3"))
    printer.on_update(thing("3"), thing("4"))
    printer.on_delete(thing("5", name="b"))
    printer.on_update(thing("4"), thing("9"))
    assert not catching_up.done()
    printer.on_add(thing("6", name="c"), False)
    printer.on_update(thing("6", name="c"), thing("10", name="c"))
    await catching_up
    printer.on_add(thing("11", name="d"), False)
    assert output.short[3:] == ["update ns/a", "update ns/a", "delete ns/b", "add ns/c"]


async def test_dump_does_not_wait_if_all_was_printed() -> None:
    output = Output(track_objects=True)
    output.printer.on_add(thing("1"), True)
    async with asyncio.timeout(5):
        await output.printer.print_up_to([thing("1")])


def test_closed_printer_prints_nothing() -> None:
    output = Output()
    output.printer.close()
    output.printer.on_add(thing("1"), True)
    output.printer.print_synced()
    assert output.lines == []


def test_percentiles_of_the_recorded_lag() -> None:
    lag = LoopLag()
    for milliseconds in range(1, 101):
        lag.note(milliseconds / 1000)
    assert lag.lateness() == {"p50": 50.0, "p99": 99.0, "max": 100.0}


def test_no_lag_before_the_first_tick() -> None:
    assert LoopLag().lateness() is None


async def test_blocked_event_loop_is_measured() -> None:
    lag = LoopLag()
    lag.start()
    await asyncio.sleep(0.01)
    stall(0.05)
    await asyncio.sleep(0.01)
    lag.stop()
    lateness = lag.lateness()
    assert lateness is not None
    assert lateness["max"] >= 45


def test_peak_memory_is_that_of_this_process() -> None:
    peak = max_rss_kib()
    assert peak is not None
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * 4
    assert peak >= resident // 2
