"""Run benchmarks: one machine, one load server, subjects that alternate, and medians.

A benchmark is a `Question`: what the load server offers, the subjects that are measured, and the requirements for their
figures. `run` starts one load server and measures each subject once a round, in a process of its own. All subjects
therefore see the same changes in the speed of the machine, and ratios compare figures of the same round. If the system
allows it, server and client each have a core. `run` writes the figures to `benchmarks/results/`, with the number of
rounds, the machine and the date, unless `--only` or `--dry-run` is given.

A round starts only if it is likely to end within the time limit of the question; there is at least one round. Subjects
that are programs of other projects are optional: if one cannot be built or fails, the notes say so.

CPU time is the user and system time of the whole process. The names of figures contain their units.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median
from time import perf_counter, process_time
from typing import Any, Protocol, TypeAlias

from pods import encoded
from servers import HERE, CannotServe, Offer, Server, on_core

__all__ = ["RESULTS", "Figures", "Measure", "Offer", "Question", "Requirement", "Server", "machine", "on_core", "run"]

RESULTS = HERE / "results"
#: Seconds after which a single measurement is shown as progress.
_LONG = 20.0
_CALIBRATION_TEXT, _CALIBRATION_ROUNDS = encoded(1, 1), 1000

Figures: TypeAlias = dict[str, float]
#: Takes the URL of the load server and returns figures. Runs in a process of its own.
Measure: TypeAlias = Callable[[str], Awaitable[Figures]]


@dataclass(frozen=True, slots=True)
class Requirement:
    """A limit for a figure, or for its ratio to a figure of another subject.

    Attributes:
        title: describes the requirement on the page.
        subject: the subject that has the figure.
        figure: the name of the figure.
        at_most: the limit.
        base: if given, the limit applies to the ratio to a figure of this subject.
        base_figure: the name of that figure; the same one by default.
        difference: the limit applies to the difference, not to the ratio.
    """

    title: str
    subject: str
    figure: str
    at_most: float
    base: str = ""
    base_figure: str = ""
    difference: bool = False

    def median_of(self, rounds: list[dict[str, Figures]]) -> float | None:
        """Return the median over the rounds, None if the figure was not measured."""
        values = []
        for each in rounds:
            value = each.get(self.subject, {}).get(self.figure)
            base = each.get(self.base, {}).get(self.base_figure or self.figure) if self.base else 1.0
            if value is not None and base is not None:
                values.append(value - base if self.difference else value / base)
        return round(median(values), 3) if values else None


class RunningServer(Protocol):
    """A context manager that returns the URL for the subjects.

    Attributes:
        environment: for the processes of the subjects.
    """

    environment: dict[str, str]

    def __enter__(self) -> str: ...

    def __exit__(self, *exc: object) -> None: ...


@dataclass(frozen=True, slots=True)
class Question:
    """One benchmark.

    Attributes:
        name: of the file with the results.
        text: the question in words.
        subjects: a function, or a command with URL as a placeholder, for each name.
        offer: what the server offers.
        requirements: limits for the figures.
        rounds: the number of rounds, if the time allows it.
        seconds: the time limit for all rounds, without the start of the server.
        patience: seconds after which a measurement has failed.
        touched_mib: memory that a process uses and returns before each measurement, at least as much as the largest
            subject needs. A virtual machine pays for pages that its host has not given to it yet, once: up to a second
            of system time for each GiB, which would be counted for the subject that happens to be the first.
        notes: remarks for the page.
        serve: a server to use instead of a load server. Its clients are not pinned to a core.
    """

    name: str
    text: str
    subjects: dict[str, Measure | list[str]]
    offer: Offer = field(default_factory=Offer)
    requirements: list[Requirement] = field(default_factory=list)
    rounds: int = 5
    seconds: float = 60.0
    patience: float = 240.0
    touched_mib: int = 0
    notes: list[str] = field(default_factory=list)
    serve: RunningServer | None = None


def machine() -> str:
    """Describe the machine in one line, without its host name."""
    model = platform.machine()
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), model)
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def calibration() -> float:
    """Return the milliseconds of CPU that a fixed piece of work takes now, on the core of the clients."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    if len(cores) > 1:
        os.sched_setaffinity(0, {min(cores)})
    try:
        begin = process_time()
        for _ in range(_CALIBRATION_ROUNDS):
            json.loads(_CALIBRATION_TEXT)
        return (process_time() - begin) * 1000
    finally:
        if len(cores) > 1:
            os.sched_setaffinity(0, cores)


