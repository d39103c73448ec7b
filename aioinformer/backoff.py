"""How long to wait after a failure: exponential backoff, and `Retry-After`.

The rooms that wait choose the values. The defaults of `BackoffOptions` are used by `reflector/options.py` and
`resources/discovery.py`. Others have their own: `client/retries.py`, `workqueue/requests/outcomes.py`,
`controller/inputs/sources.py`, `controller/running/settings.py` and `controller/writes/current.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from aioinformer.errors import OptionError
from aioinformer.exports import lazy_exports

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: The longest `Retry-After` that is followed, in seconds: a longer wait would look like a hang.
MAX_RETRY_AFTER = 3600.0
#: After this many seconds without a failure, the next delay is the first again.
RESET_AFTER = 120.0


class BackoffOptions(msgspec.Struct, frozen=True):
    """The parameters of a backoff. The defaults are those of client-go's reflectors.

    The option `backoff` of informers (`ReflectorOptions`) and `Discovery` have these defaults; those of `QueueOptions`,
    `Source` and `Restart` have their own. The delays of a client's repetitions, and of reads that show whether a cache
    is current, are fixed.

    After two minutes without a failure, the next delay is `initial` again.

    Attributes:
        initial: the first delay in seconds, before jitter.
        factor: multiplies the delay after each failure.
        cap: the longest delay in seconds, before jitter.
        jitter: each delay is drawn from [d, d * (1 + jitter)).

    Raises:
        OptionError: a value is out of range.
    """

    initial: float = 0.8
    factor: float = 2.0
    cap: float = 30.0
    jitter: float = 1.0

    def __post_init__(self) -> None:
        for name in ("initial", "cap"):
            if getattr(self, name) <= 0:
                raise OptionError(f"backoff {name} must be positive, not {getattr(self, name)!r}")
        if self.factor < 1:
            raise OptionError(f"backoff factor must be at least 1, not {self.factor!r}")
        if self.jitter < 0:
            raise OptionError(f"backoff jitter must not be negative, not {self.jitter!r}")


class Backoff:
    """Delays that grow with each failure, and reset after a time without failure.

    The time without failure counts from the end of the last delay, so that delays stay long while a server keeps
    failing. client-go counts from the last reset, and therefore starts again with the first delay every two minutes.

    Args:
        random: returns numbers in [0, 1).
    """

    __slots__ = ("_delay", "_ends", "_options", "_random", "_recent")

    def __init__(self, options: BackoffOptions | None = None, *, random: Callable[[], float]) -> None:
        self._options = options or BackoffOptions()
        self._random = random
        self._delay = 0.0
        self._recent = (float("-inf"),) * 3
        self._ends = float("-inf")

    def at_rest(self, now: float) -> bool:
        """Return whether the next delay is the first: nothing has failed yet, or not for two minutes."""
        return not self._delay or now - self._ends >= RESET_AFTER

    def next(self, now: float) -> float:
        """Count a failure at `now`; return the delay after it, in seconds."""
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
        self._delay = 0.0
        self._ends = float("-inf")

    def limit_burst(self, now: float) -> float:
        """Count the end of a request at `now`, whether or not a delay follows it.

        Returns:
            The time before which no request should be sent: `2.5 * initial` after the first of the last three ends.
            That time has already passed unless three requests end without delays in between.
        """
        self._recent = (*self._recent[1:], now)
        return self._recent[0] + 2.5 * self._options.initial

    def extend(self, until: float) -> None:
        """Count the time without failure from `until`, if that is after the end of the delay (`Retry-After`)."""
        self._ends = max(self._ends, until)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the header `Retry-After` asks to wait, at most `MAX_RETRY_AFTER`; None without one.

    A date in it is compared with the server's own `Date` header, so that the local clock does not matter.
    """
    text = headers.get("Retry-After", "").strip()
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return min(float(text), MAX_RETRY_AFTER)
    from email.utils import parsedate_to_datetime  # rarely needed, and slow to import

    try:
        seconds = (parsedate_to_datetime(text) - parsedate_to_datetime(headers["Date"])).total_seconds()
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER)


if not TYPE_CHECKING:  # type checkers read the module itself
    __getattr__, __dir__ = lazy_exports(__name__)
