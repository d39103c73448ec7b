"""Leader election as a cancel scope: what stands in the block runs while this process leads, and no longer.

`lease` decides; here is who waits. The rules:

- The block has a deadline, as under `asyncio.timeout`, and each renewal moves it. So nothing has to work for a leader
  to stop: without a renewal, for whatever reason, the block is cancelled (LE-06).
- The order of the end is: the block has ended, renewing ends, the lease is given back, `leading()` is left. A block
  that is cancelled from outside, and takes its time, is protected by renewals until it has ended (LE-09).
- Who leads is a question to the clock, never a flag: a process that was stopped, or a loop that was held up, does not
  believe what was true before (`Term.check`). An event loop cannot interrupt what holds it up; that is why there is
  `Term.check`, and why `lease_duration` is longer than `renew_deadline`. A machine that is suspended stops that clock,
  too, and learns of it at the next renewal. Against that, and against writes that travel for long, the token helps.
"""

from __future__ import annotations

import asyncio
import random
import socket
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

import anyio

from aioinformer.concurrency import running_loop
from aioinformer.errors import AioinformerError, UsageError
from aioinformer.functions import plain_function
from aioinformer.leaderelection.lease import JITTER, LeaderElectionOptions, Verdict
from aioinformer.leaderelection.lock import LeaseAttempts, LeaseLock
from aioinformer.logs import get_logger
from aioinformer.transport.clients import transport_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

    from aioinformer.transport import Transport
    from aioinformer.transport.auth.credentials import Connection

T = TypeVar("T")

_log = get_logger("aioinformer.leaderelection")


class LeadershipLost(AioinformerError):
    """This process led, and does no longer. The cause, where there is one, is why the last renewal failed."""


class Term:
    """One time of leadership.

    Attributes:
        identity: of the leader.
        token: the number of the term (`leaseTransitions`), higher than that of each term before: a fencing token.
    """

    def __init__(self, elector: LeaderElector, token: int) -> None:
        self._elector = elector
        self.identity = elector.identity
        self.token = token

    @property
    def remaining(self) -> float:
        """Seconds for which this process leads, as far as is known now; 0 or less once it does not."""
        return self._elector._remaining(self)

    def check(self) -> None:
        """Does nothing while this process leads. To be called before what only a leader may do.

        Raises:
            LeadershipLost: it does not lead, even if nobody had the time to cancel this.
        """
        if self.remaining <= 0:
            raise LeadershipLost(f"{self._elector.identity} does not hold {self._elector.lease} any more")

    def __repr__(self) -> str:
        return f"<term {self.token} of {self.identity}>"


