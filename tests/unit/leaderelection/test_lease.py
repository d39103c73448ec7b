"""The record in a Lease, and the state machine of leader election, step by step, without an event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import LeaderElectionOptions
from aioinformer.leaderelection.lease import CreateLease, LeaseRecord, UpdateLease, Verdict
from tests.unit.leaderelection.candidates import (
    CONFLICT,
    NO_ANSWER,
    NOT_FOUND,
    TEMPLATE,
    ScriptedMachine,
    leading,
    lease,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.errors import AioinformerError, ApiError


# Acquiring the lease.


@pytest.mark.conformance("LE-05", "LE-10")
def test_missing_lease_is_created_with_the_given_labels() -> None:
    scripted = ScriptedMachine(labels={"b": "2"})
    assert scripted.attempt(NOT_FOUND, None) is Verdict.LEADING
    assert scripted.verbs == ["get", "create"]
    assert scripted.written == LeaseRecord("me", 15, "at 101", "at 101", 0)
    request = scripted.requests[-1]
    assert isinstance(request, CreateLease)
    assert request.lease["metadata"] == {"name": "it", "labels": {"b": "2"}}


def test_versions_of_events_are_compared_as_numbers() -> None:
    scripted = ScriptedMachine()
    held = lease("other", 3)
    held["metadata"]["resourceVersion"] = "9"
    scripted.attempt(held)
    free = lease("", 3)
    free["metadata"]["resourceVersion"] = "10"
    assert scripted.machine.observe_event(free, scripted.now, deleted=False)
    assert not scripted.machine.observe_event(held, scripted.now, deleted=False)
    assert scripted.machine.record.holder_identity == ""


@pytest.mark.conformance("LE-05")
@pytest.mark.parametrize("held", [lease(""), {**lease(), "spec": {}}, {**lease(), "spec": None}, lease("", 4)])
def test_lease_without_holder_is_acquired(held: dict[str, Any]) -> None:
    scripted = ScriptedMachine()
    assert scripted.attempt(held, None) is Verdict.LEADING
    transitions = LeaseRecord.of(held).lease_transitions
    assert scripted.written == LeaseRecord("me", 15, "at 101", "at 101", transitions + 1)


@pytest.mark.conformance("LE-03", "LE-05")
@pytest.mark.parametrize("seconds", [15, 60])
def test_lease_unchanged_for_the_duration_in_its_record_is_taken_over(seconds: int) -> None:
    scripted, held = ScriptedMachine(), lease("other", 3, seconds=seconds)
    scripted.attempt(held)
    scripted.now += seconds - 1.1
    assert scripted.attempt(held) is Verdict.NOT_LEADING
    assert scripted.attempt(held, None) is Verdict.LEADING
    assert scripted.written.lease_transitions == 4


@pytest.mark.conformance("LE-03")
def test_changing_lease_is_held_regardless_of_its_times() -> None:
    scripted = ScriptedMachine()
    for number in range(5):
        assert scripted.attempt(lease("other", written=f"1970-01-01T00:00:0{number}Z")) is Verdict.NOT_LEADING
        scripted.now += 14


@pytest.mark.conformance("LE-05")
@pytest.mark.parametrize("answers", [(NO_ANSWER,), (lease(), CONFLICT), (lease(), NO_ANSWER), (NOT_FOUND, CONFLICT)])
def test_failed_try_reports_its_error(answers: tuple[Any, ...]) -> None:
    scripted = ScriptedMachine()
    assert scripted.attempt(*answers) is Verdict.FAILED
    assert scripted.machine.error is answers[-1]


@pytest.mark.parametrize(("observed", "unheld"), [(lease("", 4), 60), (NOT_FOUND, 60), (lease("other"), 45)])
def test_time_without_a_holder_is_known(observed: Any, unheld: float) -> None:
    scripted = ScriptedMachine()
    scripted.machine.stands = False
    assert scripted.machine.unheld == 0
    scripted.attempt(observed)
    scripted.now += 14
    scripted.attempt(observed)
    assert scripted.machine.unheld == (0 if observed == lease("other") else pytest.approx(14, abs=2))
    scripted.now += 46
    scripted.attempt(NO_ANSWER)
    assert scripted.machine.unheld < 20, "what is not read is not known"
    scripted.attempt(observed)
    assert scripted.machine.unheld == pytest.approx(unheld, abs=3)
    scripted.machine.stands = True
    assert scripted.attempt(None) is Verdict.LEADING
    assert scripted.machine.unheld == 0


def test_lease_that_is_renewed_has_a_holder() -> None:
    scripted = ScriptedMachine()
    for number in range(5):
        scripted.attempt(lease("other", written=f"1970-01-01T00:00:0{number}Z"))
        assert scripted.machine.unheld == 0
        scripted.now += 14


def aside(observed: Any) -> ScriptedMachine:
    """Return a machine that has observed the Lease while it did not stand, and stands now."""
    scripted = ScriptedMachine()
    scripted.machine.stands = False
    assert scripted.attempt(observed) is Verdict.NOT_LEADING
    scripted.machine.stands = True
    return scripted


@pytest.mark.parametrize(("observed", "verb", "term"), [(lease("", 4), "update", 5), (NOT_FOUND, "create", 0)])
def test_candidate_takes_the_free_lease_that_it_has_observed_by_one_write(observed: Any, verb: str, term: int) -> None:
    scripted = aside(observed)
    assert scripted.attempt(None) is Verdict.LEADING
    assert scripted.verbs == [verb]
    assert scripted.written == LeaseRecord("me", 15, "at 101", "at 101", term)
    assert scripted.machine.deadline == 101 + 10


@pytest.mark.parametrize("observed", [lease("", 4), NOT_FOUND])
@pytest.mark.parametrize("refusal", [CONFLICT, NOT_FOUND])
def test_lease_that_has_changed_since_it_was_observed_is_read(observed: Any, refusal: ApiError) -> None:
    scripted = aside(observed)
    assert scripted.attempt(refusal, lease("other", 5)) is Verdict.NOT_LEADING
    assert scripted.verbs[1:] == ["get"]
    assert not scripted.machine.claimed


def test_candidate_reads_a_lease_that_was_held_when_it_was_observed() -> None:
    scripted = aside(lease("other", 4))
    assert scripted.attempt(lease("other", 4)) is Verdict.NOT_LEADING
    assert scripted.verbs == ["get"]


def test_observed_lease_is_written_once_only() -> None:
    scripted = aside(lease("", 4))
    assert scripted.attempt(NO_ANSWER) is Verdict.FAILED
    assert scripted.attempt(lease("other", 5)) is Verdict.NOT_LEADING
    assert scripted.verbs == ["get"]


def test_write_without_an_answer_is_recognised_as_ours() -> None:
    scripted = ScriptedMachine()
    scripted.attempt(lease("", 4), NO_ANSWER)
    request = scripted.requests[-1]
    assert isinstance(request, UpdateLease)
    assert scripted.machine.claimed
    assert scripted.attempt(request.lease, None) is Verdict.LEADING
    assert scripted.written.lease_transitions == 5


@pytest.mark.parametrize("answer", [{}, {"metadata": None}, {"metadata": {}}, {"metadata": []}])
def test_answer_without_resource_version_is_no_lease(answer: dict[str, Any]) -> None:
    assert ScriptedMachine().attempt(answer) is Verdict.FAILED


# Renewing it.


@pytest.mark.conformance("LE-05")
def test_leader_renews_with_one_write() -> None:
    scripted = leading()
    began = scripted.written
    assert scripted.attempt(None) is Verdict.LEADING
    assert scripted.verbs == ["update"]
    assert scripted.written == LeaseRecord("me", 15, began.acquire_time, "at 102", began.lease_transitions)


@pytest.mark.conformance("LE-05", "LE-12")
@pytest.mark.parametrize("error", [CONFLICT, NO_ANSWER])
def test_leader_reads_after_a_failed_write(error: AioinformerError) -> None:
    scripted = leading()
    request = scripted.requests[-1]
    assert isinstance(request, CreateLease)
    stored = {**request.lease, "metadata": {"name": "it", "resourceVersion": "99"}}
    assert scripted.attempt(error, stored, None) is Verdict.LEADING
    assert scripted.verbs == ["update", "get", "update"]
    assert scripted.machine.slow_paths == 1
    assert scripted.written.lease_transitions == 0


@pytest.mark.parametrize(
    "held",
    [lease("other", 1), lease("", 0), lease("me", 1), lease("me", 0)],
    ids=["other holder", "no holder", "same identity, new term", "same identity, old term"],
)
def test_another_record_ends_the_term(held: dict[str, Any]) -> None:
    scripted = leading()
    assert scripted.attempt(CONFLICT, held) is Verdict.NOT_LEADING
    assert not scripted.machine.claimed


@pytest.mark.conformance("LE-06")
def test_deadline_counts_from_the_time_of_sending() -> None:
    scripted = leading()
    assert (scripted.machine.deadline, scripted.machine.expires) == (111, 116)
    scripted.now = 105
    scripted.attempt(None)
    assert (scripted.machine.deadline, scripted.machine.expires) == (115, 120)


# Releasing it.


@pytest.mark.conformance("LE-08")
def test_released_lease_has_no_holder_and_keeps_its_number() -> None:
    scripted = ScriptedMachine()
    scripted.attempt(lease("", 4), None)
    request = scripted.requests[-1]
    assert isinstance(request, UpdateLease)
    assert scripted.release(request.lease, None) is None
    assert scripted.verbs == ["get", "update"]
    assert scripted.written == LeaseRecord("", 1, "at 103", "at 103", 5)


@pytest.mark.conformance("LE-08")
@pytest.mark.parametrize("held", [lease("other", 9), lease("me", 9), lease("", 0), NOT_FOUND])
def test_lease_of_another_term_is_not_released(held: dict[str, Any] | ApiError) -> None:
    scripted = leading()
    assert scripted.release(held) is None
    assert scripted.verbs == ["get"]


@pytest.mark.conformance("LE-08")
@pytest.mark.parametrize("error", [CONFLICT, NO_ANSWER])
def test_failed_release_returns_its_error(error: AioinformerError) -> None:
    scripted = leading()
    request = scripted.requests[-1]
    assert isinstance(request, CreateLease)
    stored = {**request.lease, "metadata": {"name": "it", "resourceVersion": "99"}}
    assert scripted.release(stored, error) is error
    assert scripted.release(NO_ANSWER) is NO_ANSWER


def assigned(holder: str = "me", transitions: int = 3, **spec: Any) -> dict[str, Any]:
    """Return a Lease as the server's controller writes it."""
    made = lease(holder, transitions, seconds=5)
    return {**made, "spec": {**made["spec"], "strategy": "OldestEmulationVersion", **spec}}


