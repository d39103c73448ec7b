"""What counts as a block of the event loop: no time in which the thread only waits for a processor."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.handlers.run_queue import Reading, RunQueue
from aioinformer.handlers.stalls import Stalls, Steps
from tests.support.limits import measure_blocks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Machine:
    """A clock, and what the kernel says of the thread: it runs, waits for a processor, or sleeps."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.now = 1000.0
        self._ran = self._waited = 0.0
        self._write()

    def run(self, seconds: float) -> None:
        self.now += seconds
        self._ran += seconds
        self._write()

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self._waited += seconds
        self._write()

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def _write(self) -> None:
        self.file.write_text(f"{int(self._ran * 1e9)} {int(self._waited * 1e9)} 17\n")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path / "schedstat")
    measure_blocks(monkeypatch, lambda: machine.now, str(machine.file))
    return machine


def blocks(*steps: Callable[[], Any]) -> list[float]:
    """Return the seconds of the steps of a task that are reported."""

    async def task() -> None:
        for step in steps:
            step()
            await asyncio.sleep(0)

    reported: list[float] = []
    for _ in Steps(task(), Stalls("it"), reported.append):
        pass
    return [round(each, 3) for each in reported]


def test_time_in_the_run_queue_is_no_block(machine: Machine) -> None:
    def busy_machine() -> None:
        machine.run(0.02)
        machine.wait(0.9)

    assert blocks(busy_machine, busy_machine) == []


@pytest.mark.parametrize("what", ["run", "sleep"])
def test_computing_and_sleeping_are_blocks(what: str, machine: Machine) -> None:
    def step() -> None:
        machine.wait(0.5)
        getattr(machine, what)(0.3)

    assert blocks(step, lambda: machine.wait(0.2), step) == [0.3, 0.3]


def test_what_was_waited_before_a_step_is_not_taken_off(machine: Machine) -> None:
    first = lambda: machine.run(0.01)  # noqa: E731 - its begin is the last reading before the second one
    assert blocks(first, lambda: machine.sleep(0.12)) == [0.12]
    waiting = lambda: machine.wait(0.04)  # noqa: E731
    assert blocks(first, waiting, lambda: machine.sleep(0.12)) == [0.12]


def test_reading_within_a_step_is_no_reading_for_it(machine: Machine) -> None:
    def called(argument: object) -> None:
        machine.run(0.01)

    timed = Stalls("it").timed(called, "a function", str)

    def step() -> None:
        machine.wait(0.5)
        timed(None)
        machine.sleep(0.05)

    assert blocks(step) == []


def test_waits_are_taken_off_functions_that_are_timed(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    def decode(seconds: float) -> None:
        machine.wait(0.5)
        machine.run(seconds)

    async def read() -> None:
        timed = Stalls("informer of pods").timed(decode, "decoder decode", lambda _: "shop/web")
        timed(0.05)
        timed(0.25)

    asyncio.run(read())
    assert [each.getMessage().partition("; ")[0] for each in caplog.records] == [
        "informer of pods: decoder decode blocked the event loop for 0.25 s with shop/web"
    ]


def test_function_in_another_thread_blocks_no_event_loop(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    decode = Stalls("informer of pods").timed(machine.run, "decoder decode", lambda _: "shop/web")

    async def read() -> None:
        await asyncio.to_thread(decode, 0.25)

    asyncio.run(read())
    assert caplog.messages == []


def test_without_the_file_all_time_counts(machine: Machine) -> None:
    machine.file.unlink()
    assert blocks(lambda: machine.sleep(0.3), lambda: machine.sleep(0.2)) == [0.3, 0.2]


def test_file_is_read_rarely(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[float] = []
    read = RunQueue.read

    def counted(queue: RunQueue, now: float) -> Reading:
        reads.append(now)
        return read(queue, now)

    monkeypatch.setattr(RunQueue, "read", counted)
    blocks(*[lambda: machine.run(0.001)] * 1000)
    assert 19 <= len(reads) <= 21
