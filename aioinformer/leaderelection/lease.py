"""The decisions of leader election, computed from Leases without event loop, clock or network.

The Lease is one object that all candidates write, with optimistic concurrency. The rules, as in client-go:

- Clocks are not compared. A candidate records when *it* observed the record change. The lease has expired if the record
  has not changed for the duration written in it. So clocks may differ, but must run at about the same speed.
- A Lease without a holder is free at once.
- For its own writes, a leader counts from the time it sent the request, before any other candidate can observe the
  write. So a leader's deadline passes before another candidate considers the lease expired.
- A leader renews with one write, based on the server's last answer (the fast path). If the write fails, it reads first.
  So does a candidate that has observed the Lease until it stands: its start is shorter by one answer.
- A term is identified by holder, acquire time and number of transitions together. The holder's name alone is not
  enough: another process may use the same identity.
- The number of transitions grows with each term and serves as a fencing token, as long as the Lease is not deleted
  between two terms.
- A deletion of the Lease ends no term. The leader creates the Lease again, as a renewal. A candidate waits until the
  term that it observed last has run out; only a candidate that has observed no term creates the Lease at once.
- Events of a watch are observations like the answers to requests. Those older than the last answer are ignored.

This module ends the term in three cases in which client-go continues:

- A valid lease carries our identity but is not from our term.
- Another candidate held the lease in between.
- Another candidate holds the lease now. client-go continues until the renew deadline.

And it waits in two cases in which client-go does not: the Lease was deleted; and the candidate's own duration is longer
than that in the Lease, which a person may have edited.

In coordinated election the server decides: it writes the leader that it chooses among the LeaseCandidates into the
Lease. A candidate only renews a lease that the server has assigned to it. When the server names another preferred
holder, the term ends and the candidate stops writing the Lease.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias

from aioinformer.errors import AioinformerError, ApiError, DecodeError
from aioinformer.logs import without_values
from aioinformer.resources.versions import version_number

#: The time between two tries to acquire the lease is drawn from [retry_period, retry_period * (1 + JITTER)).
JITTER: Final = 1.2
#: A duration of more than this many times the own one is named: it may be a mistake.
_LONG: Final = 10
#: The shortest time for which an answer is awaited, in seconds, so that tries do not follow each other too fast.
_SHORTEST: Final = 1.0


@dataclass(frozen=True, slots=True)
class LeaderElectionOptions:
    """Times of leader election in seconds. The defaults are those of Kubernetes' own components.

    Attributes:
        lease_duration: how long after the last observed renewal other candidates wait before they take over; whole
            seconds.
        renew_deadline: how long after its last renewal a leader stops. The time from then until `lease_duration` is
            left for the guarded code to end.
        retry_period: the time between two renewals, and, plus jitter, between two tries to acquire the lease.
        release: release the lease when the guarded code has ended, so that other candidates need not wait until it
            expires.
        coordinated: let the server choose the leader; each candidate needs a `LeaseCandidate` of the same name.
    """

    lease_duration: float = 15
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    release: bool = True
    coordinated: bool = False

    def __post_init__(self) -> None:
        if not self.lease_duration >= 1 or self.lease_duration != int(self.lease_duration):
            raise ValueError(f"lease_duration must be whole seconds, at least 1, not {self.lease_duration!r}")
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
        """The timeout of each request: half of `renew_deadline`, so that a hanging request leaves time for another."""
        return min(max(1.0, self.renew_deadline / 2), self.renew_deadline)


def patience(options: LeaderElectionOptions, left: float, latency: float) -> float:
    """Return for how many seconds an answer is awaited that must come in `left` seconds.

    Another try, on a new connection, has at least as long, because the connection may be silent. If the server is slow,
    the other try has less, but at least a second: to give up an answer that is on its way would lose the leadership.

    Args:
        latency: how long the last answer took, in seconds; 0 for none.
    """
    slow = min(2 * latency, left - _SHORTEST)
    return min(options.request_timeout, left, max(_SHORTEST, left / 2, slow))


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The leadership fields of a Lease; times are strings as in the Lease.

    Attributes:
        holder_identity: the identity of the leader; "" for none.
        lease_duration_seconds: how long the lease is valid after a candidate has observed it.
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
        """Return the record in a Lease. Missing and invalid fields have the values of an empty record."""
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
        """Return the Lease with this record and these labels set; all other fields stay."""
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
        """What identifies a term."""
        return self.holder_identity, self.acquire_time, self.lease_transitions


@dataclass(frozen=True, slots=True)
class GetLease:
    """Read the Lease."""


@dataclass(frozen=True, slots=True)
class CreateLease:
    """Create the Lease."""

    lease: dict[str, Any]

    def __repr__(self) -> str:
        return without_values(self)


@dataclass(frozen=True, slots=True)
class UpdateLease:
    """Replace the Lease, provided that its resourceVersion is still the one given here."""

    lease: dict[str, Any]

    def __repr__(self) -> str:
        return without_values(self)


LeaseRequest: TypeAlias = GetLease | CreateLease | UpdateLease


class LeaseReply(NamedTuple):
    """The reply to a request: the Lease as the server returned it, or the error; and the time on both clocks."""

    answer: Mapping[str, Any] | AioinformerError
    now: float
    wall: str

    def __repr__(self) -> str:
        return without_values(self)


class Verdict(Enum):
    """The result of a try."""

    #: This candidate leads.
    LEADING = "leading"
    #: This candidate does not lead; its term has ended, if it had one.
    NOT_LEADING = "not leading"
    #: The request failed. If this candidate led, it leads until its deadline.
    FAILED = "failed"


class LeaseMachine:
    """One candidate's view of one Lease.

    `attempt` and `release` are generators: they yield requests, and the caller sends back the replies.

    Args:
        template: the Lease to create, without a record.

    Attributes:
        record: the record observed last.
        error: the error of the last try; None if it succeeded.
        others_seen_at: a time after which another candidate has changed the Lease, the latest known; -inf for none.
        deleted: whether the Lease has been deleted since it was observed.
        slow_paths: the number of renewals that needed more than one request.
        recreations: how often this candidate, as the leader, has created a deleted Lease again.
        stands: whether this candidate may take a Lease that is free. Otherwise, it observes.
    """

    def __init__(
        self, identity: str, template: Mapping[str, Any], labels: Mapping[str, str], options: LeaderElectionOptions
    ) -> None:
        self.record = LeaseRecord()
        self.error: AioinformerError | None = None
        self.slow_paths = 0
        self.recreations = 0
        self.stands = True
        self.deleted = False
        self._identity = identity
        self._template = template
        self._labels = dict(labels)
        self._options = options
        self._observed_at = float("-inf")
        self._read_at = float("-inf")
        self.others_seen_at = float("-inf")
        #: When the Lease was last read, or found missing.
        self._known_at = float("-inf")
        self._seen = False
        #: The record of our term. It is set before the write: a request without an answer may have succeeded.
        self._claim: LeaseRecord | None = None
        self._leading = False
        #: Whether the last try ended because this candidate does not stand.
        self._stood_aside = False
        #: When the last successful write was sent.
        self._renewed_at = float("-inf")
        #: The Lease as the server last returned it.
        self._lease: Mapping[str, Any] = template

    @property
    def _seconds(self) -> int:
        return int(self._options.lease_duration)

    @property
    def version(self) -> str:
        """The resourceVersion of the Lease as the server last returned it; "" before that."""
        return _version_of(self._lease)

    @property
    def uid(self) -> str:
        """The uid of the Lease as the server last returned it; "" before that."""
        return str((self._lease.get("metadata") or {}).get("uid") or "")

    @property
    def claimed(self) -> bool:
        """Whether the lease is ours, or may be: a write without an answer may have succeeded."""
        return self._claim is not None

    @property
    def expected_free_at(self) -> float:
        """When the lease may be taken over, unless it is renewed: a time of the past if it is free."""
        if not self.record.holder_identity:
            return float("-inf")
        return self._observed_at + max(self.record.lease_duration_seconds, self._options.lease_duration)

    @property
    def unheld(self) -> float:
        """For how many seconds the Lease had had no holder when it was last read, or found missing; 0 if it had one."""
        if self._leading or self._known_at == float("-inf"):
            return 0.0
        free_at = self.expected_free_at if self.record.holder_identity else self._observed_at
        return max(0.0, self._known_at - free_at)

    @property
    def is_too_long(self) -> bool:
        """Whether another candidate holds the lease with a duration of more than ten times the own one."""
        others = self.record.holder_identity not in ("", self._identity)
        return others and self.record.lease_duration_seconds > _LONG * self._options.lease_duration

    @property
    def deadline(self) -> float:
        """When this candidate stops leading, unless it renews the lease."""
        return self._renewed_at + self._options.renew_deadline

    @property
    def expires(self) -> float:
        """When other candidates may take the lease over at the earliest."""
        return self._renewed_at + self._options.lease_duration

    def attempt(self, now: float, wall: str) -> Generator[LeaseRequest, LeaseReply, Verdict]:
        """Try once to acquire the lease, or to renew it."""
        if self._options.coordinated:
            return (yield from self._attempt_coordinated(now, wall))
        if (yield from self._renew(now, wall)):
            return Verdict.LEADING
        reads = not self._may_write_at_once(now)
        self._stood_aside = False
        for _ in range(2 if reads else 3):
            if reads:
                reply = yield GetLease()
                now = reply.now
                wall = reply.wall
                if _is_not_found(reply):
                    self._note_missing(now)
                elif not self._observe(reply):
                    return Verdict.FAILED
            if self._is_held_by_another(now) or not (self.stands or self._leading):
                self._stood_aside = not self.stands
                self.give_up()
                self.error = None
                return Verdict.NOT_LEADING
            missing = self.deleted
            record = self._next_record(wall, self.record.lease_transitions + 1 if self._seen else 0)
            written = record.into(self._template if missing else self._lease, self._labels)
            self._claim = record
            sent = now
            led = self._leading
            reply = yield CreateLease(written) if missing else UpdateLease(written)
            if self._observe_write(reply, record, sent):
                self.recreations += missing and led
                return Verdict.LEADING
            if (reads and not self._leading) or getattr(reply.answer, "status", 0) not in (404, 409):
                break  # otherwise another candidate may hold the lease now, and then the term is over
            reads = True
        return Verdict.FAILED

    def observe_event(self, lease: Mapping[str, Any], now: float, *, deleted: bool) -> bool:
        """Take an event of a watch into account. If it shows that the term is over, the machine gives up.

        Of a deletion, the event has the last state of the Lease. `now` is when it was received.

        Returns:
            Whether to try at once: a leader that must create the Lease again, or is asked to make way; and a candidate
            to which the Lease is free or assigned, also by an own write whose answer was lost.
        """
        # The event of a deletion may have the version that the object had before.
        news = version_number(_version_of(lease)) - version_number(self.version)
        if news < 0 or (news == 0 and not deleted) or not self._observe(LeaseReply(lease, now, "")):
            return False
        self.deleted = deleted
        if not self._leading or self._claim is None:
            return self.record.holder_identity in ("", self._identity)
        if self.record.term != self._claim.term:
            self.give_up()
            self.error = None
            return False
        return deleted or self._has_preferred_holder()

    def _may_write_at_once(self, now: float) -> bool:
        """Return whether a candidate that has observed a free lease, and stands now, may take it by one write.

        The write has the version that was observed, so the server refuses it if the lease has changed since.
        """
        return self._stood_aside and self.stands and not self._is_held_by_another(now)

    def _renew(self, now: float, wall: str) -> Generator[LeaseRequest, LeaseReply, bool]:
        """Renew the lease of this leader by one write; return whether it goes on to lead. Count failures."""
        if not self._leading or self._claim is None:
            return False
        if not self.deleted:
            renewed = replace(self._claim, renew_time=wall)
            reply = yield UpdateLease(renewed.into(self._lease, self._labels))
            if self._observe_write(reply, renewed, now) and not self._has_preferred_holder():
                return True
        self.slow_paths += 1
        return False

    def _attempt_coordinated(self, now: float, wall: str) -> Generator[LeaseRequest, LeaseReply, Verdict]:
        """Renew the lease if the server has assigned it to this candidate."""
        if (yield from self._renew(now, wall)):
            return Verdict.LEADING
        reply = yield GetLease()
        if _is_not_found(reply):
            self.error = None
        elif not self._observe(reply):
            return Verdict.FAILED
        elif self._is_assigned(reply.now):
            claim = replace(self.record, renew_time=reply.wall, lease_duration_seconds=self._seconds)
            if not claim.acquire_time:  # the server lets the leader set it
                claim = replace(claim, acquire_time=reply.wall)
            self._claim = claim
            sent = reply.now
            reply = yield UpdateLease(claim.into(self._lease, self._labels))
            return Verdict.LEADING if self._observe_write(reply, claim, sent) else Verdict.FAILED
        self.give_up()
        self.error = None
        return Verdict.NOT_LEADING

    def _is_assigned(self, now: float) -> bool:
        """Return whether the server has assigned the Lease to this candidate, in this term or a new one."""
        same_term = not self._leading or (self._claim is not None and self.record.term == self._claim.term)
        valid = self._observed_at + self.record.lease_duration_seconds > now
        return (
            self.record.holder_identity == self._identity and valid and same_term and not self._has_preferred_holder()
        )

    def _has_preferred_holder(self) -> bool:
        """Return whether the server asks the holder to make way for another candidate, in a coordinated election."""
        return self._options.coordinated and bool((self._lease.get("spec") or {}).get("preferredHolder"))

    def release(self) -> Generator[LeaseRequest, LeaseReply, AioinformerError | None]:
        """Release the lease if it is ours; return the error if that fails."""
        reply = yield GetLease()
        if _is_not_found(reply):
            return None
        if not self._observe(reply):
            return self.error
        if self._claim is not None and self.record.term == self._claim.term:
            # 1 s is the shortest valid duration, for candidates that check only that.
            empty = LeaseRecord("", 1, reply.wall, reply.wall, self.record.lease_transitions)
            reply = yield UpdateLease(empty.into(self._lease, self._labels))
            if not self._observe(reply):
                return self.error
        return None

    def give_up(self) -> None:
        """End the term, without a request. Leading again takes a new term."""
        self._claim = None
        self._leading = False

    def _next_record(self, wall: str, transitions: int) -> LeaseRecord:
        """Return the record to write: of the current term, or of a new one."""
        if self._claim is not None and (self._leading or self.record.term == self._claim.term):
            return replace(self._claim, renew_time=wall)
        return LeaseRecord(self._identity, self._seconds, wall, wall, transitions)

    def _is_held_by_another(self, now: float) -> bool:
        record = self.record
        if self._claim is not None and record.term == self._claim.term:
            return False
        return self._leading or self.expected_free_at > now

    def _note_missing(self, now: float) -> None:
        """Note that the server does not have the Lease. Its last renewal may have been as late as this answer."""
        self._known_at = now
        if not self.deleted:
            self.deleted = True
            if not self._leading:
                self._observed_at = now

    def _observe_write(self, reply: LeaseReply, record: LeaseRecord, sent: float) -> bool:
        """Update the state from the reply to a write; return whether this candidate leads."""
        if self._observe(reply, sent) and self._is_ours(record):
            self._claim = self.record
            self._leading = True
            self._renewed_at = sent
            self.error = None
            return True
        if isinstance(reply.answer, ApiError) and reply.answer.status < 500 and not self._leading:
            self._claim = None  # the server refused the write, so it had no effect
        return False

    def _is_ours(self, record: LeaseRecord) -> bool:
        """Return whether the observed record is the one written; the server may format times differently."""
        seen = self.record
        return (seen.holder_identity, seen.lease_transitions) == (record.holder_identity, record.lease_transitions)

    def _observe(self, reply: LeaseReply, at: float | None = None) -> bool:
        """Update the observed record from a reply; return whether the reply holds a Lease."""
        answer = reply.answer
        if isinstance(answer, AioinformerError):
            self.error = answer
            return False
        metadata = answer.get("metadata")
        if not isinstance(metadata, Mapping) or not metadata.get("resourceVersion"):
            # Without a resourceVersion, the next write would be unconditional.
            self.error = DecodeError("the server's answer has no metadata.resourceVersion; expected a Lease")
            return False
        self._lease = answer
        self.deleted = False
        record = LeaseRecord.of(answer)
        now = reply.now if at is None else at
        if record != self.record or not self._seen:
            if record.holder_identity != self._identity:
                self.others_seen_at = self._read_at  # it was not changed before
            self.record = record
            self._observed_at = now
            self._seen = True
        self._read_at = now
        self._known_at = now
        return True


def _version_of(lease: Mapping[str, Any]) -> str:
    return str((lease.get("metadata") or {}).get("resourceVersion") or "")


def _is_not_found(reply: LeaseReply) -> bool:
    return isinstance(reply.answer, ApiError) and reply.answer.status == 404


def _int32(value: object) -> int:
    """Return the number if it fits into the API's int32, otherwise 0: a larger number cannot be added to a time."""
    return value if isinstance(value, int) and abs(value) < 2**31 else 0
