"""A machine of leader election in talk with a server that answers from a script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from aioinformer.errors import AioinformerError, ApiError, TransportError
from aioinformer.leaderelection.lease import (
    CreateLease,
    LeaderElectionOptions,
    LeaseMachine,
    LeaseRecord,
    LeaseReply,
    LeaseRequest,
    UpdateLease,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

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


class Talk:
    """A machine in talk with a server that answers from a script; each request takes a second.

    Attributes:
        asked: the requests of the last try.
    """

    def __init__(
        self, identity: str = "me", *, labels: Mapping[str, str] | None = None, coordinated: bool = False
    ) -> None:
        options = LeaderElectionOptions(coordinated=coordinated)
        self.machine = LeaseMachine(identity, TEMPLATE, labels or {}, options)
        self.now = 100.0
        self.asked: list[LeaseRequest] = []

    def attempt(self, *answers: Mapping[str, Any] | AioinformerError | None) -> Verdict:
        """One try; None is an answer in which the server has taken what was written."""
        return self._run(self.machine.attempt(self.now, self.wall), answers)

    def release(self, *answers: Mapping[str, Any] | AioinformerError | None) -> AioinformerError | None:
        return self._run(self.machine.release(), answers)

    @property
    def wall(self) -> str:
        return f"at {self.now:g}"

    @property
    def verbs(self) -> list[str]:
        return [type(request).__name__.removesuffix("Lease").lower() for request in self.asked]

    @property
    def written(self) -> LeaseRecord:
        """The record of the last write."""
        request = self.asked[-1]
        assert isinstance(request, (CreateLease, UpdateLease))
        return LeaseRecord.of(request.lease)

    def _run(
        self,
        talk: Generator[LeaseRequest, LeaseReply, T],
        answers: tuple[Mapping[str, Any] | AioinformerError | None, ...],
    ) -> T:
        self.asked = [next(talk)]
        for answer in answers:
            if answer is None:
                request = self.asked[-1]
                assert isinstance(request, (CreateLease, UpdateLease))
                metadata = {**request.lease["metadata"], "resourceVersion": f"v{self.now:g}"}
                answer = {**request.lease, "metadata": metadata}
            self.now += 1
            try:
                self.asked.append(talk.send(LeaseReply(answer, self.now, self.wall)))
            except StopIteration as stop:
                result: T = stop.value
                return result
        raise AssertionError(f"nothing was to answer {self.asked[-1]}")


def leading() -> Talk:
    """A machine that leads, by a write of 101."""
    talk = Talk()
    assert talk.attempt(NOT_FOUND, None) is Verdict.LEADING
    return talk
