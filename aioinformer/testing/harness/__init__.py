"""Test controllers in virtual time: each order of events, crashes between two writes, stale caches, lost answers."""

from __future__ import annotations

from aioinformer.testing.harness.checker import HarnessFailure, NotConverged
from aioinformer.testing.harness.exploring import Outcome, explore, run
from aioinformer.testing.harness.harness import Converged, Harness
from aioinformer.testing.harness.plan import Crash, Plan

__all__ = ["Converged", "Crash", "Harness", "HarnessFailure", "NotConverged", "Outcome", "Plan", "explore", "run"]
