"""What took long, and where the time went: a line in the log for the few that are slow, and nothing for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.logger import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

_log = get_logger(__name__)


class Trace:
    """Takes the time of one piece of work, and of its steps.

    Args:
        what: what is done, and by whom; no content of objects.
        clock: seconds from any beginning.
    """

    __slots__ = ("_begun", "_clock", "_steps", "_what")

    def __init__(self, what: str, clock: Callable[[], float]) -> None:
        self._what = what
        self._clock = clock
        self._begun = clock()
        self._steps: list[tuple[float, str]] = []

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return self._clock() - self._begun

    def step(self, what: str) -> None:
        """This has been done by now."""
        self._steps.append((self._clock(), what))

    def log_if_long(self, threshold: float) -> None:
        """Writes a line if it has taken longer than so many seconds: each step with the time since the one before."""
        seconds = self.seconds
        if seconds <= threshold:
            return
        parts = []
        before = self._begun
        for at, what in self._steps:
            parts.append(f"{what} +{at - before:.1f} s")
            before = at
        _log.info("%s took %.1f s%s", self._what, seconds, f": {', '.join(parts)}" if parts else "")
