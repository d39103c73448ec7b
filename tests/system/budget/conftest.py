"""Counts must not depend on the load of the machine."""

from __future__ import annotations

from itertools import repeat

import pytest

from aioinformer import concurrency
from aioinformer.handlers import calls


@pytest.fixture(autouse=True)
def still_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no slice end by the clock, and no call of a handler be the longest so far."""
    monkeypatch.setattr(concurrency, "SLICE_SECONDS", 100)
    monkeypatch.setattr(calls, "clock_of", lambda loop: repeat(0.0).__next__)
