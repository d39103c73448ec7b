"""Log crashes and lasting outages: one line a minute for all failing informers of an owner.

The reflector logs the first failure of an informer, and each change of the reason. The repeated line has the duration
of the outage, the number of attempts, and the time until the next one. A timer exists only while an informer fails.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from aioinformer.logs import get_logger
from aioinformer.reflector.state import Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.reflector.reflector import Reflector
    from aioinformer.reflector.state import InformerState

_log = get_logger("aioinformer.informer")

#: Seconds between two log lines of an outage.
REPEAT: Final = 60.0

_FAILING: Final = frozenset(
    {Phase.BACKING_OFF, Phase.UNAUTHORIZED, Phase.FORBIDDEN, Phase.NOT_FOUND, Phase.NOT_ALLOWED}
)


class Follower(Protocol):
    """The part of an informer that `Outages` needs."""

    @property
    def name(self) -> str: ...

    @property
    def state(self) -> InformerState: ...

    def reflectors(self) -> dict[str, Reflector]:
        """Return the reflectors by namespace; a single one by ""."""


class Outages:
    """Logs that informers are failing, once a minute until they reach the server again.

    Args:
        name: of the owner.
        count: returns the number of all informers.

    Attributes:
        on_crash: called when an informer crashes; returns what follows, for the log.
    """

    def __init__(
        self,
        name: str,
        count: Callable[[], int] = lambda: 1,
        on_crash: Callable[[], str] = lambda: "run() raises the error",
    ) -> None:
        self.on_crash = on_crash
        self._name = name
        self._count = count
        #: When each informer began to fail, by the loop's clock.
        self._since: dict[Follower, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        #: Whether the outage was logged here, so that its end is logged, too.
        self._repeated = False
        self._began = 0.0

    def changed(self, informer: Follower, state: InformerState) -> None:
        """Update the state of an informer."""
        loop = asyncio.get_running_loop()
        if any(each.state.phase in _FAILING for each in informer.reflectors().values()):
            if not self._since:
                self._began = loop.time()
                self._timer = loop.call_later(REPEAT, self._repeat)
            self._since.setdefault(informer, loop.time())
        elif self._since.pop(informer, None) is not None and not self._since:
            if self._repeated and state.phase is not Phase.STOPPED:
                _log.info("%s: the outage is over after %s", self._name, duration(loop.time() - self._began))
            self.close()

    def crashed(self, informer: Follower, error: BaseException) -> None:
        """Act on the crash of an informer, and log it."""
        follows = self.on_crash()
        with suppress(Exception):  # the informer may have crashed because a filter of the log raises
            _log.error("%s crashed; %s", informer.name, follows, exc_info=error)

    def close(self) -> None:
        """Cancel the timer and forget all failures."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._since.clear()
        self._repeated = False

    def _repeat(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._timer = loop.call_later(REPEAT, self._repeat)
        self._repeated = True
        reflectors = [each for informer in self._since for each in informer.reflectors().values() if each.attempts]
        reasons = Counter(informer.state.reason for informer in self._since)
        (reason, _), *others = reasons.most_common()
        retries = [each.retry_at for each in reflectors if each.retry_at is not None]
        _log.warning(
            "%s for %s: %s%s; attempt %d, %s",
            self._subject(),
            duration(now - min(self._since.values())),
            reason,
            f" (and {len(others)} other reasons)" if others else "",
            max((each.attempts for each in reflectors), default=0),
            f"next retry in {max(0.0, min(retries) - now):.0f} s" if retries else "in progress",
        )

    def _subject(self) -> str:
        count = self._count()
        if count == 1:
            return f"{self._name} has been failing"
        names = sorted(informer.name for informer in self._since)
        named = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        return f"{self._name}: {len(names)} of {count} informers ({named}) have been failing"


def duration(seconds: float) -> str:
    """Format a duration: "45 s", "3 min 20 s", "2 h 5 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, whole = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {whole} s" if whole else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
