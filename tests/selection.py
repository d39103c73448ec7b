"""Selects the tests of a run: all, or a sample.

`--sample` leaves out most of the rows that compare the server for tests with a real API server: it has one of ten rows
of each module, and at least one. A row is a test with the parameter `side`. `--values` limits how many values of each
parametrised test run. Both depend only on the names of the tests, so that every worker and every run selects the same.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from importlib import metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

    Row = tuple[str, str]

#: One of so many rows is in the sample.
ONE_OF = 10


def add_options(parser: pytest.Parser) -> None:
    """Add the options that `make test` and `make test-all` pass."""
    group = parser.getgroup("aioinformer")
    group.addoption("--sample", action="store_true", help=f"test one of {ONE_OF} rows of the server for tests")
    group.addoption("--values", type=int, default=0, help="how many values of each parametrised test to run; 0: all")
    group.addoption("--full-run", action="store_true", help="simulate more seeds")
    group.addoption("--record-full-run", action="store_true", help="write tests/full_run.json if all tests pass")


def is_sample(config: pytest.Config) -> bool:
    """Return whether this run tests a sample only."""
    return bool(config.getoption("--sample", default=False))


def values_of(config: pytest.Config) -> int:
    """Return how many values of each parametrised test are in this run; 0 for all."""
    return int(config.getoption("--values", default=0))


def is_full(config: pytest.Config) -> bool:
    """Return whether this is a full run, which plays more seeds of the simulation."""
    return bool(config.getoption("--full-run", default=False))


def describe(config: pytest.Config) -> str:
    """Return a line for the head of the run."""
    parts = [f"one of {ONE_OF} rows of the server for tests"] if is_sample(config) else []
    if values := values_of(config):
        parts.append(f"up to {values} of the values of each parametrised test")
    return f"selection: {', '.join(parts)} (make test-all runs all)" if parts else "selection: all"


def versions() -> str:
    """Return a line with the versions of the package's dependencies."""
    names = sorted({re.split(r"[^\w-]", each)[0] for each in metadata.requires("aioinformer") or ()})
    found = {name: next((each.version for each in metadata.distributions(name=name)), "none") for name in names}
    return "versions: " + ", ".join(f"{name} {version}" for name, version in found.items())


def deselect_rows(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remove the rows that are not in the sample from `items`."""
    rows = {item: row for item in items if (row := row_of(item)) is not None}
    chosen = sample(set(rows.values()))
    drop(config, items, {item for item, row in rows.items() if row not in chosen})


def deselect_values(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remove all but a few values of each parametrised test from `items`: always the same ones."""
    tests: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        tests[item.nodeid.partition("[")[0]].append(item)
    drop(config, items, {item for each in tests.values() for item in sorted(each, key=_hash_of)[values_of(config) :]})


def _hash_of(item: pytest.Item) -> bytes:
    return hashlib.sha256(item.nodeid.encode()).digest()


def drop(config: pytest.Config, items: list[pytest.Item], dropped: set[pytest.Item]) -> None:
    """Remove some tests from `items`."""
    config.hook.pytest_deselected(items=[item for item in items if item in dropped])
    items[:] = [item for item in items if item not in dropped]


def row_of(item: pytest.Item) -> Row | None:
    """Return module and name of a row, without the parameter `side`; None for other tests."""
    call = getattr(item, "callspec", None)
    if call is None or "side" not in call.params:
        return None
    parameters = [each for each in call.id.split("-") if each not in ("ours", "real")]
    return item.path.stem, "-".join((getattr(item, "originalname", item.name), *parameters))


def sample(rows: Iterable[Row]) -> set[Row]:
    """Return the sample of some rows: those with the smallest hashes of their names, module by module."""
    modules: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        modules[row[0]].append(row)
    return {
        row
        for members in modules.values()
        for row in sorted(members, key=lambda row: hashlib.sha256("/".join(row).encode()).digest())[
            : -(-len(members) // ONE_OF)
        ]
    }