def run(question: Question) -> None:
    """Run a benchmark as a program: completely, or with `--subject` one measurement."""
    parser = argparse.ArgumentParser(description=question.text)
    parser.add_argument("--rounds", type=int, default=question.rounds, help="maximum number of rounds")
    parser.add_argument(
        "--only",
        action="append",
        choices=tuple(question.subjects),
        metavar="SUBJECT",
        help="measure only this subject, and do not write results; can be repeated. Subjects: "
        + "; ".join(question.subjects),
    )
    parser.add_argument("--dry-run", action="store_true", help="do not write results")
    parser.add_argument("--subject", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.subject:
        measure = question.subjects[arguments.subject]
        assert callable(measure)
        with asyncio.Runner(loop_factory=getattr(measure, "loop_factory", None)) as runner:
            print(json.dumps(runner.run(_await(measure(arguments.url)))))
        return
    subjects = [name for name in question.subjects if not arguments.only or name in arguments.only]
    print(question.text)
    rounds: list[dict[str, Figures]] = []
    speeds: list[dict[str, list[float]]] = []
    notes = list(question.notes)
    begin = perf_counter()
    try:
        server: RunningServer = question.serve or Server(question.offer)
    except CannotServe as error:
        print(f"  not measured: {error}")
        return
    with server as url:
        ready = perf_counter()
        for number in range(arguments.rounds):
            measured: dict[str, Figures] = {}
            speed: dict[str, list[float]] = {}
            for name in list(subjects):
                _touch(question.touched_mib)
                before, start = calibration(), perf_counter()
                try:
                    measured[name] = _measure(question, name, url, server.environment)
                    speed[name] = [round(before, 2), round(calibration(), 2)]
                    if perf_counter() - start > _LONG:
                        print(f"    {name}, {perf_counter() - start:.0f} s", flush=True)
                except (OSError, LookupError, ValueError, subprocess.SubprocessError) as error:
                    if callable(question.subjects[name]):
                        raise
                    subjects.remove(name)
                    notes.append(f"{name} was not measured: {_reason(error)}.")
                    print(f"  {notes[-1]}", flush=True)
            rounds.append(measured)
            speeds.append(speed)
            spent = perf_counter() - ready
            print(f"  round {number + 1} of {arguments.rounds}, after {spent:.0f} s", flush=True)
            if spent * (number + 2) / (number + 1) > question.seconds:
                break
    result = _report(question, subjects, rounds, notes, perf_counter() - begin)
    result["calibration_ms"] = speeds
    every = sorted(value for speed in speeds for pair in speed.values() for value in pair) or [0.0]
    print(f"  calibration: {every[0]:.1f} to {every[-1]:.1f} ms of CPU for the same work")
    # A part of the subjects must not replace the results of all.
    if not arguments.only and not arguments.dry_run:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{question.name}.json").write_text(json.dumps(result, indent=1) + "\n")


def _reason(error: Exception) -> str:
    match error:
        case subprocess.TimeoutExpired():
            return f"it did not end within {error.timeout:.0f} s"
        case subprocess.CalledProcessError():
            return f"it exited with status {error.returncode}"
        case _:
            return f"it could not be started, or did not print figures ({type(error).__name__})"


async def _await(figures: Awaitable[Figures]) -> Figures:
    return await figures


def _touch(mib: int) -> None:
    """Use memory in a process that ends."""
    if mib:
        subprocess.run([sys.executable, "-c", f"bytearray({mib << 20})[::4096] = bytes({mib << 8})"], check=True)


def _measure(question: Question, subject: str, url: str, environment: dict[str, str]) -> Figures:
    measure = question.subjects[subject]
    if callable(measure):
        script = HERE / f"{question.name}.py"
        command = [sys.executable, str(script), "--subject", subject, "--url", url]
    else:
        command = [each.replace("URL", url) for each in measure]
    done = subprocess.run(
        command if question.serve else on_core(0, command),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=environment,
        timeout=question.patience,
    )
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def _report(
    question: Question, subjects: list[str], rounds: list[dict[str, Figures]], notes: list[str], seconds: float
) -> dict[str, Any]:
    """Print the medians and the requirements, and return the results."""
    medians: dict[str, Figures] = {
        name: {figure: round(median(each[name][figure] for each in rounds), 3) for figure in rounds[0][name]}
        for name in subjects
    }
    for name, figures in medians.items():
        print(f"  {name}: " + ", ".join(f"{figure} {value:g}" for figure, value in figures.items()))
    requirements: list[dict[str, Any]] = []
    for each in question.requirements:
        measured = each.median_of(rounds)
        if measured is None:
            continue
        met = measured <= each.at_most
        requirements.append(
            {
                "title": each.title,
                "at_most": each.at_most,
                "measured": measured,
                "met": met,
                "is_ratio": bool(each.base) and not each.difference,
            }
        )
        print(f"  {'met   ' if met else 'MISSED'}  {each.title}: at most {each.at_most:g}, measured {measured:g}")
    return {
        "question": question.text,
        "machine": machine(),
        "date": datetime.now(UTC).date().isoformat(),
        "seconds": round(seconds),
        "pods": question.offer.pods,
        "events": question.offer.events,
        "rounds": len(rounds),
        "notes": notes,
        "requirements": requirements,
        "medians": medians,
        "figures": rounds,
    }
