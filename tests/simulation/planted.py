"""Mistakes that a careless change might make, one at a time: each must be found by the simulation.

A planted bug breaks the product itself, for as long as its context lasts. What it needs to know of the product's inside
is in its few lines; where a name is gone, planting fails loudly.
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
        about: what is wrong with the product while it is planted.
        plant: breaks the product for as long as it lasts.
    """

    name: str
    about: str
    plant: Callable[[], AbstractContextManager[Any]]


def planting(table: list[Planted], about: str) -> Callable[[Callable[[], AbstractContextManager[Any]]], None]:
    """Takes a bug into a table, by the name of its function."""

    def take(plant: Callable[[], AbstractContextManager[Any]]) -> None:
        table.append(Planted(plant.__name__.replace("_", " "), about, plant))

    return take