def coordinated() -> ScriptedMachine:
    return ScriptedMachine(coordinated=True)


def chosen() -> ScriptedMachine:
    scripted = coordinated()
    assert scripted.attempt(assigned(), None) is Verdict.LEADING
    return scripted


@pytest.mark.conformance("LE-13")
@pytest.mark.parametrize(
    "answer", [NOT_FOUND, assigned("other"), assigned("")], ids=["no lease", "another holder", "no holder"]
)
def test_unassigned_lease_is_neither_created_nor_taken(answer: Any) -> None:
    scripted = coordinated()
    assert scripted.attempt(answer) is Verdict.NOT_LEADING
    scripted.now += 1000
    assert scripted.attempt(answer) is Verdict.NOT_LEADING
    assert scripted.verbs == ["get"]
    assert not scripted.machine.claimed


@pytest.mark.conformance("LE-13")
@pytest.mark.parametrize(("stored", "expected"), [("once", "once"), (None, "at 101")])
def test_assigned_candidate_renews_and_keeps_or_sets_what_was_stored(stored: str | None, expected: str) -> None:
    scripted = coordinated()
    assert scripted.attempt(assigned(acquireTime=stored), None) is Verdict.LEADING
    assert scripted.verbs == ["get", "update"]
    assert scripted.written == LeaseRecord("me", 15, expected, "at 101", 3)
    assert scripted.attempt(None) is Verdict.LEADING
    assert scripted.verbs == ["update"]
    assert scripted.written.acquire_time == expected
    request: Any = scripted.requests[-1]
    assert request.lease["spec"]["strategy"] == "OldestEmulationVersion"


