"""Tables of variants of one row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping


def variants(argument: str, table: Mapping[str, Any]) -> pytest.MarkDecorator:
    """Holds a row once for each entry of a table; the names in it become part of the name of the recording."""
    return pytest.mark.parametrize(argument, [pytest.param(value, id=name) for name, value in table.items()])


def any_of(*values: Any) -> tuple[Any, ...]:
    """Values that have nothing in common, as those of a field that are all wrong."""
    return values
