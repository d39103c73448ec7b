"""The clocks and limits inside the package, as tests set them, so that one place knows the modules that have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.handlers.run_queue import RunQueue

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    import pytest


def measure_blocks(patch: pytest.MonkeyPatch, clock: Callable[[], float], waits: str = "") -> None:
    """Measure by a clock how long steps block the event loop.

    Args:
        patch: undoes it.
        clock: returns the seconds.
        waits: a file in the format of Linux's schedstat with the waits for a CPU; "" for none.
    """
    patch.setattr("aioinformer.handlers.stalls.perf_counter", clock)
    patch.setattr("aioinformer.handlers.stalls._run_queue", RunQueue(file=waits))


def measure_slices(patch: pytest.MonkeyPatch, clock: Callable[[], float]) -> None:
    """Measure slices of work by a clock."""
    patch.setattr("aioinformer.concurrency.perf_counter", clock)


def set_slices(patch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let slices of work end after so many seconds."""
    patch.setattr("aioinformer.concurrency.SLICE_SECONDS", seconds)


def measure_ages(patch: pytest.MonkeyPatch, clock: Callable[[], float]) -> None:
    """Measure by a clock for how long caches are stale: it stands for the time of the day."""
    for module in ("reflector.reflector", "reflector.response_reader", "informer.snapshots", "informer.observed"):
        patch.setattr(f"aioinformer.{module}.time", clock)


def clean_up_within(patch: pytest.MonkeyPatch, seconds: float) -> None:
    """Give up cancelled attempts and their threads after so many seconds, and a leader that has them, too."""
    for module in ("active", "threads", "cancellation"):
        patch.setattr(f"aioinformer.controller.running.{module}.CLEANING_UP", seconds)
    patch.setattr("aioinformer.leaderelection.leadership.TOLERANCE", seconds)


def watch_certificates(patch: pytest.MonkeyPatch, interval: float, retry: float | None = None) -> None:
    """Let servers of webhooks look at their certificates, and at the objects that have their CA, more often.

    Args:
        patch: undoes it.
        interval: seconds between two looks.
        retry: seconds until the next look after a failure; None for the usual time.
    """
    patch.setattr("aioinformer.webhooks.server._INTERVAL", interval)
    if retry is not None:
        patch.setattr("aioinformer.webhooks.server._RETRY", retry)


def shorten_certificates(patch: pytest.MonkeyPatch, lifetime: timedelta, skew: timedelta) -> None:
    """Let certificates of webhooks be valid for a short time.

    Args:
        patch: undoes it.
        lifetime: of a certificate.
        skew: how much earlier than now it begins, for clocks that are behind.
    """
    patch.setattr("aioinformer.webhooks.authority._LIFETIME", lifetime)
    patch.setattr("aioinformer.webhooks.authority._SKEW", skew)


def ignore_late_loops(patch: pytest.MonkeyPatch) -> None:
    """Let the debug page name no late event loop: how late it is depends on the load of the machine."""
    patch.setattr("aioinformer.controller.debug.problems._LATE", 1000)


def limit_hubs(
    patch: pytest.MonkeyPatch, *, batch: int | None = None, limit: int | None = None, one_by_one: bool = False
) -> None:
    """Limit the streams of changes.

    Args:
        patch: undoes it.
        batch: how many changes a reader takes at once; None for the usual number.
        limit: how many bytes a reader may be behind; None for the usual number.
        one_by_one: whether each view is made in a step of its own of the event loop.
    """
    limits = {"_BATCH": batch, "LIMIT": limit, "_SLICE": -1.0 if one_by_one else None}
    for name, value in limits.items():
        if value is not None:
            patch.setattr(f"aioinformer.streams.hub.{name}", value)


def cut_readers_after(patch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let streams to browsers end if nothing is read from them for so many seconds."""
    patch.setattr("aioinformer.web.opened._PATIENCE", seconds)


def compare_fields_of(patch: pytest.MonkeyPatch, keys: int) -> None:
    """Let the search for loops compare the fields of so many keys at a time."""
    patch.setattr("aioinformer.controller.inputs.loops._HOT", keys)
