"""Candidates on virtual time, and the state machine of leader election with scripted answers instead of a server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from aioinformer import LeaderElectionOptions, LeaderElector
from aioinformer.errors import AioinformerError, ApiError, TransportError
from aioinformer.leaderelection import LeadershipLost, Term
from aioinformer.leaderelection.lease import (
    CreateLease,
    LeaseMachine,
    LeaseRecord,
    LeaseReply,
    LeaseRequest,
    UpdateLease,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from tests.support.lease_server import LeaseServer


def candidate(server: LeaseServer, identity: str = "me", **arguments: Any) -> LeaderElector:
    """Return an elector without jitter."""
    return LeaderElector(server, "it", identity=identity, random=lambda: 0.0, **arguments)


def now() -> float:
    return asyncio.get_running_loop().time()


async def led_for(elector: LeaderElector, seconds: float = 1e6) -> float:
    """Lead for at most `seconds`; return for how many seconds."""
    start = now()
    try:
        async with elector.leading():
            start = now()
            await asyncio.sleep(seconds)
    except LeadershipLost:
        pass
    return now() - start


async def work(term: Term) -> None:
    """Run until cancelled."""
    await asyncio.sleep(1e6)


T = TypeVar("T")

TEMPLATE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "it"}}
NOT_FOUND = ApiError(404, "NotFound")
CONFLICT = ApiError(409, "Conflict")
NO_ANSWER = TransportError("no answer")


def lease(holder: str = "", transitions: int = 0, *, seconds: int = 15, written: str = "then") -> dict[str, Any]:
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": seconds,
        "acquireTime": "once",
        "renewTime": written,
        "leaseTransitions": transitions,
    }
    return {**TEMPLATE, "metadata": {"name": "it", "resourceVersion": "7", "labels": {"a": "1"}}, "spec": spec}


class ScriptedMachine:
    """A machine whose requests get scripted answers; each request takes one second.

    Attributes:
        machine: the machine under test.
        requests: the requests of the last try.
    """

    def __init__(
        self, identity: str = "me", *, labels: Mapping[str, str] | None = None, coordinated: bool = False
    ) -> None:
        options = LeaderElectionOptions(coordinated=coordinated)
        self.machine = LeaseMachine(identity, TEMPLATE, labels or {}, options)
        self.now = 100.0
        self.requests: list[LeaseRequest] = []

    def attempt(self, *answers: Mapping[str, Any] | AioinformerError | None) -> Verdict:
        """Run one try. The answer None stands for success: the object as written, with a new version."""
        return self._run(self.machine.attempt(self.now, self.wall), answers)

    def release(self, *answers: Mapping[str, Any] | AioinformerError | None) -> AioinformerError | None:
        return self._run(self.machine.release(), answers)

    @property
    def wall(self) -> str:
        return f"at {self.now:g}"

    @property
    def verbs(self) -> list[str]:
        return [type(request).__name__.removesuffix("Lease").lower() for request in self.requests]

    @property
    def written(self) -> LeaseRecord:
        """The record of the last write."""
        request = self.requests[-1]
        assert isinstance(request, (CreateLease, UpdateLease))
        return LeaseRecord.of(request.lease)

    def _run(
        self,
        steps: Generator[LeaseRequest, LeaseReply, T],
        answers: tuple[Mapping[str, Any] | AioinformerError | None, ...],
    ) -> T:
        self.requests = [next(steps)]
        for answer in answers:
            if answer is None:
                request = self.requests[-1]
                assert isinstance(request, (CreateLease, UpdateLease))
                metadata = {**request.lease["metadata"], "resourceVersion": f"v{self.now:g}"}
                answer = {**request.lease, "metadata": metadata}
            self.now += 1
            try:
                self.requests.append(steps.send(LeaseReply(answer, self.now, self.wall)))
            except StopIteration as stop:
                result: T = stop.value
                return result
        raise AssertionError(f"unexpected request, no answer left: {self.requests[-1]}")


def leading() -> ScriptedMachine:
    """Return a machine that leads since a write sent at 101."""
    scripted = ScriptedMachine()
    assert scripted.attempt(NOT_FOUND, None) is Verdict.LEADING
    return scripted
