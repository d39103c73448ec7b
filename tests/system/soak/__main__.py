"""Run informers for hours with changes and faults, and check for leaks and wrong notifications.

    python -m tests.system.soak --target own --duration 1h --output benchmarks/results/soak-own.json

The informers run in a separate process (`subject.py`), so that the figures contain nothing else. This process writes to
the server and injects faults. Every 30 seconds it requests a census of resources. About every two minutes it stops
writing, waits until all caches and handlers match the server, and requests a census at rest, which must not grow.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
from collections import Counter
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from time import monotonic
from typing import TYPE_CHECKING, Any

from tests.system.soak.page import verdict
from tests.system.soak.subject import FORMS
from tests.system.soak.targets import OwnTarget, RealTarget, Target

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_SAMPLE = 30.0
_ROUND = 100.0
_BETWEEN_FAULTS = 8.0
#: Writes a second, approximately.
_RATE = 15.0


class Subject:
    """The process with the informers, controlled through its standard input and output."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._turn = asyncio.Lock()

    async def ask(self, do: str, **more: Any) -> dict[str, Any]:
        """Send a command and return its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        async with self._turn, asyncio.timeout(300):
            self._process.stdin.write(json.dumps({"do": do, **more}).encode() + b"\n")
            line = await self._process.stdout.readline()
            if not line:
                raise RuntimeError(f"the process of the informers ended with {await self._process.wait()}")
            answer: dict[str, Any] = json.loads(line)
            return answer


@asynccontextmanager
async def running_subject(kubeconfig: Path, seed: int) -> AsyncIterator[Subject]:
    """Start the process, and end it at the end of the block."""
    command = [sys.executable, "-m", "tests.system.soak.subject", str(kubeconfig), str(seed)]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=2**24)
    try:
        yield Subject(process)
    finally:
        if process.returncode is None:
            try:
                async with asyncio.timeout(50):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()


class Soak:
    """One run of the soak test.

    Args:
        target: the server, started.
        seconds: the duration of writes and faults.
        seed: the seed of all random choices.
    """

    def __init__(self, target: Target, seconds: float, seed: int) -> None:
        self._target = target
        self._random = Random(seed)
        self._seed = seed
        self._begin = monotonic()
        self._seconds = seconds
        self._writes = 0
        self._faults: Counter[str] = Counter()
        self._samples: list[dict[str, Any]] = []
        self._rests: list[dict[str, Any]] = []

    async def run(self) -> dict[str, Any]:
        """Run the test and return all figures."""
        await self._target.prepare()
        for _ in range(200):
            await self._write()
        async with running_subject(self._target.kubeconfig, self._seed) as subject:
            await self._rest(subject)
            end = monotonic() + self._seconds
            while monotonic() < end:
                await self._one_round(subject, end)
                await self._rest(subject)
            left = await subject.ask("stop")
        figures = {
            "target": self._target.about,
            "seconds": round(monotonic() - self._begin),
            "informers": list(FORMS),
            "writes": self._writes,
            "faults": dict(sorted(self._faults.items())),
            "samples": self._samples,
            "rests": self._rests,
            "left": left,
        }
        return {"verdict": verdict(figures), **figures}

    async def _one_round(self, subject: Subject, end: float) -> None:
        async with asyncio.TaskGroup() as tasks:
            writer = tasks.create_task(self._write_on())
            sampler = tasks.create_task(self._sample_on(subject))
            end = min(monotonic() + _ROUND, end)
            while monotonic() < end:
                await asyncio.sleep(min(_BETWEEN_FAULTS, max(0.1, end - monotonic())))
                fault = self._random.choice(self._target.faults)
                await self._target.fail(fault, self._random)
                self._faults[fault] += 1
            writer.cancel()
            sampler.cancel()

    async def _rest(self, subject: Subject) -> None:
        truth = await self._target.truth()
        answer = await subject.ask("settle", truth=truth)
        self._rests.append({"at": self._now(), "held": len(truth), **answer})
        print(f"{self._target.about}, {self._now():5.0f} s: {_brief(answer)}", flush=True)

    async def _sample_on(self, subject: Subject) -> None:
        while True:
            await asyncio.sleep(_SAMPLE)
            self._samples.append({"at": self._now(), **await subject.ask("sample")})

    async def _write_on(self) -> None:
        while True:
            await self._write()
            await asyncio.sleep(1 / _RATE)

    async def _write(self) -> None:
        self._writes += await self._target.write(self._random)

    def _now(self) -> float:
        return round(monotonic() - self._begin, 1)


def _brief(answer: dict[str, Any]) -> str:
    words = [f"settled after {answer['settled_after']} s", f"{answer['rss_kib'] / 1024:.1f} MiB"]
    words += [f"{answer[name]} {name}" for name in ("tasks", "sockets", "threads", "objects")]
    return ", ".join([*words, *answer["differences"], *answer["lies"][:3]])


def seconds_of(text: str) -> float:
    """Return the seconds of a duration such as `90`, `90s`, `10m` or `1h`."""
    match = re.fullmatch(r"(\d+)([smh]?)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration; write 90s, 10m or 1h")
    return int(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


def target_of(name: str, directory: Path) -> Target:
    """Return the server with this name."""
    if name == "own":
        return OwnTarget(directory)
    tools = os.environ.get("AIOINFORMER_TEST_CLUSTER")
    if not tools:
        raise SystemExit("AIOINFORMER_TEST_CLUSTER must name the folder of a test cluster (see docs/contributing.md)")
    return RealTarget(Path(tools), directory)


async def main() -> int:
    """Parse the command line and run the test."""
    parser = argparse.ArgumentParser(description="Run informers with changes and faults, and check for leaks")
    parser.add_argument("--target", choices=("own", "real"), default="own")
    parser.add_argument("--duration", type=seconds_of, default=3600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as directory:
        async with target_of(arguments.target, Path(directory)) as target:
            figures = await Soak(target, arguments.duration, arguments.seed).run()
    if arguments.output is not None:
        arguments.output.write_text(json.dumps(figures, indent=1) + "\n")
    print(json.dumps(figures["verdict"], indent=1))
    return 0 if figures["verdict"]["passed"] else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
