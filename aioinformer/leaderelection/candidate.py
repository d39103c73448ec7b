"""Coordinated election: announce this process as a LeaseCandidate and keep the announcement current.

In coordinated election the server chooses a leader among the candidates for a Lease, by their versions. Each candidate
announces itself with a LeaseCandidate object, and renews it every five minutes and whenever the server pings it.

    async with LeaseCandidate(transport, "my-controller-0", lease="my-controller", binary_version="1.4.0") as candidate:
        options = LeaderElectionOptions(coordinated=True)
        async with LeaderElector(transport, candidate.lease, identity=candidate.name, options=options).leading():
            ...
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

from aioinformer.client.client import Client
from aioinformer.concurrency import Owner
from aioinformer.errors import AioinformerError, NotFound, UsageError
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.leaderelection.lock import wall_clock
from aioinformer.logs import get_logger
from aioinformer.reflector.listwatch import ListWatch
from aioinformer.resources.resource import Resource
from aioinformer.transport import Transport
from aioinformer.transport.clients import Connection, transport_of
from aioinformer.transport.slots import InLane
from aioinformer.workqueue.rate_limiters import ItemExponentialFailureRateLimiter
from aioinformer.workqueue.rate_limiting import RateLimitingQueue

LEASE_CANDIDATES: Resource[Any] = Resource(
    "coordination.k8s.io", "v1beta1", "leasecandidates", kind="LeaseCandidate", model=""
)

_log = get_logger("aioinformer.leaderelection")


class LeaseCandidate:
    """Announces this process as a candidate for a Lease while the block runs, in coordination.k8s.io/v1beta1.

    The object stays when the block ends, as in client-go; the server removes candidates that do not answer pings.

    Args:
        transport: sends the requests.
        name: a unique name for the candidate, also the identity of its elector.
        namespace: the namespace of the Lease and its candidates.

        lease: the name of the Lease.
        binary_version: the version of the program, such as "1.4.0".
        emulation_version: the version whose behaviour the program emulates; `binary_version` by default.
        strategy: how the server chooses the leader.
        renew_period: seconds between two renewals.

    Attributes:
        name: the name of the candidate.
        lease: the name of the Lease.

    Raises:
        UsageError: the name, namespace, lease or binary version is empty.
    """

    def __init__(
        self,
        transport: Transport | Connection,
        name: str,
        namespace: str = "default",
        *,
        lease: str,
        binary_version: str,
        emulation_version: str = "",
        strategy: str = "OldestEmulationVersion",
        renew_period: float = 300.0,
    ) -> None:
        if not all((name, namespace, lease, binary_version)):
            raise UsageError(
                "a candidate needs a name, a namespace, a lease and a binary_version, "
                f"not {name!r}, {namespace!r}, {lease!r} and {binary_version!r}"
            )
        self.name = name
        self.lease = lease
        LEASE_CANDIDATES.path(namespace, name)  # raises now if no LeaseCandidate can have this name
        own = InLane(transport_of(transport), "lease")
        self._candidates = Client(own, namespace=namespace, retry=False).resource(LEASE_CANDIDATES)
        self._namespace = namespace
        self._renew_period = renew_period
        self._spec = {
            "leaseName": lease,
            "binaryVersion": binary_version,
            "emulationVersion": emulation_version or binary_version,
            "strategy": strategy,
        }
        self._informer: SharedIndexInformer[Any] = SharedIndexInformer(
            ListWatch(transport, LEASE_CANDIDATES, namespace, field_selector=f"metadata.name={name}")
        )
        self._informer.add_event_handler(
            on_add=self._answer_ping,
            on_update=lambda old, new: self._answer_ping(new),
            on_delete=lambda obj: self._queue.add(name),
        )
        self._queue: RateLimitingQueue[str] = RateLimitingQueue(ItemExponentialFailureRateLimiter(0.1, 60.0), name=name)
        self._owner = Owner()

    async def run(self) -> None:
        """Announce the candidate and renew it, until cancelled."""
        async with self._informer, self._queue:
            await self._informer.wait_for_sync()
            self._queue.add(self.name)
            async for name in self._queue:
                try:
                    await self._announce()
                except AioinformerError as error:
                    _log.warning("lease candidate %s/%s was not renewed, retrying: %s", self._namespace, name, error)
                    self._queue.add_rate_limited(name)
                else:
                    self._queue.forget(name)
                    self._queue.add_after(name, self._renew_period)

    async def __aenter__(self) -> Self:
        self._owner.start(self.run, f"lease candidate {self.name}")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._owner.stop()

    def _answer_ping(self, candidate: Any) -> None:
        """Renew the candidate at once if the server has pinged it since its last renewal."""
        spec = candidate.get("spec") or {}
        if _time(spec.get("pingTime")) > _time(spec.get("renewTime")):
            self._queue.add(self.name)

    async def _announce(self) -> None:
        now = wall_clock()
        try:
            cached = self._informer.lister().namespaced(self._namespace).get(self.name)
        except NotFound:
            metadata = {"namespace": self._namespace, "name": self.name}
            written = await self._candidates.create({"metadata": metadata, "spec": {**self._spec, "renewTime": now}})
        else:
            spec = {**(cached.get("spec") or {}), **self._spec, "renewTime": now}
            written = await self._candidates.replace({**cached, "spec": spec})
        await self._informer.wait_for_resource_version(written.metadata.resource_version, timeout=None)


def _time(text: Any) -> float:
    """Return the timestamp of an API time in seconds; 0 if it is missing or invalid."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError):
        return 0.0
