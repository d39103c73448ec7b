"""How every benchmark measures: the same machine, the same server, taking turns, medians.

A benchmark is a `Question`: what the server offers, who is measured, and what is required of the figures. Run as a
program, it starts one load server, and measures everybody once a round, each in a process of its own. So a machine
that changes its speed changes it for all, and ratios are taken of what belongs to the same round. Where the system
allows it, server and client have a core each. What comes out goes to `benchmarks/results/`, with the rounds, the
machine and the day.

No round is begun that would end after the question's time, so that all questions together have a limit; there is one
round at least. Somebody else's program is optional: who cannot be had, or fails, is named.

CPU time is user and system time together, of the whole process. Seconds and milliseconds are what their names say.
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
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, TypeAlias

HERE = Path(__file__).parent
RESULTS = HERE / "results"

Figures: TypeAlias = dict[str, float]
#: The server's URL -> figures. Runs in a process of its own.
Measure: TypeAlias = Callable[[str], Awaitable[Figures]]


@dataclass(frozen=True, slots=True)
class Offer:
    """What the load server prepares.

    Attributes:
        pods: objects in the list.
        events: changes, when they are asked for.
        spread: the events are about so many of the pods, 0 for all.
        forms: what can be asked for.
        protobuf_tool: the command that encodes protobuf.
        program: the server.
    """

    pods: int = 20_000
    events: int = 20_000
    spread: int = 0
    forms: str = "json"
    protobuf_tool: tuple[str, ...] = ()
    program: str = "load_server.py"


@dataclass(frozen=True, slots=True)
class Requirement:
    """What is required of a figure, or of its ratio to somebody else's.

    Attributes:
        says: for people.
        subject: whose figure.
        figure: which.
        at_most: the limit.
        base: if given, the limit is for the ratio to this subject's figure.
        base_figure: which of its figures; the same one by default.
    """

    says: str
    subject: str
    figure: str
    at_most: float
    base: str = ""
    base_figure: str = ""

    def reached(self, rounds: list[dict[str, Figures]]) -> float | None:
        """The median, None if nobody measured it."""
        values = []
        for each in rounds:
            if self.subject not in each or (self.base and self.base not in each):
                continue
            value = each[self.subject][self.figure]
            values.append(value / each[self.base][self.base_figure or self.figure] if self.base else value)
        return round(median(values), 3) if values else None


@dataclass(frozen=True, slots=True)
class Question:
    """One benchmark.

    Attributes:
        name: of the file with the results.
        asks: for people.
        subjects: who is measured: by a function, or by a command that is given the URL.
        offer: what the server offers.
        requirements: of the figures.
        rounds: how often, if there is time.
        seconds: no round is begun that would end later than this, after the server is ready.
        patience: seconds for one measurement; who takes longer has failed.
        notes: what people should know who read the figures.
    """

    name: str
    asks: str
    subjects: dict[str, Measure | list[str]]
    offer: Offer = field(default_factory=Offer)
    requirements: list[Requirement] = field(default_factory=list)
    rounds: int = 5
    seconds: float = 60.0
    patience: float = 240.0
    notes: list[str] = field(default_factory=list)


def machine() -> str:
    """What it runs on, in a line, without its name."""
    model = platform.machine()
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), model)
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def on_core(core: int, command: list[str]) -> list[str]:
    """The command, on one core of those there are."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return ["taskset", "-c", str(cores[core]), *command] if len(cores) > core else command


