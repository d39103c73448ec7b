"""A candidate's tries for a Lease: asks the server what `lease` wants to ask, and tells what comes of it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from aioinformer.errors import TransportError
from aioinformer.lease import LeaderElectionOptions, LeaseMachine, LeaseReply, Verdict
from aioinformer.logger import get_logger
from aioinformer.retry import is_conflict

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from aioinformer.errors import AioinformerError
    from aioinformer.lease import LeaseRequest
    from aioinformer.lease_lock import LeaseLock

T = TypeVar("T")

_log = get_logger(__name__)

#: Between two tries to release a lease that somebody else writes to.
_RELEASE_PAUSE = 0.1


class LeaseAttempts:
    """Tries to become and to stay the holder of a Lease, one try at a time.

    Args:
        lock: the Lease on the server.
        identity: of the candidate.
        labels: for the Lease.
        options: times.
        on_new_leader: called with each new holder that is seen, "" for none.

    Attributes:
        machine: what is known.
    """

    def __init__(
        self,
        lock: LeaseLock,
        identity: str,
        labels: Mapping[str, str],
        options: LeaderElectionOptions,
        on_new_leader: Callable[[str], object] | None,
    ) -> None:
        self.machine = LeaseMachine(identity, lock.template, labels, options)
        self._lock = lock
        self._options = options
        self._on_new_leader = on_new_leader
        self._reported = ""
        self._complaint = ""

    async def attempt(self, seconds: float) -> Verdict:
        """One try to become or stay the leader, within so many seconds."""
        loop = asyncio.get_running_loop()
        verdict = await self._talk(self.machine.attempt(loop.time(), _wall()), seconds)
        self._complain(self.machine.error if verdict is Verdict.FAILED else None)
        leader = self.machine.record.holder_identity
        if leader != self._reported:
            self._reported = leader
            self._report(leader)
        return verdict

    async def release(self, seconds: float) -> None:
        """Gives the lease back, if that can be done in so many seconds."""
        error: Exception | None = None
        try:
            async with asyncio.timeout(seconds):
                while True:
                    error = await self._talk(self.machine.release(), seconds)
                    if error is None or not is_conflict(error):
                        break
                    await asyncio.sleep(_RELEASE_PAUSE)
        except TimeoutError:
            error = error or TransportError(f"no answer within {seconds:.1f} s")
        except Exception as crash:  # must not hide why the work has ended
            error = crash
        finally:
            self.machine.give_up()
        if error is not None:
            _log.warning("%s was not released, others have to wait for its end: %s", self._lock, error)

    async def _talk(self, talk: Generator[LeaseRequest, LeaseReply, T], seconds: float) -> T:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        request = next(talk)
        while True:
            answer = await self._lock.send(request, min(self._options.request_timeout, until - loop.time()))
            try:
                request = talk.send(LeaseReply(answer, loop.time(), _wall()))
            except StopIteration as stop:
                result: T = stop.value
                return result

    def _complain(self, error: AioinformerError | None) -> None:
        """Tells the log of a failure, once for as long as it stays the same; that others were faster is none."""
        complaint = "" if error is None or getattr(error, "status", 0) == 409 else str(error)
        if complaint and complaint != self._complaint:
            _log.warning("%s: %s", self._lock, complaint)
        self._complaint = complaint

    def _report(self, leader: str) -> None:
        if self._on_new_leader is None:
            return
        try:
            self._on_new_leader(leader)
        except Exception:
            _log.exception("%s: on_new_leader raised", self._lock)


def _wall() -> str:
    """The time of day as a Lease says it; for people, nothing is decided by it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
