"""Leadership of a manager: compete for a Lease, run what only the leader may run in each term, and compete again.

The term is a scope: a lost Lease cancels what was started in it, and nothing else. Caches, queues and controllers that
need no leadership run outside of it, so a process that waits is a warm standby.
"""

from __future__ import annotations

import asyncio
import random as random_module
from typing import TYPE_CHECKING, Final

from aioinformer.concurrency import create_task, is_cancelled
from aioinformer.errors import OptionError
from aioinformer.leaderelection.elector import LeaderElector, LeadershipLost, Term, check_election
from aioinformer.leaderelection.lease import LeaderElectionOptions
from aioinformer.logs import get_logger
from aioinformer.resources.references import ObjectReference

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aioinformer.metrics.provider import MetricsProvider
    from aioinformer.transport import Transport
    from aioinformer.transport.auth.credentials import Connection

_log = get_logger("aioinformer.controller")

#: Seconds for which the guarded code may run on after its lease has expired, before the process is not alive.
TOLERANCE: Final = 20.0
#: Seconds after which a leader that renews its Lease has noticed all changes: its watch may have been silent.
_NOTICED: Final = 120.0


class LeaderElection:
    """Leader election of a manager: only the process that holds the Lease runs the elected controllers.

    Args:
        name: the name of the Lease, which is created if it does not exist.
        namespace: the namespace of the Lease.
        options: the times of the election.
        identity: a unique identity for this process; the host name and a random part by default.

    Attributes:
        name, namespace, options, identity: as given; `options` has the defaults if there were none.

    Raises:
        UsageError: an argument is invalid.
    """

    def __init__(
        self,
        name: str,
        namespace: str = "default",
        options: LeaderElectionOptions | None = None,
        identity: str | None = None,
    ) -> None:
        check_election("LeaderElection: ", name, namespace, identity, options)
        if options is not None and options.coordinated:
            raise OptionError(
                "LeaderElection: a manager does not take part in coordinated elections; use LeaderElector and "
                "LeaseCandidate, and run the manager without leader_election in the elector's block"
            )
        self.name = name
        self.namespace = namespace
        self.options = options or LeaderElectionOptions()
        self.identity = identity

    def __repr__(self) -> str:
        return f"<leader election by lease {self.namespace}/{self.name}>"


class Leadership:
    """Competes for the Lease of an election as long as `run` runs.

    Args:
        transport: sends the requests; a `Connection` or a transport.
        metrics: of the elector.
        event: of the elector.

    Attributes:
        term: the current term; None while this process does not lead.
        terms: how many terms this process has led so far.
    """

    def __init__(
        self,
        transport: Transport | Connection,
        election: LeaderElection,
        *,
        random: Callable[[], float] = random_module.random,
        metrics: MetricsProvider | None = None,
        event: Callable[[ObjectReference, str, str, str], object] | None = None,
    ) -> None:
        self.term: Term | None = None
        self.terms = 0
        name = election.name
        namespace = election.namespace
        identity = election.identity
        options = election.options
        self._options = options
        self._lease = f"{namespace}/{name}"
        self._elector = LeaderElector(
            transport, name, namespace, identity=identity, options=options, random=random, metrics=metrics, event=event
        )

    @property
    def identity(self) -> str:
        """The identity of this process."""
        return self._elector.identity

    @property
    def lease(self) -> str:
        """The Lease, as "namespace/name"."""
        return self._lease

    async def run(self, protected: Callable[[Term], Awaitable[object]]) -> None:
        """Run an async function in each term, until it returns or fails in one.

        When the leadership is lost, the function is cancelled, and the process competes again once it has ended. When
        it ends by itself or is cancelled from outside, the Lease is renewed until it has ended, and is then released.

        Args:
            protected: is called with the term, in each term anew.

        Raises:
            Exception: `protected` raised this, and it is not only `LeadershipLost`.
        """
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                async with self._elector.leading() as term:
                    began = loop.time()
                    self.term = term
                    self.terms += 1
                    try:
                        # A task of its own: a TaskGroup may leave a count of cancellations behind in its task.
                        await create_task(_call(protected, term), name=f"term {term.token} of {self.identity}")
                    finally:
                        self.term = None
            except (LeadershipLost, BaseExceptionGroup) as error:
                if not _is_loss(error):
                    raise
                if is_cancelled():  # the loss came while the cancelled function ended
                    raise asyncio.CancelledError from error
                _log.warning("%s after %.1f s; it competes again", _reason(error), loop.time() - began)
                # A term that ends at once must not become a loop of requests.
                await asyncio.sleep(max(0.0, began + self._options.retry_period - loop.time()))
            else:
                return

    def stand(self, stands: bool) -> None:
        """Set whether this process competes; otherwise, it observes. A leader goes on to lead."""
        self._elector.stand(stands)

    # Inspecting.

    def is_leader(self) -> bool:
        """Return whether this process leads now."""
        return self._elector.is_leader()

    def leader(self) -> str:
        """Return the identity of the leader observed last, or "" for none."""
        return self._elector.leader()

    def trouble(self) -> str:
        """Return what is wrong with the Lease, and what to do; "" for nothing. Any thread may call this."""
        return self._elector.trouble()

    def seen(self) -> float:
        """Return a time of the event loop's clock: another leader has seen what happened in the cluster before it.

        It has changed its Lease two minutes later. A silent watch is noticed after `idle_timeout`, 90 s by default.
        """
        return self._elector.others_seen_at - max(_NOTICED, 3 * self._options.lease_duration)

    def failure(self) -> str:
        """Return why this process is not alive as a candidate: the guarded code outlives its Lease; "" if it is."""
        try:
            self._elector.check(TOLERANCE)
        except LeadershipLost as error:
            return str(error)
        return ""

    def __repr__(self) -> str:
        return f"<leadership of {self.identity}: {self.term or 'standby'}>"


async def _call(protected: Callable[[Term], Awaitable[object]], term: Term) -> None:
    await protected(term)


def _is_loss(error: BaseException) -> bool:
    """Return whether an error consists only of losses of the leadership, as tasks of a group report it."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_loss, error.exceptions))
    return isinstance(error, LeadershipLost)


def _reason(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
