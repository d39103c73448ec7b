"""Limits how many values of each parametrised test a run has.

`--values=3` selects up to three of them, by the names of the tests only: every worker and every run selects the same.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from importlib import metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def add_options(parser: pytest.Parser) -> None:
    """Add the option that `make test` passes."""
    group = parser.getgroup("aioinformer")
    group.addoption("--values", type=int, default=0, help="how many values of each parametrised test to run; 0: all")


def values_of(config: pytest.Config) -> int:
    """Return how many values of each parametrised test are in this run; 0 for all."""
    return int(config.getoption("--values", default=0))


def describe(config: pytest.Config) -> str:
    """Return a line for the head of the run."""
    values = values_of(config)
    return f"selection: up to {values} of the values of each parametrised test" if values else "selection: all values"


def versions() -> str:
    """Return a line with the versions of the package's dependencies."""
    names = sorted({re.split(r"[^\w-]", each)[0] for each in metadata.requires("aioinformer") or ()})
    found = {name: next((each.version for each in metadata.distributions(name=name)), "none") for name in names}
    return "versions: " + ", ".join(f"{name} {version}" for name, version in found.items())


def deselect_values(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remove all but a few values of each parametrised test from `items`: always the same ones."""
    tests: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        tests[item.nodeid.partition("[")[0]].append(item)
    dropped = {item for each in tests.values() for item in sorted(each, key=_hash_of)[values_of(config) :]}
    config.hook.pytest_deselected(items=[item for item in items if item in dropped])
    items[:] = [item for item in items if item not in dropped]


def _hash_of(item: pytest.Item) -> bytes:
    return hashlib.sha256(item.nodeid.encode()).digest()
