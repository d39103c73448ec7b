"""The machine of leader election, step by step, without a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from aioinformer.errors import AioinformerError, ApiError, TransportError
from aioinformer.lease import (
    CreateLease,
    LeaderElectionOptions,
    LeaseMachine,
    LeaseReply,
    LeaseRequest,
    UpdateLease,
    Verdict,
)
from aioinformer.lease_record import LeaseRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

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

    def __init__(self, identity: str = "me", *, labels: Mapping[str, str] | None = None) -> None:
        self.machine = LeaseMachine(identity, TEMPLATE, labels or {}, LeaderElectionOptions())
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


# To become the leader.


@pytest.mark.conformance("LE-05")
def test_a_lease_that_does_not_exist_is_created() -> None:
    talk = Talk()
    assert talk.attempt(NOT_FOUND, None) is Verdict.LEADING
    assert talk.verbs == ["get", "create"]
    assert talk.written == LeaseRecord("me", 15, "at 101", "at 101", 0)


@pytest.mark.conformance("LE-05")
@pytest.mark.parametrize("held", [lease(""), {**lease(), "spec": {}}, {**lease(), "spec": None}, lease("", 4)])
def test_a_lease_that_nobody_holds_is_taken(held: dict[str, Any]) -> None:
    talk = Talk()
    assert talk.attempt(held, None) is Verdict.LEADING
    transitions = LeaseRecord.of(held).lease_transitions
    assert talk.written == LeaseRecord("me", 15, "at 101", "at 101", transitions + 1)


@pytest.mark.conformance("LE-05")
def test_a_lease_that_somebody_holds_is_left_alone() -> None:
    talk = Talk()
    assert talk.attempt(lease("other")) is Verdict.HELD
    assert talk.machine.record.holder_identity == "other"


@pytest.mark.conformance("LE-03", "LE-05")
def test_a_lease_that_has_not_changed_for_its_duration_is_taken_over() -> None:
    talk = Talk()
    talk.attempt(lease("other", 3))
    talk.now += 13.9
    assert talk.attempt(lease("other", 3)) is Verdict.HELD
    assert talk.attempt(lease("other", 3), None) is Verdict.LEADING
    assert talk.written.lease_transitions == 4


@pytest.mark.conformance("LE-03")
def test_a_lease_that_changes_is_held_whatever_times_are_written_in_it() -> None:
    talk = Talk()
    for number in range(5):
        assert talk.attempt(lease("other", written=f"1970-01-01T00:00:0{number}Z")) is Verdict.HELD
        talk.now += 14


@pytest.mark.conformance("LE-03")
def test_the_duration_is_that_of_the_record_and_not_of_who_reads_it() -> None:
    talk = Talk()
    talk.attempt(lease("other", seconds=60))
    talk.now += 50
    assert talk.attempt(lease("other", seconds=60)) is Verdict.HELD


@pytest.mark.conformance("LE-05")
@pytest.mark.parametrize("answers", [(NO_ANSWER,), (lease(), CONFLICT), (lease(), NO_ANSWER), (NOT_FOUND, CONFLICT)])
def test_a_try_that_fails_says_so(answers: tuple[Any, ...]) -> None:
    talk = Talk()
    assert talk.attempt(*answers) is Verdict.FAILED
    assert talk.machine.error is answers[-1]


def test_a_lease_that_was_deleted_meanwhile_gets_a_higher_number() -> None:
    talk = Talk()
    talk.attempt(lease("other", 8))
    assert talk.attempt(NOT_FOUND, None) is Verdict.LEADING
    assert talk.written.lease_transitions == 9


def test_another_process_of_the_same_identity_is_somebody_else() -> None:
    talk = Talk("me")
    assert talk.attempt(lease("me", 3)) is Verdict.HELD
    talk.now += 15
    assert talk.attempt(lease("me", 3), None) is Verdict.LEADING
    assert talk.written.lease_transitions == 4


def test_a_claim_whose_answer_was_lost_is_recognised() -> None:
    talk = Talk()
    talk.attempt(lease("", 4), NO_ANSWER)
    request = talk.asked[-1]
    assert isinstance(request, UpdateLease)
    assert talk.machine.claimed
    assert talk.attempt(request.lease, None) is Verdict.LEADING
    assert talk.written.lease_transitions == 5


def test_a_claim_that_was_refused_is_none() -> None:
    talk = Talk()
    talk.attempt(lease(), CONFLICT)
    assert not talk.machine.claimed


@pytest.mark.parametrize("answer", [{}, {"metadata": None}, {"metadata": {}}, {"metadata": []}])
def test_an_answer_without_a_version_is_no_lease(answer: dict[str, Any]) -> None:
    assert Talk().attempt(answer) is Verdict.FAILED


# To stay it.


@pytest.mark.conformance("LE-05")
def test_a_leader_renews_by_one_write() -> None:
    talk = leading()
    began = talk.written
    assert talk.attempt(None) is Verdict.LEADING
    assert talk.verbs == ["update"]
    assert talk.written == LeaseRecord("me", 15, began.acquire_time, "at 102", began.lease_transitions)


@pytest.mark.conformance("LE-05", "LE-12")
@pytest.mark.parametrize("error", [CONFLICT, NO_ANSWER])
def test_a_leader_whose_write_fails_reads_before_it_writes_again(error: AioinformerError) -> None:
    talk = leading()
    request = talk.asked[-1]
    assert isinstance(request, CreateLease)
    stored = {**request.lease, "metadata": {"name": "it", "resourceVersion": "99"}}
    assert talk.attempt(error, stored, None) is Verdict.LEADING
    assert talk.verbs == ["update", "get", "update"]
    assert talk.machine.slow_paths == 1
    assert talk.written.lease_transitions == 0


@pytest.mark.parametrize(
    "held",
    [lease("other", 1), lease("", 0), lease("me", 1), lease("me", 0)],
    ids=["somebody leads", "nobody leads", "a namesake leads", "a namesake led before"],
)
def test_a_leader_that_finds_another_record_leads_no_more(held: dict[str, Any]) -> None:
    talk = leading()
    assert talk.attempt(CONFLICT, held) is Verdict.HELD
    assert not talk.machine.claimed


def test_a_leader_whose_lease_was_deleted_makes_it_anew_under_its_number() -> None:
    talk = Talk()
    talk.attempt(lease("", 6), None)
    assert talk.attempt(NOT_FOUND, NOT_FOUND, None) is Verdict.LEADING
    assert talk.verbs == ["update", "get", "create"]
    assert talk.written.lease_transitions == 7


def test_a_leader_that_learns_nothing_stays_one_until_its_deadline() -> None:
    talk = leading()
    deadline = talk.machine.deadline
    assert talk.attempt(NO_ANSWER, NO_ANSWER) is Verdict.FAILED
    assert talk.machine.claimed
    assert talk.machine.deadline == deadline


@pytest.mark.conformance("LE-06")
def test_the_time_of_a_leader_counts_from_when_its_write_was_sent() -> None:
    talk = leading()
    assert (talk.machine.deadline, talk.machine.expires) == (111, 116)
    talk.now = 105
    talk.attempt(None)
    assert (talk.machine.deadline, talk.machine.expires) == (115, 120)


def test_who_gave_up_leads_again_only_under_a_new_number() -> None:
    talk = leading()
    request = talk.asked[-1]
    assert isinstance(request, CreateLease)
    stored = {**request.lease, "metadata": {"name": "it", "resourceVersion": "99"}}
    talk.machine.give_up()
    assert talk.attempt(stored) is Verdict.HELD
    talk.now += 15
    assert talk.attempt(stored, None) is Verdict.LEADING
    assert talk.written.lease_transitions == 1


# To give it back.


@pytest.mark.conformance("LE-08")
def test_a_released_lease_has_no_holder_and_keeps_its_number() -> None:
    talk = Talk()
    talk.attempt(lease("", 4), None)
    request = talk.asked[-1]
    assert isinstance(request, UpdateLease)
    assert talk.release(request.lease, None) is None
    assert talk.verbs == ["get", "update"]
    assert talk.written == LeaseRecord("", 1, "at 103", "at 103", 5)


@pytest.mark.conformance("LE-08")
@pytest.mark.parametrize("held", [lease("other", 9), lease("me", 9), lease("", 0), NOT_FOUND])
def test_what_is_not_ours_is_not_released(held: dict[str, Any] | ApiError) -> None:
    talk = leading()
    assert talk.release(held) is None
    assert talk.verbs == ["get"]


@pytest.mark.conformance("LE-08")
@pytest.mark.parametrize("error", [CONFLICT, NO_ANSWER])
def test_a_release_that_fails_says_why(error: AioinformerError) -> None:
    talk = leading()
    request = talk.asked[-1]
    assert isinstance(request, CreateLease)
    stored = {**request.lease, "metadata": {"name": "it", "resourceVersion": "99"}}
    assert talk.release(stored, error) is error
    assert talk.release(NO_ANSWER) is NO_ANSWER


# The Lease.


@pytest.mark.conformance("LE-10")
def test_what_else_is_in_a_lease_stays_in_it() -> None:
    talk = Talk(labels={"b": "2"})
    held = lease()
    held["metadata"]["annotations"] = {"c": "3"}
    held["spec"]["strategy"] = "OldestEmulationVersion"
    talk.attempt(held, None)
    request = talk.asked[-1]
    assert isinstance(request, UpdateLease)
    assert request.lease["metadata"]["labels"] == {"a": "1", "b": "2"}
    assert request.lease["metadata"]["annotations"] == {"c": "3"}
    assert request.lease["metadata"]["resourceVersion"] == "7"
    assert request.lease["spec"]["strategy"] == "OldestEmulationVersion"


@pytest.mark.conformance("LE-10")
def test_a_new_lease_has_the_labels_that_were_asked_for() -> None:
    talk = Talk(labels={"b": "2"})
    talk.attempt(NOT_FOUND, None)
    request = talk.asked[-1]
    assert isinstance(request, CreateLease)
    assert request.lease["metadata"] == {"name": "it", "labels": {"b": "2"}}


@pytest.mark.conformance("LE-10")
def test_a_record_is_the_same_after_a_way_through_a_lease() -> None:
    record = LeaseRecord("me", 15, "2026-01-02T03:04:05.000006Z", "2026-01-02T03:04:07.000008Z", 9)
    assert LeaseRecord.of(record.into(TEMPLATE, {})) == record


@pytest.mark.parametrize(
    "spec", ["x", [], {"leaseDurationSeconds": "15"}, {"leaseTransitions": 1.5}, {"renewTime": None}]
)
def test_odd_fields_are_as_missing_ones(spec: Any) -> None:
    assert LeaseRecord.of({"spec": spec}) == LeaseRecord()


# Options.


@pytest.mark.conformance("LE-01")
def test_the_times_are_those_of_kubernetes_components() -> None:
    options = LeaderElectionOptions()
    assert (options.lease_duration, options.renew_deadline, options.retry_period) == (15, 10, 2)


@pytest.mark.conformance("LE-10")
@pytest.mark.parametrize(("deadline", "timeout"), [(10.0, 5.0), (1.5, 1.0), (0.5, 0.5)])
def test_one_request_may_take_half_of_the_renew_deadline(deadline: float, timeout: float) -> None:
    options = LeaderElectionOptions(lease_duration=15, renew_deadline=deadline, retry_period=0.1)
    assert options.request_timeout == timeout


@pytest.mark.conformance("LE-02")
@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: LeaderElectionOptions(lease_duration=10), "lease_duration"),
        (lambda: LeaderElectionOptions(lease_duration=0.5, renew_deadline=0.2, retry_period=0.1), "lease_duration"),
        (lambda: LeaderElectionOptions(lease_duration=15.5), "whole seconds"),
        (lambda: LeaderElectionOptions(renew_deadline=2.4), "renew_deadline"),
        (lambda: LeaderElectionOptions(retry_period=0), "retry_period"),
        (lambda: LeaderElectionOptions(retry_period=-1), "retry_period"),
        (lambda: LeaderElectionOptions(renew_deadline=float("nan")), "renew_deadline"),
    ],
)
def test_times_that_do_not_fit_each_other_are_refused(make: Callable[[], object], field: str) -> None:
    with pytest.raises(ValueError, match=field):
        make()
