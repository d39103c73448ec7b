from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.resources.catalog import BUILTIN_RESOURCES
from aioinformer.testing.tables import jsonpath
from aioinformer.testing.tables.pods import human_duration
from aioinformer.testing.tables.rendering import layout

if TYPE_CHECKING:
    from aioinformer.resources.resource import Resource

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize("resource", [each for each in BUILTIN_RESOURCES if "list" in each.verbs], ids=str)
def test_empty_object_fills_all_columns(resource: Resource[Any]) -> None:
    found = layout(resource)

    assert len(found.cells({}, NOW)) >= len(found.columns)


def test_invalid_json_path_is_refused() -> None:
    with pytest.raises(ValueError, match=r"at '\[!\]'"):
        jsonpath.find(".spec[!]", {})


@pytest.mark.parametrize(
    ("elapsed", "expected"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (119, "119s"),
        (120, "2m"),
        (5 * 60 + 30, "5m30s"),
        (10 * 60 + 30, "10m"),
        (179 * 60, "179m"),
        (180 * 60, "3h"),
        (3 * 3600 + 12 * 60, "3h12m"),
        (47 * 3600, "47h"),
        (6 * 86400 + 4 * 3600, "6d4h"),
        (9 * 86400, "9d"),
        (3 * 365 * 86400 + 20 * 86400, "3y20d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_duration_has_two_or_three_figures(elapsed: int, expected: str) -> None:
    assert human_duration(timedelta(seconds=elapsed)) == expected


@given(st.integers(0, 10**10))
def test_duration_is_rounded_down(elapsed: int) -> None:
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400, "y": 365 * 86400}
    text, told = human_duration(timedelta(seconds=elapsed)), 0
    number = ""
    for character in text:
        if character in units:
            told, number = told + int(number) * units[character], ""
        else:
            number += character

    assert told <= elapsed
    assert elapsed - told <= max(elapsed / 2, 1)