@pytest.mark.conformance("LE-13")
def test_preferred_holder_ends_the_term_without_another_write() -> None:
    scripted = chosen()
    assert scripted.attempt(CONFLICT, assigned(preferredHolder="better")) is Verdict.NOT_LEADING
    assert scripted.verbs == ["update", "get"]
    assert not scripted.machine.claimed
    assert scripted.attempt(assigned(preferredHolder="better")) is Verdict.NOT_LEADING


@pytest.mark.conformance("LE-13")
@pytest.mark.parametrize(
    "answer", [NOT_FOUND, assigned("other", 4), assigned("me", 4)], ids=["deleted", "taken", "new term"]
)
def test_changed_assignment_ends_the_term(answer: Any) -> None:
    assert chosen().attempt(CONFLICT, answer) is Verdict.NOT_LEADING


@pytest.mark.conformance("LE-13")
def test_expired_assignment_is_not_renewed() -> None:
    scripted = coordinated()
    assert scripted.attempt(assigned(), NO_ANSWER) is Verdict.FAILED
    scripted.now += 5
    assert scripted.attempt(assigned()) is Verdict.NOT_LEADING
    assert scripted.verbs == ["get"]


@pytest.mark.conformance("LE-13")
def test_unanswered_renewal_keeps_the_term_until_its_deadline() -> None:
    scripted = chosen()
    assert scripted.attempt(NO_ANSWER, NO_ANSWER) is Verdict.FAILED
    assert scripted.machine.claimed
    assert scripted.machine.deadline == 101 + 10