class LeaderElector:
    """Competes for a Lease, and guards what only its holder may do.

        elector = LeaderElector(transport, "my-controller")
        async with elector.leading() as term:
            await controller.run()

    One leader at most is there at any time, as long as no process runs on for longer than `lease_duration` minus
    `renew_deadline` after its deadline. Whoever needs more hands `term.token` to what is written to, and has it refuse
    lower ones.

    Args:
        transport: reaches the server; a `Connection` stands for its transport.
        name: of the Lease, which is made if it does not exist.
        namespace: where the Lease lives.

        identity: of this candidate, unlike all others; by default, host name and a random part.
        options: times.
        labels: for the Lease; others that it has stay.

        on_new_leader: called with the identity of each new leader that is seen, this process included, and with ""
            when there is none. A plain function; an exception is logged.
        random: for the jitter, gives numbers in [0, 1).

    Attributes:
        identity: of this candidate.
        lease: as messages name it.

    Raises:
        UsageError: name, namespace or identity are empty.
    """

    def __init__(
        self,
        transport: Transport | Connection,
        name: str,
        namespace: str = "default",
        *,
        # Who
        identity: str | None = None,
        options: LeaderElectionOptions | None = None,
        labels: Mapping[str, str] | None = None,
        # For others
        on_new_leader: Callable[[str], object] | None = None,
        random: Callable[[], float] = random.random,
    ) -> None:
        if not name or not namespace:
            raise UsageError(f"a Lease has a name and a namespace, not {name!r} in {namespace!r}")
        if identity == "":
            raise UsageError("identity must not be empty; leave it out to get one")
        if options is not None and not isinstance(options, LeaderElectionOptions):
            raise UsageError(f"options must be LeaderElectionOptions(...), not {type(options).__name__}")
        plain_function(on_new_leader, "on_new_leader")
        self.identity = identity or f"{socket.gethostname()}_{uuid4()}"
        self._options = options or LeaderElectionOptions()
        lock = LeaseLock(transport_of(transport), name, namespace)
        self.lease = str(lock)
        self._attempts = LeaseAttempts(lock, self.identity, labels or {}, self._options, on_new_leader)
        self._machine = self._attempts.machine
        self._random = random
        self._competing = False
        self._term: Term | None = None
        self._scope: asyncio.Timeout | None = None

    # Leading.

    @asynccontextmanager
    async def leading(self) -> AsyncIterator[Term]:
        """Waits until this process leads, and runs the block while it does. Enter and leave it in the same task.

        A block that ends, in whatever way, has led until its end, and the lease is given back after that. When
        leadership is lost the block is cancelled. It may be entered again, for another term.

        Raises:
            LeadershipLost: on leaving, leadership ended before the block did.
            UsageError: this elector competes or leads already.
        """
        running_loop(f"an elector of {self.lease} competes")
        with self._once():
            await self._acquire()
            self._scope = scope = asyncio.timeout_at(self._machine.deadline)
            self._term = term = Term(self, self._machine.record.lease_transitions)
            renewal = asyncio.create_task(self._renew(scope), name=f"renewal of {self.lease}")
            try:
                async with scope:
                    yield term
                if scope.expired():
                    raise self._lost() from self._why(renewal)
            except TimeoutError:
                if not scope.expired():
                    raise
                raise self._lost() from self._why(renewal)
            finally:
                with anyio.CancelScope(shield=True):
                    await self._end(renewal)

    async def run(self, main: Callable[[Term], Awaitable[T]]) -> T:
        """Waits until this process leads, and awaits a coroutine function while it does.

        Args:
            main: what only the leader does; is cancelled when leadership is lost.

        Returns:
            What it returned.

        Raises:
            LeadershipLost: leadership ended before it did.
        """
        async with self.leading() as term:
            return await main(term)

    # What others ask.

    def is_leader(self) -> bool:
        """Whether this process leads, now."""
        return self._term is not None and self._term.remaining > 0

    def leader(self) -> str:
        """The identity of the leader that was seen last, "" for none; it may have changed since."""
        return self._machine.record.holder_identity

    def check(self, tolerance: float = 20.0) -> None:
        """For health checks: does nothing while all is well, whether this process leads or not.

        Args:
            tolerance: so many seconds guarded work may go on after others could have become the leader.

        Raises:
            LeadershipLost: it goes on for longer than that; the process had better be ended.
        """
        if self._term is not None:
            late = asyncio.get_running_loop().time() - self._machine.expires
            if late > tolerance:
                raise LeadershipLost(f"{self.lease} expired {late:.0f} s ago, and what it guards has not ended")

    @property
    def slow_paths(self) -> int:
        """How many renewals needed more than one write, so far (LE-12)."""
        return self._machine.slow_paths

    # The parts of a term.

    async def _acquire(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                verdict = await self._attempts.attempt(self._options.renew_deadline)
                # An answer that took too long is true no more.
                if verdict is Verdict.LEADING and loop.time() < self._machine.deadline:
                    break
                # As in client-go, `Retry-After` does not delay the next try: the lease may be free long before it ends.
                await asyncio.sleep(self._options.retry_period * (1 + JITTER * self._random()))
        except BaseException:
            # Cancelled in the middle of a write, we may have become the leader without knowing.
            if self._machine.claimed:
                with anyio.CancelScope(shield=True):
                    await self._attempts.release(self._options.request_timeout)
            raise
        _log.info("%s holds %s, term %d", self.identity, self.lease, self._machine.record.lease_transitions)

    async def _renew(self, scope: asyncio.Timeout) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                # Whatever the server says of retries: a leader that keeps quiet for long is none.
                await asyncio.sleep(self._options.retry_period)
                verdict = await self._attempts.attempt(self._machine.deadline - loop.time())
                if scope.expired():
                    return
                if verdict is Verdict.LEADING:
                    scope.reschedule(self._machine.deadline)
                elif verdict is Verdict.HELD:
                    scope.reschedule(loop.time())
                    return
        except Exception:
            if not scope.expired():
                scope.reschedule(loop.time())
            raise

    async def _end(self, renewal: asyncio.Task[None]) -> None:
        self._term = self._scope = None
        renewal.cancel()
        left = self._machine.expires - asyncio.get_running_loop().time()
        try:
            await asyncio.gather(renewal, return_exceptions=True)
            if left <= 0:
                _log.error("%s expired %.1f s before what it guards had ended", self.lease, -left)
            elif self._options.release and self._machine.claimed:
                await self._attempts.release(min(self._options.renew_deadline, left))
        finally:
            self._machine.give_up()

    # Small things.

    def _remaining(self, term: Term) -> float:
        if term is not self._term or self._scope is None or self._scope.expired():
            return 0.0
        return self._machine.deadline - asyncio.get_running_loop().time()

    @contextmanager
    def _once(self) -> Iterator[None]:
        if self._competing:
            raise UsageError(f"this elector competes for {self.lease} already; make another one")
        self._competing = True
        try:
            yield
        finally:
            self._competing = False

    def _why(self, renewal: asyncio.Task[None]) -> BaseException | None:
        """What the renewal crashed with, or failed with last."""
        crashed = renewal.done() and not renewal.cancelled()
        return (renewal.exception() if crashed else None) or self._machine.error

    def _lost(self) -> LeadershipLost:
        leader = self.leader()
        other = f": {leader} leads" if leader not in ("", self.identity) else ""
        return LeadershipLost(f"{self.identity} has lost {self.lease}{other}")
