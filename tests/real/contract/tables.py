"""Parametrizes rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping


def variants(argument: str, table: Mapping[str, Any]) -> pytest.MarkDecorator:
    """Run a row for each entry of a table; the names of entries are part of the row's name."""
    return pytest.mark.parametrize(argument, [pytest.param(value, id=name) for name, value in table.items()])


def any_of(*values: Any) -> tuple[Any, ...]:
    """Return values of unrelated types as one list, such as all invalid values of a field."""
    return values
