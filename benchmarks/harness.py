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
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, TypeAlias

HERE = Path(__file__).parent
RESULTS = HERE / "results"

Figures: TypeAlias = dict[str, float]
#: Takes the URL of the load server and returns figures. Runs in a process of its own.
Measure: TypeAlias = Callable[[str], Awaitable[Figures]]


@dataclass(frozen=True, slots=True)
class Offer:
    """What the load server prepares.

    Attributes:
        pods: number of objects in the list.
        events: number of changes that a client can request.
        spread: the number of pods that change, 0 for all.
        forms: the available formats, separated by commas.
        protobuf_tool: the command that encodes protobuf.
        program: the file of the server.
    """

    pods: int = 20_000
    events: int = 20_000
    spread: int = 0
    forms: str = "json"
    protobuf_tool: tuple[str, ...] = ()
    program: str = "load_server.py"


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
    """

    title: str
    subject: str
    figure: str
    at_most: float
    base: str = ""
    base_figure: str = ""

    def median_of(self, rounds: list[dict[str, Figures]]) -> float | None:
        """Return the median over the rounds, None if the figure was not measured."""
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
        text: the question in words.
        subjects: a function, or a command with URL as a placeholder, for each name.
        offer: what the server offers.
        requirements: limits for the figures.
        rounds: the number of rounds, if the time allows it.
        seconds: the time limit for all rounds, without the start of the server.
        patience: seconds after which a measurement has failed.
        notes: remarks for the page.
    """

    name: str
    text: str
    subjects: dict[str, Measure | list[str]]
    offer: Offer = field(default_factory=Offer)
    requirements: list[Requirement] = field(default_factory=list)
    rounds: int = 5
    seconds: float = 60.0
    patience: float = 240.0
    notes: list[str] = field(default_factory=list)


def machine() -> str:
    """Describe the machine in one line, without its host name."""
    model = platform.machine()
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), model)
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def on_core(core: int, command: list[str]) -> list[str]:
    """Return the command pinned to one of the available cores, or unchanged if there are not enough."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return ["taskset", "-c", str(cores[core]), *command] if len(cores) > core else command


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
        print(json.dumps(asyncio.run(_await(measure(arguments.url)))))
        return
    subjects = [name for name in question.subjects if not arguments.only or name in arguments.only]
    print(question.text)
    rounds: list[dict[str, Figures]] = []
    notes = list(question.notes)
    begin = perf_counter()
    with Server(question.offer) as url:
        ready = perf_counter()
        for number in range(arguments.rounds):
            measured: dict[str, Figures] = {}
            for name in list(subjects):
                try:
                    measured[name] = _measure(question, name, url)
                except (OSError, LookupError, ValueError, subprocess.SubprocessError) as error:
                    if callable(question.subjects[name]):
                        raise
                    subjects.remove(name)
                    notes.append(f"{name} was not measured: {_reason(error)}.")
                    print(f"  {notes[-1]}", flush=True)
            rounds.append(measured)
            spent = perf_counter() - ready
            print(f"  round {number + 1} of {arguments.rounds}, after {spent:.0f} s", flush=True)
            if spent * (number + 2) / (number + 1) > question.seconds:
                break
    result = _report(question, subjects, rounds, notes, perf_counter() - begin)
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


class Server:
    """A load server in a process of its own: `with Server(offer) as url:`."""

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


def _measure(question: Question, subject: str, url: str) -> Figures:
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
                "is_ratio": bool(each.base),
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
