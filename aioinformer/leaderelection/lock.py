"""Send the requests of `lease` to the server: `LeaseLock` reads and writes a Lease, `LeaseAttempts` runs the tries."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from aioinformer.client.client import Client
from aioinformer.errors import AioinformerError, TransportError
from aioinformer.leaderelection.lease import (
    CreateLease,
    GetLease,
    LeaseMachine,
    LeaseReply,
    LeaseRequest,
    UpdateLease,
    Verdict,
    patience,
)
from aioinformer.logs import get_logger
from aioinformer.resources.references import ObjectReference
from aioinformer.resources.resource import Resource
from aioinformer.transport import Transport
from aioinformer.transport.clients import transport_of
from aioinformer.transport.slots import InLane
from aioinformer.workqueue.retry import is_conflict

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from aioinformer.leaderelection.lease import LeaderElectionOptions

T = TypeVar("T")

LEASES: Resource[Any] = Resource("coordination.k8s.io", "v1", "leases", kind="Lease", model="V1Lease")

decode_lease = msgspec.json.Decoder(dict[str, Any]).decode

#: Seconds between two tries to release a lease after a conflict.
_RELEASE_PAUSE = 0.1

_log = get_logger("aioinformer.leaderelection")


class LeaseLock:
    """Reads and writes one Lease.

    Attributes:
        template: the Lease to create, without a spec.
    """

    def __init__(self, transport: Transport, name: str, namespace: str) -> None:
        LEASES.path(namespace, name)  # raises now if no Lease can have this name
        # The election repeats what fails, at its own pace.
        self._lane = InLane(transport_of(transport), "lease")
        self._leases = Client(self._lane, namespace=namespace, retry=False).resource(LEASES, decoder=decode_lease)
        self._key = f"{namespace}/{name}"
        self.template: Mapping[str, Any] = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": name, "namespace": namespace},
        }

    async def send(self, request: LeaseRequest, timeout: float) -> Mapping[str, Any] | AioinformerError:  # noqa: ASYNC109 - a timeout is returned as an error
        """Send a request; return the Lease that the server answers with, or the error.

        After a timeout, which is that of the whole exchange in seconds, the request may still have succeeded. The next
        request uses a new connection then.
        """
        answer = await self._send(request, timeout)
        self._lane.fresh = isinstance(answer, TransportError)
        return answer

    async def _send(self, request: LeaseRequest, timeout: float) -> Mapping[str, Any] | AioinformerError:  # noqa: ASYNC109 - as `send`
        if timeout <= 0:
            return TransportError("no answer within 0 s")
        try:
            match request:
                case GetLease():
                    return await self._leases.get(self._key, timeout=timeout)
                case CreateLease(lease):
                    return await self._leases.create(lease, timeout=timeout)
                case UpdateLease(lease):
                    return await self._leases.replace(lease, timeout=timeout)
        except AioinformerError as error:
            return error

    def __str__(self) -> str:
        return f"lease {self._key}"


class LeaseAttempts:
    """Tries to acquire and to renew a Lease, one try at a time. The arguments are those of the `LeaderElector`.

    Attributes:
        machine: the state of the election.
        trouble: what is wrong with the Lease, and what to do; "" for nothing.
    """

    def __init__(
        self,
        lock: LeaseLock,
        identity: str,
        labels: Mapping[str, str],
        options: LeaderElectionOptions,
        on_new_leader: Callable[[str], object] | None,
        event: Callable[[ObjectReference, str, str, str], object] | None,
    ) -> None:
        self.trouble = ""
        self._event = event
        self.machine = LeaseMachine(identity, lock.template, labels, options)
        self._lock = lock
        self._identity = identity
        self._options = options
        self._on_new_leader = on_new_leader
        self._reported_leader = ""
        self._logged_failure = ""
        #: Seconds that the last answer took.
        self._latency = 0.0
        #: The holder of the last line about waiting, and whether it says that the Lease was deleted.
        self._logged_wait: tuple[str, bool] | None = None

    async def attempt(self, seconds: float) -> Verdict:
        """Try once to acquire or renew the lease, within this number of seconds."""
        loop = asyncio.get_running_loop()
        recreations = self.machine.recreations
        verdict = await self._perform(self.machine.attempt(loop.time(), wall_clock()), seconds)
        self._log_failure(self.machine.error if verdict is Verdict.FAILED else None)
        if self.machine.recreations > recreations:
            _log.warning("%s was deleted; its leader %s has created it again", self._lock, self._identity)
        self._report_leader()
        self._report_trouble()
        return verdict

    def observe_event(self, lease: Mapping[str, Any], *, deleted: bool) -> bool:
        """Take an event of the watch into account; see `LeaseMachine.observe_event`."""
        wakes = self.machine.observe_event(lease, asyncio.get_running_loop().time(), deleted=deleted)
        self._report_leader()
        return wakes

    def report_leading(self) -> None:
        """Log that this candidate leads, and record an Event."""
        self._logged_wait = None
        self._record("Normal", "LeaderElection", f"{self._identity} became leader")
        _log.info("%s leads: it holds %s, term %d", self._identity, self._lock, self.machine.record.lease_transitions)

    def report_end(self) -> None:
        """Record an Event: this candidate does not lead any more."""
        self._record("Normal", "LeaderElection", f"{self._identity} stopped leading")

    def _report_trouble(self) -> None:
        """Name a duration that may be a mistake: in the log and by an Event, once for each."""
        record = self.machine.record
        known = self.trouble
        self.trouble = ""
        if self.machine.is_too_long:
            self.trouble = (
                f"{self._lock}, held by {record.holder_identity}, has a duration of {record.lease_duration_seconds} s, "
                f"more than ten times the {self._options.lease_duration:g} s of this candidate: if its holder dies, no "
                "candidate leads for that long; pass the same options= to all candidates, or, if the holder has ended, "
                "delete the Lease"
            )
        if self.trouble and self.trouble != known:
            _log.error("%s", self.trouble)
            self._record("Warning", "LeaseTooLong", self.trouble)

    def _record(self, type: str, reason: str, message: str) -> None:
        if self._event is not None:
            metadata = self._lock.template["metadata"]
            about = ObjectReference(
                LEASES.api_version, LEASES.kind, metadata["name"], metadata["namespace"], self.machine.uid
            )
            try:
                self._event(about, type, reason, message)
            except Exception:
                _log.exception("%s: recording an Event raised", self._lock)

    def log_waiting(self) -> None:
        """Log whose Lease this candidate waits for: once for each holder, and once if the Lease of a holder is gone."""
        holder = self.machine.record.holder_identity
        deleted = self.machine.deleted
        if self._logged_wait in ((holder, deleted), (holder, True)):
            return
        self._logged_wait = holder, deleted
        if deleted:
            left = self.machine.expected_free_at - asyncio.get_running_loop().time()
            reason = f"which was deleted: the last observed term of {holder} may last for {left:.1f} s more"
        elif holder == self._identity:
            reason = "held by an earlier term of this process, or by another process with the same identity"
        else:
            reason = f"held by {holder}" if holder else "which has no holder"
        _log.info("%s waits for %s, %s", self._identity, self._lock, reason)

    async def release(self, seconds: float) -> None:
        """Release the lease, within this number of seconds. A failure is logged."""
        error: Exception | None = None
        try:
            async with asyncio.timeout(seconds):
                while True:
                    error = await self._perform(self.machine.release(), seconds)
                    if error is None or not is_conflict(error):
                        break
                    await asyncio.sleep(_RELEASE_PAUSE)
        except TimeoutError:
            error = error or TransportError(f"no answer within {seconds:.1f} s")
        except Exception as crash:  # must not replace the error of the guarded code
            error = crash
        finally:
            self.machine.give_up()
        if error is not None:
            _log.warning("%s was not released, other candidates wait until it expires: %s", self._lock, error)

    async def _perform(self, steps: Generator[LeaseRequest, LeaseReply, T], seconds: float) -> T:
        """Send the requests that a generator of the machine yields; return its result."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        request = next(steps)
        while True:
            sent = loop.time()
            answer = await self._lock.send(request, patience(self._options, until - sent, self._latency))
            if not isinstance(answer, TransportError):
                self._latency = loop.time() - sent
            try:
                request = steps.send(LeaseReply(answer, loop.time(), wall_clock()))
            except StopIteration as stop:
                result: T = stop.value
                return result

    def _log_failure(self, error: AioinformerError | None) -> None:
        """Log a failure unless it repeats the previous one. A conflict is none: another candidate was faster."""
        failure = "" if error is None or getattr(error, "status", 0) == 409 else str(error)
        if failure and failure != self._logged_failure:
            _log.warning("%s: %s", self._lock, failure)
        self._logged_failure = failure

    def _report_leader(self) -> None:
        known = self._reported_leader
        self._reported_leader = self.machine.record.holder_identity
        if self._on_new_leader is not None and known != self._reported_leader:
            try:
                self._on_new_leader(self._reported_leader)
            except Exception:
                _log.exception("%s: on_new_leader raised", self._lock)


def wall_clock() -> str:
    """Return the time of day as the API writes it in MicroTime fields. It informs people and decides nothing."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
