"""What `watch` prints, in which order, and when it has seen enough."""

from __future__ import annotations

import asyncio
import json
from itertools import count
from typing import Any

from aioinformer.cli.output.lines import JsonFormat
from aioinformer.cli.watch.printer import ExitCondition, Printer
from tests.cli.test_cli_lines import thing


class Told:
    """A recorder, and what it has printed."""

    def __init__(self, **options: Any) -> None:
        self.lines: list[dict[str, Any]] = []
        ticks = count()
        self.recorder = Printer(
            JsonFormat(), lambda line: self.lines.append(json.loads(line)), clock=lambda: float(next(ticks)), **options
        )

    @property
    def short(self) -> list[str]:
        return [f"{line['event']} {line.get('key', '')}".strip() for line in self.lines]


def test_synced_stands_directly_behind_the_last_initial_add_though_nobody_has_said_so_yet() -> None:
    told = Told(version=lambda: "7")
    told.recorder.on_add(thing("1"), True)
    told.recorder.on_update(thing("1"), thing("2"))
    told.recorder.on_add(thing("3", name="b"), True)
    told.recorder.has_synced = lambda: True
    told.recorder.on_update(thing("2"), thing("4"))
    told.recorder.print_synced()
    assert told.short == ["add ns/a", "update ns/a", "add ns/b", "synced", "update ns/a"]
    assert told.lines[3] == {"event": "synced", "count": 2, "resourceVersion": "7"}


def test_the_version_of_synced_is_the_first_one_that_was_known() -> None:
    versions = iter(["", "7", "8"])
    told = Told(version=lambda: next(versions))
    told.recorder.on_add(thing("1"), True)
    told.recorder.on_add(thing("2", name="b"), True)
    told.recorder.print_synced()
    assert told.lines[-1]["resourceVersion"] == "7"


def test_only_what_follows_synced_counts_towards_the_end() -> None:
    ends: list[str] = []
    told = Told(goal=ExitCondition(lambda: ends.append("enough"), exit_after=2))
    told.recorder.on_add(thing("1"), True)
    told.recorder.on_update(thing("1"), thing("2"))
    told.recorder.print_synced()
    told.recorder.on_update(thing("2"), thing("3"))
    told.recorder.on_delete(thing("4"))
    told.recorder.on_add(thing("5"), False)
    assert told.short == ["add ns/a", "update ns/a", "synced", "update ns/a", "delete ns/a"]
    assert ends == ["enough"]


def test_where_synced_is_enough_nothing_follows_it() -> None:
    ends: list[str] = []
    told = Told(goal=ExitCondition(lambda: ends.append("enough"), until_synced=True))
    told.recorder.on_add(thing("1"), True)
    told.recorder.has_synced = lambda: True
    told.recorder.on_update(thing("1"), thing("2"))
    told.recorder.print_synced()
    assert told.short == ["add ns/a", "synced"]
    assert ends == ["enough"]


def test_the_figures_count_what_was_printed_and_time_what_follows_synced() -> None:
    told = Told()
    recorder = told.recorder
    recorder.on_add(thing("1"), True)
    recorder.print_synced()
    assert (recorder.first_change, recorder.last_change) == (None, None)
    recorder.on_update(thing("1"), thing("2"))
    recorder.on_delete(thing("2"))
    assert (recorder.adds, recorder.updates, recorder.deletes) == (1, 1, 1)
    assert recorder.first_change is not None
    assert recorder.last_change == recorder.first_change + 1


async def test_settling_tells_what_led_to_the_store_and_nothing_that_came_later() -> None:
    told = Told(remember=True)
    recorder = told.recorder
    recorder.on_add(thing("1"), True)
    recorder.on_add(thing("2", name="b"), True)
    recorder.print_synced()
    # The store holds a at version 4 and c, and has lost b; the handler has heard of none of that yet.
    settling = asyncio.create_task(recorder.settle([thing("4"), thing("6", name="c")]))
    await asyncio.sleep(0)
    recorder.on_update(thing("1"), thing("3"))
    recorder.on_update(thing("3"), thing("4"))
    recorder.on_delete(thing("5", name="b"))
    recorder.on_update(thing("4"), thing("9"))
    assert not settling.done()
    recorder.on_add(thing("6", name="c"), False)
    recorder.on_update(thing("6", name="c"), thing("10", name="c"))
    await settling
    recorder.on_add(thing("11", name="d"), False)
    assert told.short[3:] == ["update ns/a", "update ns/a", "delete ns/b", "add ns/c"]


async def test_settling_is_immediate_where_all_has_been_told() -> None:
    told = Told(remember=True)
    told.recorder.on_add(thing("1"), True)
    async with asyncio.timeout(5):
        await told.recorder.settle([thing("1")])


def test_a_closed_recorder_prints_nothing() -> None:
    told = Told()
    told.recorder.close()
    told.recorder.on_add(thing("1"), True)
    told.recorder.print_synced()
    assert told.lines == []
