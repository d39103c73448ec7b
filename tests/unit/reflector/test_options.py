"""Options of lists and of reflectors, and what a state says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.reflector import InformerState, ListOptions, Phase, ReflectorOptions


def test_set_list_options_are_sent_in_wire_spelling() -> None:
    assert ListOptions().to_query() == []
    full = ListOptions("a=b", "c=d", "5", "Exact", 7, "token", True, True, True, 9)
    assert dict(full.to_query()) == {
        "labelSelector": "a=b",
        "fieldSelector": "c=d",
        "resourceVersion": "5",
        "resourceVersionMatch": "Exact",
        "limit": "7",
        "continue": "token",
        "watch": "true",
        "allowWatchBookmarks": "true",
        "sendInitialEvents": "true",
        "timeoutSeconds": "9",
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"page_size": -1},
        {"min_watch_timeout": 0.5},
        {"idle_timeout": -1},
        {"max_frame": 0},
        {"list_resource_version": "5"},
    ],
)
def test_invalid_option_is_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ReflectorOptions(**wrong)


def test_state_describes_phase_and_reason() -> None:
    healthy = [phase for phase in Phase if InformerState(phase, "", 0).healthy]
    assert healthy == [Phase.WATCHING, Phase.POLLING]
    assert str(InformerState(Phase.FORBIDDEN, "403 Forbidden", 0)) == "forbidden: 403 Forbidden"
    assert str(InformerState(Phase.WATCHING, "", 0)) == "watching"
