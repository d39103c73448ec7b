"""Compare two commits on the paths of users: is NEW slower than OLD?

    python benchmarks/pair.py main HEAD
    python benchmarks/pair.py v1.2.0 . --path lone --path flood
    python benchmarks/pair.py main HEAD --path list --count instructions

OLD and NEW are commits, or folders with a checkout, such as `.` for the present files. A commit is unpacked below
`build/commits`. The programs that measure, and the servers, are those of this checkout for both sides, so only the
package differs.

In each round, both sides have a process of their own, and work in short turns. A turn takes a second or less, so both
see the same changes in the speed of the machine. The ratio of a round is the median of the ratios of its turns. The
cost is the CPU time of the client's process, user and system time.

The interval contains the median of all such rounds with 95 % confidence, whatever the distribution of the noise: it is
that of the sign test. The answer is `no slower` if the interval is at most 0.06 wide and its lower bound is not above
1.03, and `slower` if that bound is above. Rounds are repeated until the interval is that narrow, or the time is over:
then the answer is `not measured`. The exit status is 0 if no path is slower, 1 if one is, and otherwise 2.

With `--count instructions`, the cost is the number of instructions of the client's process that valgrind counts. Other
processes do not change it, but an instruction is not a unit of time, and the kernel's are not counted. Each round has
another seed of hashes. A round takes minutes.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import ssl
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from time import monotonic
from typing import TypeAlias

import yaml
from commits import package_at
from servers import HERE, CannotServe, Offer, Server, on_core

_CONFIDENCE = 0.95
_WIDEST, _MOST = 0.06, 1.03
#: Config maps, and Widgets.
_OBJECTS_EACH = 200

NO_SLOWER, SLOWER, NOT_MEASURED = "no slower", "slower", "not measured"

#: Returns the costs of OLD and NEW in one round, turn by turn. The argument is the number of the round.
Round: TypeAlias = Callable[[int], Sequence[tuple[float, float]]]

_PODS = Offer(pods=2_000, event_by_event=True)
_OBJECTS = Offer(pods=0, program="api_server.py")
_WIDGETS = yaml.safe_load((HERE.parent / "examples" / "widgets.yaml").read_text())


@dataclass(frozen=True, slots=True)
class Work:
    """One path.

    Attributes:
        unit: what the client counts.
        offer: what the server of each side offers.
        rate: of the events that the server sends, 0 for as fast as the client reads, or None if the client works by
            itself.
        warm: units of work before the first turn.
        turn: units of work in a turn.
        turns: the number of turns in a round.
        counted: units of work whose instructions are counted.
        slow_rate: of the events meanwhile, because a client under valgrind is slow.
    """

    unit: str
    offer: Offer
    rate: float | None
    warm: int
    turn: int
    turns: int
    counted: int
    slow_rate: float = 0.0


PATHS = {
    "lone": Work("event", _PODS, 500.0, warm=500, turn=250, turns=10, counted=500, slow_rate=50.0),
    "flood": Work("event", _PODS, 0.0, warm=4_000, turn=4_000, turns=10, counted=4_000),
    "list": Work("list", _PODS, None, warm=2, turn=2, turns=10, counted=4),
    "write": Work("run", _OBJECTS, None, warm=400, turn=200, turns=8, counted=200),
    "empty": Work("run", _OBJECTS, None, warm=2_000, turn=4_000, turns=10, counted=2_000),
    "unchanged": Work("run", _OBJECTS, None, warm=1_000, turn=1_000, turns=10, counted=1_000),
}


def interval(ratios: Sequence[float]) -> tuple[float, float] | None:
    """Return the confidence interval of the median by the sign test, None if there are too few values for one."""
    ordered = sorted(ratios)
    number = len(ordered)
    below = 0.0
    found = None
    for outside in range(number // 2):
        below += math.comb(number, outside) / 2**number
        if 2 * below > 1 - _CONFIDENCE:
            break
        found = ordered[outside], ordered[-1 - outside]
    return found


def verdict(bounds: tuple[float, float] | None) -> str:
    """Return the answer for an interval of the ratio of NEW's cost to OLD's."""
    if bounds is None or bounds[1] - bounds[0] > _WIDEST:
        return NOT_MEASURED
    return NO_SLOWER if bounds[0] <= _MOST else SLOWER


@dataclass(frozen=True, slots=True)
class Answer:
    """What was measured.

    Attributes:
        verdict: `NO_SLOWER`, `SLOWER` or `NOT_MEASURED`.
        bounds: of the ratio, None if there were too few rounds.
        ratios: of NEW's cost to OLD's, by round.
        old, new: the median cost in a turn.
    """

    verdict: str
    bounds: tuple[float, float] | None
    ratios: list[float]
    old: float
    new: float


def compare(measure: Round, *, seconds: float, clock: Callable[[], float] = monotonic) -> Answer:
    """Repeat rounds until the interval is narrow enough, or the time is over."""
    end = clock() + seconds
    ratios: list[float] = []
    costs: list[tuple[float, float]] = []
    for number in count():
        turns = measure(number)
        costs.extend(turns)
        ratios.append(median(new / old for old, new in turns))
        bounds = interval(ratios)
        answer = verdict(bounds)
        if answer != NOT_MEASURED or clock() >= end:
            break
    return Answer(answer, bounds, ratios, median(old for old, _ in costs), median(new for _, new in costs))


@dataclass(frozen=True, slots=True)
class Side:
    """A package to measure, and the server for its clients."""

    tree: Path
    url: str
    environment: dict[str, str]


class Failed(Exception):
    """A client has ended early, or measured another package."""


class Client:
    """A process of `pair_client.py` that measures the package of one folder: `with Client(…) as client:`.

    Args:
        side: contains the package.
        path: one of `PATHS`.
        seed: of hashes.
        rate: of the events that the server sends, None if the client works by itself.
        under: a command that runs the client's command.
    """

    def __init__(self, side: Side, path: str, *, seed: int, rate: float | None, under: Sequence[str] = ()) -> None:
        self._tree = side.tree
        self._url = side.url
        self._rate = rate
        self._environment = {**side.environment, "PYTHONPATH": str(side.tree), "PYTHONHASHSEED": str(seed)}
        self._command = on_core(0, [*under, sys.executable, str(HERE / "pair_client.py"), path, side.url])

    def __enter__(self) -> Client:
        self._process = subprocess.Popen(
            self._command, env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        measured = Path(self._line())
        if not measured.is_relative_to(self._tree):
            self.__exit__()
            raise Failed(f"the client measures {measured}, not the package in {self._tree}")
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(120)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def work(self, units: int) -> float:
        """Do some units of work, and return the CPU seconds of the client's process."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{units}\n")
        self._process.stdin.flush()
        self._line()
        if self._rate is not None:
            _post(f"{self._url}/go?rate={self._rate}&events={units}", self._environment)
        return float(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise Failed(f"the client of {self._tree} has ended with status {self._process.wait()}")
        return line.strip()


def _post(url: str, environment: dict[str, str], body: object = None) -> None:
    authority = environment.get("SSL_CERT_FILE") if url.startswith("https") else None
    context = ssl.create_default_context(cafile=authority) if authority else None
    request = urllib.request.Request(
        url, data=json.dumps(body).encode(), headers={"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, context=context, timeout=60):
        pass


@contextmanager
def sides(path: str, trees: Sequence[Path]) -> Iterator[list[Side]]:
    """Run a server for each of the packages.

    Raises:
        CannotServe: the server needs a tool that is not installed.
    """
    offer = PATHS[path].offer
    with ExitStack() as stack:
        found = []
        for tree in trees:
            server = Server(offer)
            url = stack.enter_context(server)
            if not offer.event_by_event:
                _create_objects(url, server.environment)
            found.append(Side(tree, url, server.environment))
        yield found


def _create_objects(url: str, environment: dict[str, str]) -> None:
    _post(f"{url}/apis/apiextensions.k8s.io/v1/customresourcedefinitions", environment, _WIDGETS)
    for index in range(_OBJECTS_EACH):
        body: dict[str, object] = {"metadata": {"name": f"map-{index}"}}
        _post(f"{url}/api/v1/namespaces/default/configmaps", environment, body)
        body = {"metadata": {"name": f"widget-{index}"}, "spec": {"size": 2}}
        body |= {"apiVersion": "example.com/v1", "kind": "Widget"}
        _post(f"{url}/apis/example.com/v1/namespaces/default/widgets", environment, body)


def cpu_rounds(path: str, pair: Sequence[Side]) -> Round:
    """Measure CPU seconds for each unit of work."""
    what = PATHS[path]

    def measure(number: int) -> list[tuple[float, float]]:
        with ExitStack() as stack:
            clients = [stack.enter_context(Client(side, path, seed=number, rate=what.rate)) for side in pair]
            for client in clients:
                client.work(what.warm)
            turns = []
            for turn in range(what.turns):
                costs = [0.0, 0.0]
                for which in (0, 1) if (turn + number) % 2 else (1, 0):
                    costs[which] = clients[which].work(what.turn) / what.turn
                turns.append((costs[0], costs[1]))
            return turns

    return measure


@contextmanager
def counting() -> Iterator[tuple[list[str], Callable[[], int]]]:
    """Return a command that runs another one under valgrind, and a function that returns what it has counted."""
    with tempfile.NamedTemporaryFile("r", suffix=".log") as log:
        options = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", f"--log-file={log.name}"]

        def read() -> int:
            # The process writes a file of this name anew.
            text = Path(log.name).read_text()
            found = re.search(r"I +refs: +([\d,]+)", text)
            if found is None:
                raise Failed(f"valgrind has not counted: {text[-500:]}")
            return int(found[1].replace(",", ""))

        yield ["valgrind", *options], read


def instruction_rounds(path: str, pair: Sequence[Side]) -> Round:
    """Count instructions for each unit of work: the difference between a long and a short process."""
    what = PATHS[path]

    def run(side: Side, seed: int, parts: Sequence[int]) -> int:
        rate = None if what.rate is None else what.slow_rate
        with counting() as (under, read):
            with Client(side, path, seed=seed, rate=rate, under=under) as client:
                for units in parts:
                    client.work(units)
            return read()

    def measure(number: int) -> list[tuple[float, float]]:
        costs = []
        for side in pair:
            short = run(side, number, [what.counted])
            long = run(side, number, [what.counted, what.counted])
            costs.append((long - short) / what.counted)
        return [(costs[0], costs[1])]

    return measure


_ROUNDS = {"cpu": cpu_rounds, "instructions": instruction_rounds}


def tree_of(name: str) -> Path:
    """Return the folder that contains the package of a commit, or the folder that was given."""
    if (Path(name) / "aioinformer").is_dir():
        return Path(name).resolve()
    return package_at(name)


def describe(path: str, counted: str, answer: Answer, seconds: float) -> str:
    """Return the answer for a path in one line."""
    scale, unit = (1e6, "µs") if counted == "cpu" else (1.0, "instructions")
    bounds = "" if answer.bounds is None else f" ({answer.bounds[0]:.3f} to {answer.bounds[1]:.3f})"
    costs = f"{answer.old * scale:,.1f} and {answer.new * scale:,.1f} {unit} a {PATHS[path].unit}"
    rounds = f"{len(answer.ratios)} rounds, {seconds:.0f} s"
    return f"{path}: {answer.verdict}, ratio {median(answer.ratios):.3f}{bounds}, {costs}, {rounds}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", metavar="OLD", help="a commit, or a folder with a checkout")
    parser.add_argument("new", metavar="NEW", help="the same")
    parser.add_argument("--path", action="append", choices=tuple(PATHS), help="by default, all; can be repeated")
    parser.add_argument("--count", choices=tuple(_ROUNDS), default="cpu", help="what is the cost (default: cpu)")
    parser.add_argument("--minutes", type=float, default=20.0, help="at most, for each path (default: 20)")
    arguments = parser.parse_args()
    trees = [tree_of(arguments.old), tree_of(arguments.new)]
    answers = []
    for path in arguments.path or PATHS:
        begin = monotonic()
        try:
            with sides(path, trees) as pair:
                measure = _ROUNDS[arguments.count](path, pair)
                answer = compare(measure, seconds=arguments.minutes * 60)
        except (CannotServe, Failed, OSError) as error:
            print(f"{path}: {NOT_MEASURED}: {error}", flush=True)
            answers.append(NOT_MEASURED)
            continue
        print(describe(path, arguments.count, answer, monotonic() - begin), flush=True)
        answers.append(answer.verdict)
    if SLOWER in answers:
        return 1
    return 2 if NOT_MEASURED in answers else 0


if __name__ == "__main__":
    sys.exit(main())
