"""Leader election as a cancel scope: the block of `leading()` runs while this process leads, and no longer.

`lease` decides who leads; this module waits, renews and cancels. The rules:

- The block has a deadline, as under `asyncio.timeout`, and each renewal moves it. Without a renewal, for any reason,
  the block is cancelled at the deadline.
- The order at the end is: the block ends, renewing ends, the lease is released, `leading()` returns. If the block is
  cancelled from outside and takes time to end, renewals continue until it has ended.
- Leadership is computed from the clock, not kept as a flag: after the process was stopped or the event loop was
  blocked, `Term.check` knows that the deadline has passed. The event loop cannot cancel code that blocks it; therefore
  `Term.check` exists, and `lease_duration` is longer than `renew_deadline`. On a suspended machine that clock stops
  too, and the process notices at the next renewal. Use the fencing token against this and against delayed writes.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from aioinformer.concurrency import create_task, running_loop, shielded
from aioinformer.errors import AioinformerError, UsageError
from aioinformer.functions import plain_function
from aioinformer.leaderelection.lease import JITTER, LeaderElectionOptions, Verdict
from aioinformer.leaderelection.lock import LeaseAttempts, LeaseLock
from aioinformer.leaderelection.watch import ObjectWatch
from aioinformer.logs import get_logger
from aioinformer.metrics.provider import MetricsProvider
from aioinformer.metrics.statistics import ElectorStatistics
from aioinformer.reflector.options import check_metrics
from aioinformer.resources.references import ObjectReference
from aioinformer.transport import Transport
from aioinformer.transport.clients import Connection, transport_of
from aioinformer.workqueue.waiting import loop_time

if TYPE_CHECKING:
    from collections.abc import Iterator


T = TypeVar("T")

_log = get_logger("aioinformer.leaderelection")


class LeadershipLost(AioinformerError):
    """This process has lost the leadership. `__cause__` is the error of the last renewal, if it failed."""


def check_election(caller: str, name: str, namespace: str, identity: str | None, options: object) -> None:
    """Check the arguments of an election.

    Args:
        caller: the beginning of messages.
        name, namespace: of the Lease.
        identity: of the candidate; None for a generated one.
        options: `LeaderElectionOptions`, or None.

    Raises:
        UsageError: an argument is invalid.
    """
    if not name or not namespace:
        raise UsageError(f"{caller}a Lease needs a name and a namespace, not {name!r} and {namespace!r}")
    if identity == "":
        raise UsageError(f"{caller}identity must not be empty; omit it to get a generated one")
    if options is not None and not isinstance(options, LeaderElectionOptions):
        raise UsageError(f"{caller}options must be LeaderElectionOptions(...), not {type(options).__name__}")


class Term:
    """One period of leadership.

    Attributes:
        identity: the identity of the leader.
        token: the number of the term (`leaseTransitions`). It grows with each term, so it can fence writes.
        release: whether the Lease is released at the end. Set it to False if code goes on that the term should guard.
    """

    def __init__(self, elector: LeaderElector, token: int) -> None:
        self._elector = elector
        self.identity = elector.identity
        self.token = token
        self.release = True
        self._ended = False

    @property
    def remaining(self) -> float:
        """Seconds until the leadership ends unless it is renewed; 0 or less once it has ended. Thread-safe."""
        # The elector knows the deadline. Users ask their own term, so that an earlier one never gets the right again.
        return 0.0 if self._ended else self._elector.remaining(self)

    def end(self) -> None:
        """End the right to act now, right before the end of the block: `check` raises from now on."""
        self._ended = True

    def check(self) -> None:
        """Return if this process leads, and raise otherwise. Call it before each action that only a leader may take.

        Any thread may call this.

        Raises:
            LeadershipLost: this process does not lead, even if the block has not been cancelled yet.
        """
        if self.remaining <= 0:
            raise LeadershipLost(f"{self._elector.identity} no longer holds {self._elector.lease}")

    def __repr__(self) -> str:
        return f"<term {self.token} of {self.identity}>"


class LeaderElector:
    """Competes for a Lease, and runs code only while it holds the Lease.

        elector = LeaderElector(transport, "my-controller")
        async with elector.leading() as term:
            await controller.run()

    At most one leader is active at any time, provided that the block ends within `lease_duration` minus
    `renew_deadline` seconds after its deadline. For a stronger guarantee, pass `term.token` along with each write, and
    let the receiver refuse lower tokens.

    Args:
        transport: sends the requests; a `Connection` or a transport.
        name: the name of the Lease, which is created if it does not exist.
        namespace: the namespace of the Lease.

        identity: a unique identity for this candidate; the host name and a random part by default.
        options: the times of the election.
        labels: labels to set on the Lease; other labels stay.

        on_new_leader: called with the identity of each new leader that is observed, this process included, and with
            "" when there is none. A plain function; an exception is logged.
        random: returns a number in [0, 1), for the jitter.
        metrics: reads from time to time whether this process leads, under namespace and name of the Lease.
        event: records an Event about the Lease, with its type, reason and message, such as `recorder.event`: when this
            candidate begins and stops leading, as in client-go, and if the Lease has a much longer duration than its
            own.

    Attributes:
        identity: the identity of this candidate.
        lease: the Lease as log lines and errors name it.

    Raises:
        UsageError: the name, the namespace or the identity is empty.
    """

    def __init__(
        self,
        transport: Transport | Connection,
        name: str,
        namespace: str = "default",
        *,
        # Election
        identity: str | None = None,
        options: LeaderElectionOptions | None = None,
        labels: Mapping[str, str] | None = None,
        # Callbacks
        on_new_leader: Callable[[str], object] | None = None,
        random: Callable[[], float] = random.random,
        metrics: MetricsProvider | None = None,
        event: Callable[[ObjectReference, str, str, str], object] | None = None,
    ) -> None:
        check_metrics(metrics)
        check_election("", name, namespace, identity, options)
        plain_function(on_new_leader, "on_new_leader")
        self.identity = identity or f"{socket.gethostname()}_{uuid4()}"
        self._options = options or LeaderElectionOptions()
        transport = transport_of(transport)
        lock = LeaseLock(transport, name, namespace)
        self.lease = str(lock)
        self._attempts = LeaseAttempts(lock, self.identity, labels or {}, self._options, on_new_leader, event)
        self._machine = self._attempts.machine
        self._random = random
        self._watch = ObjectWatch(transport, name, namespace, random, on_event=self._take_event)
        self._competing = False
        self._metrics = metrics
        self._name = f"{namespace}/{name}"
        self._term: Term | None = None
        self._scope: asyncio.Timeout | None = None
        self._renewal: asyncio.Task[None] | None = None

    # Leading.

    @asynccontextmanager
    async def leading(self) -> AsyncIterator[Term]:
        """Wait until this process leads, and run the block while it does. Enter and leave it in the same task.

        When the leadership is lost, the block is cancelled. When the block ends by itself, it has led until its end,
        and the lease is released afterwards. You may enter it again, for another term.

        Raises:
            LeadershipLost: on exit, if the leadership ended before the block did.
            UsageError: this elector already competes or leads; or another one with metrics competes for the Lease.
        """
        running_loop(f"an elector of {self.lease} competes")
        with self._exclusive():
            await self._acquire()
            scope = asyncio.timeout_at(self._machine.deadline)
            self._scope = scope
            term = Term(self, self._machine.record.lease_transitions)
            self._term = term
            renewal = create_task(self._renew(scope), name=f"renewal of {self.lease}")
            self._renewal = renewal
            try:
                try:
                    async with scope:
                        yield term
                except TimeoutError:
                    if not scope.expired():
                        raise
                if scope.expired():
                    raise self._leadership_lost(renewal)
            finally:
                with shielded():
                    await self._end(renewal, term)

    async def run(self, main: Callable[[Term], Awaitable[T]]) -> T:
        """Wait until this process leads, and run an async function while it does.

        Args:
            main: an async function that only the leader runs. It is cancelled when the leadership is lost.

        Returns:
            The result of `main`.

        Raises:
            LeadershipLost: the leadership ended before `main` did.
            UsageError: as `leading`.
        """
        async with self.leading() as term:
            return await main(term)

    def stand(self, stands: bool) -> None:
        """Set whether this candidate may take a Lease that is free; otherwise, it observes. A leader goes on."""
        self._machine.stands = stands
        if stands:
            self._watch.wake()

    # Inspecting.

    def remaining(self, term: Term) -> float:
        """Return the seconds until a term ends unless it is renewed, as `term.remaining` does. Thread-safe.

        It is 0 or less for a term that has ended, also while this process leads in a later one.
        """
        scope = self._scope
        if term is not self._term or scope is None or scope.expired() or not self._machine.claimed:
            return 0.0
        return self._machine.deadline - loop_time()

    def is_leader(self) -> bool:
        """Return whether this process leads now. Any thread may call this."""
        term = self._term
        return term is not None and term.remaining > 0

    def leader(self) -> str:
        """Return the identity of the leader observed last, or "" for none. It may have changed since."""
        return self._machine.record.holder_identity

    def trouble(self) -> str:
        """Return what is wrong with the Lease, and what to do; "" for nothing. Any thread may call this."""
        return self._attempts.trouble

    @property
    def others_seen_at(self) -> float:
        """A time of the event loop's clock after which another candidate has changed the Lease; -inf for none."""
        return self._machine.others_seen_at

    def check(self, tolerance: float = 20.0) -> None:
        """Check the health of the election: raise if the block runs on although its lease has expired.

        Args:
            tolerance: for how many seconds the block may run on after its lease has expired.

        Raises:
            LeadershipLost: the block has run on for longer; restart the process.
        """
        if self._term is not None:
            late = asyncio.get_running_loop().time() - self._machine.expires
            if late > tolerance:
                raise LeadershipLost(f"{self.lease} expired {late:.0f} s ago, and the code that it guards still runs")

    @property
    def slow_paths(self) -> int:
        """The number of renewals so far that needed more than one request."""
        return self._machine.slow_paths

    def statistics(self) -> ElectorStatistics:
        """Return the numbers for metrics. Any thread may call this."""
        ended = not self._competing
        return ElectorStatistics(self._name, self.is_leader(), self.slow_paths, ended, self._machine.unheld)

    # Acquiring, renewing, ending.

    async def _acquire(self) -> None:
        try:
            try:
                await self._try_until_leading()
            finally:
                await self._watch.stop()
        except BaseException:
            # If a write was cancelled half-way, the server may have made us the leader.
            if self._machine.claimed:
                with shielded():
                    await self._attempts.release(self._options.request_timeout)
            raise
        self._attempts.report_leading()

    async def _try_until_leading(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            verdict = await self._attempts.attempt(self._options.renew_deadline)
            # With a slow answer, the deadline may have passed already.
            if verdict is Verdict.LEADING and loop.time() < self._machine.deadline:
                return
            if verdict is Verdict.NOT_LEADING:
                if self._machine.stands:
                    self._attempts.log_waiting()
                self._watch.start(self._machine.version)
            # As in client-go, `Retry-After` does not delay the next try: the lease may become free before that.
            await self._watch.wait(self._options.retry_period * (1 + JITTER * self._random()))

    async def _renew(self, scope: asyncio.Timeout) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                self._watch.start(self._machine.version)
                # `Retry-After` does not apply here either: without renewals the leadership ends.
                await self._watch.wait(self._options.retry_period)
                verdict = await self._attempts.attempt(self._machine.deadline - loop.time())
                if scope.expired():
                    return
                if verdict is Verdict.LEADING:
                    scope.reschedule(self._machine.deadline)
                elif verdict is Verdict.NOT_LEADING:
                    scope.reschedule(loop.time())
                    return
        except Exception:
            if not scope.expired():
                scope.reschedule(loop.time())
            raise

    def _take_event(self, lease: Mapping[str, Any], deleted: bool) -> bool:
        """Take an event of the watch into account; return whether to try at once."""
        wakes = self._attempts.observe_event(lease, deleted=deleted)
        if self._scope is not None and self._renewal is not None and not self._machine.claimed:
            self._renewal.cancel()  # an answer to a request that was sent earlier must not revive the term
            if not self._scope.expired():
                self._scope.reschedule(asyncio.get_running_loop().time())
        return wakes

    async def _end(self, renewal: asyncio.Task[None], term: Term) -> None:
        self._term = None
        self._scope = None
        self._renewal = None
        renewal.cancel()
        self._attempts.report_end()
        left = self._machine.expires - asyncio.get_running_loop().time()
        try:
            await asyncio.gather(renewal, self._watch.stop(), return_exceptions=True)
            if left <= 0:
                _log.error("%s expired %.1f s before the code that it guards ended", self.lease, -left)
            elif self._options.release and term.release and self._machine.claimed:
                await self._attempts.release(min(self._options.renew_deadline, left))
        finally:
            self._machine.give_up()

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        if self._competing:
            raise UsageError(f"this elector already competes for {self.lease}; use one elector for each block")
        if self._metrics is not None:
            self._metrics.register(self)
        self._competing = True
        try:
            yield
        finally:
            self._competing = False

    def _leadership_lost(self, renewal: asyncio.Task[None]) -> LeadershipLost:
        """Return the error to raise. Its cause is what ended the renewal task, or else the error of the last try."""
        leader = self.leader()
        other = f": {leader} leads" if leader not in ("", self.identity) else ""
        error = LeadershipLost(f"{self.identity} has lost {self.lease}{other}")
        crashed = renewal.done() and not renewal.cancelled()
        error.__cause__ = (renewal.exception() if crashed else None) or self._machine.error
        return error
