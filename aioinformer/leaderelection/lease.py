"""Who leads, decided from Leases: client-go's leader election without loop, clock or network.

The Lease is one object that all candidates write, each write on condition that nobody else wrote in between. The rules
(LE-03, LE-05, LE-08):

- No two clocks are compared. A candidate notes when *it* saw the record change; a holder whose record has not changed
  for as long as the record says has lost it. So clocks may be wrong, but must run at about the same speed.
- Of the own writes, the time counts at which they were sent, which is before anybody else can have seen them. So a
  leader stops believing in itself before anybody else stops believing in it.
- A leader renews by one write, with what the server answered last time (the fast path). If that fails, it reads first.
- What was claimed is recognised by holder, acquire time and number of transitions together. The name of the holder
  alone is not enough: another process may use the same identity, and is somebody else.
- Each term has a higher number of transitions than those before it: a fencing token, as long as the Lease is not
  deleted between two terms.

Where client-go is not followed: it takes a valid lease that bears its own identity for its own, and goes on with it; it
goes on as a leader, under a new number, when it finds that it was not the holder for a while; and it goes on for the
whole renew deadline when it reads that another leads. Here, each of these is the end of the term.

In coordinated election (LE-13) the server decides: it writes its choice among the candidates that announce themselves
(`lease_candidate`) into the Lease. A candidate writes nothing but renewals of what it was given. When the server names
another one that it would prefer, the term is over, and the Lease is left to the server.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias

from aioinformer.errors import AioinformerError, ApiError, DecodeError


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What a Lease says of leadership; times as they are written there.

    Attributes:
        holder_identity: who leads; "" for nobody.
        lease_duration_seconds: for how long, counted from when it is seen.
        acquire_time: when the term began, on the holder's clock.
        renew_time: when the holder last wrote, on its clock.
        lease_transitions: the number of the term.
    """

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str = ""
    renew_time: str = ""
    lease_transitions: int = 0

    @classmethod
    def of(cls, lease: Mapping[str, Any]) -> LeaseRecord:
        """The record in a Lease; what is missing or odd there is as in an empty one."""
        spec = lease.get("spec")
        if not isinstance(spec, Mapping):
            return cls()
        return cls(
            holder_identity=str(spec.get("holderIdentity") or ""),
            lease_duration_seconds=_int32(spec.get("leaseDurationSeconds")),
            acquire_time=str(spec.get("acquireTime") or ""),
            renew_time=str(spec.get("renewTime") or ""),
            lease_transitions=_int32(spec.get("leaseTransitions")),
        )

    def into(self, lease: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
        """The Lease with this record in it, and these labels among its own; everything else stays."""
        metadata = dict(lease.get("metadata") or {})
        if labels:
            metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
        spec = {
            **(lease.get("spec") or {}),
            "holderIdentity": self.holder_identity,
            "leaseDurationSeconds": self.lease_duration_seconds,
            "acquireTime": self.acquire_time or None,
            "renewTime": self.renew_time or None,
            "leaseTransitions": self.lease_transitions,
        }
        return {**lease, "metadata": metadata, "spec": spec}

    @property
    def term(self) -> tuple[str, str, int]:
        """What tells one term from all others."""
        return self.holder_identity, self.acquire_time, self.lease_transitions


def _int32(value: object) -> int:
    """The number, as far as the API's type holds it: a larger one cannot be added to a time."""
    return value if isinstance(value, int) and abs(value) < 2**31 else 0


#: The time between two tries to become the leader is drawn from [retry_period, retry_period * (1 + this)) (LE-04).
JITTER: Final = 1.2


@dataclass(frozen=True, slots=True)
class LeaderElectionOptions:
    """Times of leader election in seconds; the defaults are those of Kubernetes' own components (LE-01).

    Attributes:
        lease_duration: so long after the last renewal that they saw, others may take over. Whole seconds.
        renew_deadline: so long after its last renewal, a leader gives up. What is left until `lease_duration` is the
            time that guarded work has to end.
        retry_period: between two renewals, and, longer by a random part, between two tries to become the leader.
        release: give the lease back when the guarded work has ended, so that nobody has to wait for its end.
        coordinated: leave it to the server who leads; each candidate needs a `LeaseCandidate` of the same name.
    """

    lease_duration: float = 15
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    release: bool = True
    coordinated: bool = False

    def __post_init__(self) -> None:
        if not self.lease_duration >= 1 or self.lease_duration != int(self.lease_duration):
            raise ValueError(f"lease_duration must be whole seconds, as a Lease says it, not {self.lease_duration!r}")
        if not self.renew_deadline < self.lease_duration:
            raise ValueError(
                f"lease_duration must be greater than renew_deadline, not {self.lease_duration!r} and "
                f"{self.renew_deadline!r}"
            )
        if not self.retry_period > 0:
            raise ValueError(f"retry_period must be positive, not {self.retry_period!r}")
        if not self.renew_deadline > self.retry_period * JITTER:
            raise ValueError(
                f"renew_deadline must be greater than {JITTER} times retry_period, not {self.renew_deadline!r} and "
                f"{self.retry_period!r}"
            )

    @property
    def request_timeout(self) -> float:
        """For each request: half of the time there is to renew, so that one that hangs does not cost all of it."""
        return min(max(1.0, self.renew_deadline / 2), self.renew_deadline)


@dataclass(frozen=True, slots=True)
class GetLease:
    """Read the Lease."""


@dataclass(frozen=True, slots=True)
class CreateLease:
    """Make the Lease."""

    lease: dict[str, Any]


@dataclass(frozen=True, slots=True)
class UpdateLease:
    """Replace the Lease, if it still has the version that it has here."""

    lease: dict[str, Any]


LeaseRequest: TypeAlias = GetLease | CreateLease | UpdateLease


class LeaseReply(NamedTuple):
    """What a request came to: the Lease as the server has it now, or why not; and the time, on both clocks."""

    answer: Mapping[str, Any] | AioinformerError
    now: float
    wall: str


class Verdict(Enum):
    """How a try ended."""

    LEADING = "leading"
    #: Somebody else leads; if we did, our term is over.
    HELD = "held"
    #: Nothing is known; if we led, we still do until the deadline.
    FAILED = "failed"


class LeaseMachine:
    """One candidate's view of one Lease.

    `attempt` and `release` are generators: they yield requests and are sent replies.

    Args:
        identity: of the candidate.
        template: the Lease to create, without a record.
        labels: for the Lease.
        options: times.

    Attributes:
        record: the last that was seen.
        error: why the last try failed; None if it did not.
        slow_paths: how often a renewal needed more than one write (LE-12).
    """

    def __init__(
        self, identity: str, template: Mapping[str, Any], labels: Mapping[str, str], options: LeaderElectionOptions
    ) -> None:
        self.record = LeaseRecord()
        self.error: AioinformerError | None = None
        self.slow_paths = 0
        self._identity = identity
        self._template = template
        self._labels = dict(labels)
        self._options = options
        self._observed_at = float("-inf")
        self._seen = False
        #: The record of the term that we have, or may have: a request without an answer may have come through.
        self._claim: LeaseRecord | None = None
        self._leading = False
        #: When the last write that came through was sent.
        self._renewed_at = float("-inf")
        #: As the server has it, as far as we know.
        self._lease: Mapping[str, Any] = template

    @property
    def _seconds(self) -> int:
        return int(self._options.lease_duration)

    @property
    def claimed(self) -> bool:
        """Whether the lease is ours, or may be."""
        return self._claim is not None

    @property
    def deadline(self) -> float:
        """When a leader must stop to believe in itself."""
        return self._renewed_at + self._options.renew_deadline

    @property
    def expires(self) -> float:
        """Before this, nobody else can become the leader."""
        return self._renewed_at + self._options.lease_duration

    def attempt(self, now: float, wall: str) -> Generator[LeaseRequest, LeaseReply, Verdict]:
        """Tries once to become the leader, or to stay it."""
        if self._options.coordinated:
            return (yield from self._attempt_coordinated(now, wall))
        if self._leading and self._claim is not None:
            renewed = replace(self._claim, renew_time=wall)
            reply = yield UpdateLease(renewed.into(self._lease, self._labels))
            if self._granted(reply, renewed, now):
                return Verdict.LEADING
            self.slow_paths += 1
        reply = yield GetLease()
        if _is_not_found(reply):
            wanted = self._wanted(reply.wall, self.record.lease_transitions + 1 if self._seen else 0)
            request: LeaseRequest = CreateLease(wanted.into(self._template, self._labels))
        elif not self._observed(reply):
            return Verdict.FAILED
        elif self._held_by_another(reply.now):
            self.give_up()
            self.error = None
            return Verdict.HELD
        else:
            wanted = self._wanted(reply.wall, self.record.lease_transitions + 1)
            request = UpdateLease(wanted.into(self._lease, self._labels))
        self._claim, sent = wanted, reply.now
        reply = yield request
        return Verdict.LEADING if self._granted(reply, wanted, sent) else Verdict.FAILED

    def _attempt_coordinated(self, now: float, wall: str) -> Generator[LeaseRequest, LeaseReply, Verdict]:
        """Finds out whether the server has made this the leader, and renews that."""
        if self._leading and self._claim is not None:
            renewed = replace(self._claim, renew_time=wall)
            reply = yield UpdateLease(renewed.into(self._lease, self._labels))
            if self._granted(reply, renewed, now) and not self._is_to_end():
                return Verdict.LEADING
            self.slow_paths += 1
        reply = yield GetLease()
        if _is_not_found(reply):
            self.error = None
        elif not self._observed(reply):
            return Verdict.FAILED
        elif self._is_given(reply.now):
            claim = replace(self.record, renew_time=reply.wall, lease_duration_seconds=self._seconds)
            if not claim.acquire_time:  # the server leaves it to the leader
                claim = replace(claim, acquire_time=reply.wall)
            self._claim, sent = claim, reply.now
            reply = yield UpdateLease(claim.into(self._lease, self._labels))
            return Verdict.LEADING if self._granted(reply, claim, sent) else Verdict.FAILED
        self.give_up()
        self.error = None
        return Verdict.HELD

    def _is_given(self, now: float) -> bool:
        """Whether the Lease is ours by the will of the server: still, or newly."""
        same_term = not self._leading or (self._claim is not None and self.record.term == self._claim.term)
        valid = self._observed_at + self.record.lease_duration_seconds > now
        return self.record.holder_identity == self._identity and valid and same_term and not self._is_to_end()

    def _is_to_end(self) -> bool:
        """Whether the server would rather have another leader."""
        return bool((self._lease.get("spec") or {}).get("preferredHolder"))

    def release(self) -> Generator[LeaseRequest, LeaseReply, AioinformerError | None]:
        """Gives back what we have, if we have it; returns why it could not be done."""
        reply = yield GetLease()
        if _is_not_found(reply):
            return None
        if not self._observed(reply):
            return self.error
        if self._claim is not None and self.record.term == self._claim.term:
            # The shortest duration that a Lease can say, for those who look at nothing else.
            empty = LeaseRecord("", 1, reply.wall, reply.wall, self.record.lease_transitions)
            reply = yield UpdateLease(empty.into(self._lease, self._labels))
            if not self._observed(reply):
                return self.error
        return None

    def give_up(self) -> None:
        """Whatever we have is no longer ours: to lead again takes a new term."""
        self._claim, self._leading = None, False

    def _wanted(self, wall: str, transitions: int) -> LeaseRecord:
        """The record to write: of the term that we have, or of a new one."""
        if self._claim is not None and (self._leading or self.record.term == self._claim.term):
            return replace(self._claim, renew_time=wall)
        return LeaseRecord(self._identity, self._seconds, wall, wall, transitions)

    def _held_by_another(self, now: float) -> bool:
        record = self.record
        if self._claim is not None and record.term == self._claim.term:
            return False
        return self._leading or (
            record.holder_identity != "" and self._observed_at + record.lease_duration_seconds > now
        )

    def _granted(self, reply: LeaseReply, record: LeaseRecord, sent: float) -> bool:
        if self._observed(reply, sent) and self._is_ours(record):
            self._claim, self._leading, self._renewed_at, self.error = self.record, True, sent, None
            return True
        if isinstance(reply.answer, ApiError) and reply.answer.status < 500 and not self._leading:
            self._claim = None  # refused, so it did not come through
        return False

    def _is_ours(self, record: LeaseRecord) -> bool:
        """Whether the server has what we wrote, in whatever spelling of times."""
        seen = self.record
        return (seen.holder_identity, seen.lease_transitions) == (record.holder_identity, record.lease_transitions)

    def _observed(self, reply: LeaseReply, at: float | None = None) -> bool:
        """Notes what a reply says; whether it holds a Lease."""
        answer = reply.answer
        if isinstance(answer, AioinformerError):
            self.error = answer
            return False
        metadata = answer.get("metadata")
        if not isinstance(metadata, Mapping) or not metadata.get("resourceVersion"):
            # Without a version, the next write would be one without a condition.
            self.error = DecodeError("the server answered with something that is no Lease")
            return False
        self._lease = answer
        record = LeaseRecord.of(answer)
        if record != self.record or not self._seen:
            self.record, self._observed_at, self._seen = record, reply.now if at is None else at, True
        return True


def _is_not_found(reply: LeaseReply) -> bool:
    return isinstance(reply.answer, ApiError) and reply.answer.status == 404
