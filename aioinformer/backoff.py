"""How long to wait after a failure: one exponential, jittered, self-resetting sequence of delays."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aioinformer.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class BackoffOptions:
    """The shape of a backoff, in seconds; the defaults are client-go's for reflectors (REF-06).

    Attributes:
        initial: the first delay, before jitter.
        factor: by which each delay grows.
        cap: the longest delay, before jitter.
        jitter: each delay is drawn from [d, d * (1 + jitter)).
        reset_after: health of this length makes the next delay the first again.
    """

    initial: float = 0.8
    factor: float = 2.0
    cap: float = 30.0
    jitter: float = 1.0
    reset_after: float = 120.0

    def __post_init__(self) -> None:
        for name in ("initial", "cap", "reset_after"):
            if getattr(self, name) <= 0:
                raise OptionError(f"backoff {name} must be positive, not {getattr(self, name)!r}")
        if self.factor < 1:
            raise OptionError(f"backoff factor must be at least 1, not {self.factor!r}")
        if self.jitter < 0:
            raise OptionError(f"backoff jitter must not be negative, not {self.jitter!r}")


class Backoff:
    """Delays that grow with each failure and start anew after a time of health.

    Health is measured from the end of the last delay, so that a server that fails for ever is asked ever more
    rarely; client-go measures from the last reset and therefore starts anew every two minutes (REF-07).

    Args:
        options: the shape.
        random: gives numbers in [0, 1).
    """

    def __init__(self, options: BackoffOptions | None = None, *, random: Callable[[], float]) -> None:
        self._options = options or BackoffOptions()
        self._random = random
        self._delay = 0.0
        self._recent: deque[float] = deque([float("-inf")] * 3, maxlen=3)
        self._ends = float("-inf")

    def at_rest(self, now: float) -> bool:
        """Whether the next delay would be the first: nothing has failed, or all has been well for long enough."""
        return not self._delay or now - self._ends >= self._options.reset_after

    def next(self, now: float) -> float:
        """The delay, in seconds, that the failure at `now` costs."""
        options = self._options
        if self.at_rest(now):
            self._delay = options.initial
        else:
            self._delay = min(self._delay * options.factor, options.cap)
        delay = self._delay * (1 + options.jitter * self._random())
        self._ends = now + delay
        return delay

    def reset(self) -> None:
        """Make the next delay the first again."""
        self._delay, self._ends = 0.0, float("-inf")

    def limit_burst(self, now: float) -> float:
        """Count one end of a request at `now`, whether it costs a delay or not.

        Returns:
            The time before which nothing should be tried: after the third of a burst, two and a half first delays
            after the first of the three. Failures that are all delayed never get there.
        """
        self._recent.append(now)
        return self._recent[0] + 2.5 * self._options.initial

    def extend(self, until: float) -> None:
        """The wait lasts longer than the delay (the server said so); health is counted from its end."""
        self._ends = max(self._ends, until)
