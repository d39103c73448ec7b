"""Counts must not depend on the load of the machine."""

from __future__ import annotations

from itertools import repeat

import pytest

from aioinformer.handlers import calls, stalls
from aioinformer.handlers.run_queue import Reading, RunQueue
from tests.support.limits import set_slices


@pytest.fixture(autouse=True)
def still_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no slice end by the clock, no call of a handler be the longest so far, and no reading of waits be too old."""
    set_slices(monkeypatch, 100)
    monkeypatch.setattr(calls, "clock_of", lambda loop: repeat(0.0).__next__)
    run_queue = RunQueue(file="")
    run_queue.last = Reading(None, 0.0, until=float("inf"))
    monkeypatch.setattr(stalls, "_run_queue", run_queue)
