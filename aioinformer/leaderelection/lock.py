"""A candidate's tries for a Lease: asks the server what `lease` wants to ask, and tells what comes of it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from aioinformer.errors import AioinformerError, TransportError
from aioinformer.leaderelection.lease import (
    CreateLease,
    GetLease,
    LeaderElectionOptions,
    LeaseMachine,
    LeaseReply,
    LeaseRequest,
    UpdateLease,
    Verdict,
)
from aioinformer.logs import get_logger
from aioinformer.resources.resource import Resource
from aioinformer.transport import Request
from aioinformer.transport.exchange import exchange
from aioinformer.workqueue.retry import is_conflict

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from aioinformer.leaderelection.lease import LeaseRequest
    from aioinformer.transport import Transport


LEASES: Resource[Any] = Resource("coordination.k8s.io", "v1", "leases", kind="Lease", model="V1Lease")

_HEADERS = {"Accept": "application/json", "Content-Type": "application/json"}


class LeaseLock:
    """Reads and writes one Lease.

    Args:
        transport: reaches the server.
        name: of the Lease.
        namespace: where it lives.

    Attributes:
        template: the Lease to create, without a spec.
    """

    def __init__(self, transport: Transport, name: str, namespace: str) -> None:
        self._transport = transport
        self._name = f"lease {namespace}/{name}"
        self._collection = LEASES.path(namespace)
        self._object = LEASES.path(namespace, name)
        self.template: Mapping[str, Any] = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": name, "namespace": namespace},
        }

    async def send(self, request: LeaseRequest, timeout: float) -> Mapping[str, Any] | AioinformerError:  # noqa: ASYNC109 - the answer says that it was too late
        """Sends a request; returns the Lease as the server has it now, or why not.

        Args:
            request: what to do.
            timeout: in seconds, for all of it. What was sent may come through all the same.
        """
        try:
            async with asyncio.timeout(timeout):
                return await exchange(self._transport, self._request(request, timeout), "Lease")
        except TimeoutError:
            return TransportError(f"no answer within {max(timeout, 0):g} s")
        except AioinformerError as error:
            return error

    def __str__(self) -> str:
        return self._name

    def _request(self, request: LeaseRequest, seconds: float) -> Request:
        match request:
            case GetLease():
                return Request(self._object, headers=_HEADERS, total_timeout=seconds)
            case CreateLease(lease):
                method, path = "POST", self._collection
            case UpdateLease(lease):
                method, path = "PUT", self._object
        return Request(path, method=method, headers=_HEADERS, body=msgspec.json.encode(lease), total_timeout=seconds)


T = TypeVar("T")

_log = get_logger("aioinformer.leaderelection")

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
