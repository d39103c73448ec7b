"""`RunPermit`: whether a write of one attempt may leave."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from aioinformer.controller.writes.permits import Permit

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.client.targets import Target
    from aioinformer.controller.running.attached import Inputs
    from aioinformer.controller.running.attempts import Attempt
    from aioinformer.controller.running.share import Share
    from aioinformer.controller.writes.permits import Leaving, UnansweredWrites
    from aioinformer.transport import HttpRequest

#: Verbs of requests that are not sent while an input is stale.
_DELETING: Final = frozenset({"delete", "deletecollection"})


def deletes(write: Leaving) -> bool:
    """Return whether a write deletes or evicts objects: it is not sent while a cache is stale."""
    target = write.target
    return target is not None and (target.verb in _DELETING or target.subresource == "eviction")


class RunPermit(Permit):
    """Permits the writes of an attempt while it may act, and, in a ring, those of its slots alone.

    It refuses deletes, and the release of a finalizer, while an input is stale.

    Args:
        attempt: the attempt.
        check_fresh: raises if an input is stale.
        unanswered: as for `Permit`.
        share: of the controller in its ring; None for no limit of what is written.
        uid: of the object of the run when the attempt began; only with a share.
        outside: whether it is enough that this replica takes part in the ring, whatever is written.
    """

    def __init__(
        self,
        attempt: Attempt,
        check_fresh: Callable[[], None],
        unanswered: UnansweredWrites,
        share: Share | None = None,
        uid: str = "",
        *,
        outside: bool = False,
    ) -> None:
        membership = share.membership if share is not None and outside else None
        super().__init__(lambda: attempt.before_write(membership), unanswered)
        self._attempt = attempt
        self._check_fresh = check_fresh
        self._share = share
        self._uid = uid
        self._bound = share if not outside else None

    def check(self, write: Leaving) -> float | None:
        if deletes(write) or (write.target is not None and self._attempt.released):
            self._check_fresh()
        return self.check_right(write)

    def check_right(self, write: Leaving) -> float | None:
        if self._bound is not None:
            self._bound.check_write(self._attempt.run.key, self._uid, write)
        return super().check_right(write)

    def must_read(self, target: Target, request: HttpRequest) -> bool:
        return self._bound is not None and self._bound.must_read(self._uid, target, request)

    def uid_of(self, target: Target) -> str:
        if self._bound is None or not self._bound.is_own(self._attempt.run.key, target):
            return ""
        return self._uid

    def outside_ring(self) -> RunPermit:
        if self._bound is None:
            return self
        return RunPermit(self._attempt, self._check_fresh, self.unanswered, self._share, outside=True)


class Permits(msgspec.Struct, eq=False):
    """Makes the permits of the attempts of a controller.

    Attributes:
        inputs: of the controller.
        max_staleness: that of its inputs.
        unanswered: as for `Permit`.
        share: as for `RunPermit`.
    """

    inputs: Inputs
    max_staleness: float | None
    unanswered: UnansweredWrites
    share: Share | None

    def of(self, attempt: Attempt) -> Callable[[], RunPermit]:
        """Return what makes the permit of an attempt that begins now. Most attempts need none: they write nothing."""
        uid = "" if self.share is None else self.share.uid_of(attempt.run.key)
        return partial(self._make, attempt, uid)

    def _make(self, attempt: Attempt, uid: str) -> RunPermit:
        return RunPermit(attempt, self.inputs.freshness(self.max_staleness), self.unanswered, self.share, uid)