def answer(question: Question) -> None:
    """Runs a benchmark as a program: all of it, or with `--subject` one measurement of it."""
    parser = argparse.ArgumentParser(description=question.asks)
    parser.add_argument("--rounds", type=int, default=question.rounds)
    parser.add_argument("--only", action="append", help="measure only this one; may be repeated")
    parser.add_argument("--subject", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.subject:
        measure = question.subjects[arguments.subject]
        assert callable(measure)
        print(json.dumps(asyncio.run(_awaited(measure(arguments.url)))))
        return
    subjects = [name for name in question.subjects if not arguments.only or name in arguments.only]
    print(question.asks)
    rounds: list[dict[str, Figures]] = []
    notes = list(question.notes)
    begin = perf_counter()
    with Server(question.offer) as url:
        ready = perf_counter()
        for number in range(arguments.rounds):
            measured: dict[str, Figures] = {}
            for name in list(subjects):
                try:
                    measured[name] = _measured(question, name, url)
                except (OSError, LookupError, ValueError, subprocess.SubprocessError) as error:
                    if callable(question.subjects[name]):
                        raise
                    subjects.remove(name)
                    notes.append(f"{name} is absent: {_reason(error)}.")
                    print(f"  {notes[-1]}", flush=True)
            rounds.append(measured)
            spent = perf_counter() - ready
            print(f"  round {number + 1} of {arguments.rounds}, after {spent:.0f} s", flush=True)
            if spent * (number + 2) / (number + 1) > question.seconds:
                break
    _report(question, subjects, rounds, notes, perf_counter() - begin)


def _reason(error: Exception) -> str:
    match error:
        case subprocess.TimeoutExpired():
            return f"it did not end within {error.timeout:.0f} seconds"
        case subprocess.CalledProcessError():
            return f"it ended with code {error.returncode}"
        case _:
            return f"it could not be run, or said something else than figures ({type(error).__name__})"


async def _awaited(figures: Awaitable[Figures]) -> Figures:
    return await figures


class Server:
    """`with Server(offer) as url:` a load server in a process of its own."""

    def __init__(self, offer: Offer) -> None:
        arguments = ["--pods", str(offer.pods), "--events", str(offer.events)]
        arguments += ["--spread", str(offer.spread), "--forms", offer.forms]
        if offer.protobuf_tool:
            arguments += ["--protobuf-tool", json.dumps(offer.protobuf_tool)]
        self._command = on_core(1, [sys.executable, str(HERE / offer.program), *arguments])

    def __enter__(self) -> str:
        environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def __exit__(self, *exc: object) -> None:
        self._process.terminate()
        self._process.communicate()


def _measured(question: Question, subject: str, url: str) -> Figures:
    measure = question.subjects[subject]
    if callable(measure):
        script = HERE / f"{question.name}.py"
        command = [sys.executable, str(script), "--subject", subject, "--url", url]
    else:
        command = [each.replace("URL", url) for each in measure]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    done = subprocess.run(
        on_core(0, command), stdout=subprocess.PIPE, text=True, check=True, env=environment, timeout=question.patience
    )
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def _report(
    question: Question, subjects: list[str], rounds: list[dict[str, Figures]], notes: list[str], seconds: float
) -> None:
    medians: dict[str, Figures] = {
        name: {figure: round(median(each[name][figure] for each in rounds), 3) for figure in rounds[0][name]}
        for name in subjects
    }
    for name, figures in medians.items():
        print(f"  {name}: " + ", ".join(f"{figure} {value:g}" for figure, value in figures.items()))
    requirements: list[dict[str, Any]] = []
    for each in question.requirements:
        reached = each.reached(rounds)
        if reached is None:
            continue
        met = reached <= each.at_most
        requirements.append(
            {
                "says": each.says,
                "at_most": each.at_most,
                "reached": reached,
                "met": met,
                "is_ratio": bool(each.base),
            }
        )
        print(f"  {'met   ' if met else 'MISSED'}  {each.says}: at most {each.at_most:g}, reached {reached:g}")
    result = {
        "asks": question.asks,
        "machine": machine(),
        "date": datetime.now(UTC).date().isoformat(),
        "seconds": round(seconds),
        "pods": question.offer.pods,
        "events": question.offer.events,
        "rounds": len(rounds),
        "notes": notes,
        "requirements": requirements,
        "medians": medians,
        "measured": rounds,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{question.name}.json").write_text(json.dumps(result, indent=1) + "\n")
