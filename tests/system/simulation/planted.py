"""Bugs that a careless change might introduce; the simulation must find each of them.

A planted bug patches the package for the length of a context. It depends on internals of the package; if one of them
no longer exists, planting fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager


@dataclass(frozen=True, slots=True)
class Planted:
    """One bug.

    Attributes:
        name: of the bug.
        about: describes the bug.
        plant: plants the bug for the length of a block.
    """

    name: str
    about: str
    plant: Callable[[], AbstractContextManager[Any]]


def planting(table: list[Planted], about: str) -> Callable[[Callable[[], AbstractContextManager[Any]]], None]:
    """Add a bug to a table, named by its function."""

    def take(plant: Callable[[], AbstractContextManager[Any]]) -> None:
        table.append(Planted(plant.__name__.replace("_", " "), about, plant))

    return take
