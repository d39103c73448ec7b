"""`Standing`: whether a replica stands for the leadership, or for slots of its ring. Decided without I/O and clock.

A replica that cannot work, such as one that lacks a permission, must not hold what another replica could work with:

- It stands at once when all of its controllers are able to work; 10 s after its start when at least one of them is; and
  otherwise after the time-out, since the other replicas may be no better.
- If it is in office, and none of its controllers has been able to work for the time-out, it steps down. It stands again
  after a pause, which doubles with each time, up to 10 minutes; or sooner, by the first rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

#: Seconds after which a replica stands with some of its controllers.
SOME: Final = 10.0
#: Seconds of the first pause after a step down, and of the longest one.
PAUSE: Final = 30.0
LONGEST: Final = 600.0


class Standing:
    """Decides for one replica.

    Args:
        timeout: in seconds; see `Manager(sync_timeout=…)`.
        now: when the replica has started.

    Attributes:
        stands: whether the replica stands now.
        paused: the seconds of the pause after a step down; 0 before the first one, and once the replica stands again.
    """

    def __init__(self, timeout: float, now: float) -> None:
        self.stands = False
        self.paused = 0.0
        self._timeout = timeout
        self._began = now
        self._until = now + timeout
        self._pause = PAUSE
        self._unable_since: float | None = None

    def update(self, able: Collection[bool], now: float, *, in_office: bool) -> bool:
        """Decide again; return whether `stands` has changed.

        Args:
            able: of each controller that needs the leadership or a slot, whether it is able to work.
            in_office: the replica leads, or works in slots.
        """
        if in_office and any(able):
            self._pause = PAUSE
        before = self.stands
        self.stands = self._goes_on(able, now, in_office) if before else self._may(able, now)
        return self.stands is not before

    def _may(self, able: Collection[bool], now: float) -> bool:
        """Return whether a replica that does not stand may stand now."""
        if all(able) or now >= self._until or (any(able) and now >= self._began + SOME):
            self._unable_since = None
            self.paused = 0.0
            return True
        return False

    def _goes_on(self, able: Collection[bool], now: float, in_office: bool) -> bool:
        """Return whether a replica that stands goes on."""
        if not in_office or not able or any(able):
            self._unable_since = None
            return True
        if self._unable_since is None:
            self._unable_since = now
        if now < self._unable_since + self._timeout:
            return True
        self.paused = self._pause
        self._began = now
        self._until = now + self._pause
        self._pause = min(2 * self._pause, LONGEST)
        return False

    def seconds_left(self, now: float) -> float:
        """Return for how many seconds the decision holds, unless a controller or the office changes."""
        if self.stands:
            if self._unable_since is None:
                return float("inf")
            return max(0.0, self._unable_since + self._timeout - now)
        some = self._began + SOME
        return max(0.0, (min(some, self._until) if some > now else self._until) - now)