# The Lease.


@pytest.mark.conformance("LE-10")
def test_other_fields_of_a_lease_stay() -> None:
    scripted = ScriptedMachine(labels={"b": "2"})
    held = lease()
    held["metadata"]["annotations"] = {"c": "3"}
    held["spec"]["strategy"] = "OldestEmulationVersion"
    scripted.attempt(held, None)
    request = scripted.requests[-1]
    assert isinstance(request, UpdateLease)
    assert request.lease["metadata"]["labels"] == {"a": "1", "b": "2"}
    assert request.lease["metadata"]["annotations"] == {"c": "3"}
    assert request.lease["metadata"]["resourceVersion"] == "7"
    assert request.lease["spec"]["strategy"] == "OldestEmulationVersion"


@pytest.mark.conformance("LE-10")
def test_record_round_trip() -> None:
    record = LeaseRecord("me", 15, "2026-01-02T03:04:05.000006Z", "2026-01-02T03:04:07.000008Z", 9)
    assert LeaseRecord.of(record.into(TEMPLATE, {})) == record


@pytest.mark.parametrize(
    "spec",
    ["x", [], {"renewTime": None}]
    + [
        {"leaseDurationSeconds": number, "leaseTransitions": number}
        for number in (10**400, -(10**400), 2**31, 1.5, float("inf"), "15", [15], None)
    ],
    ids=repr,
)
def test_invalid_fields_count_as_missing(spec: Any) -> None:
    assert LeaseRecord.of({"spec": spec}) == LeaseRecord()


# Options.


@pytest.mark.conformance("LE-01")
def test_default_times_are_those_of_kubernetes_components() -> None:
    options = LeaderElectionOptions()
    assert (options.lease_duration, options.renew_deadline, options.retry_period) == (15, 10, 2)


@pytest.mark.conformance("LE-10")
@pytest.mark.parametrize(("deadline", "timeout"), [(10.0, 5.0), (1.5, 1.0), (0.5, 0.5)])
def test_request_timeout_is_half_of_the_renew_deadline(deadline: float, timeout: float) -> None:
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
def test_inconsistent_times_are_refused(make: Callable[[], object], field: str) -> None:
    with pytest.raises(ValueError, match=field):
        make()
