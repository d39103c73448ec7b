"""The state machine of leader election, step by step, without an event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.leaderelection.lease import CreateLease, LeaseRecord, UpdateLease, Verdict
from tests.unit.leaderelection.scripted_machine import CONFLICT, NO_ANSWER, NOT_FOUND, ScriptedMachine, leading, lease

if TYPE_CHECKING:
    from aioinformer.errors import AioinformerError, ApiError


# Acquiring the lease.


@pytest.mark.conformance("LE-05")
def test_missing_lease_is_created() -> None:
    scripted = ScriptedMachine()
    assert scripted.attempt(NOT_FOUND, None) is Verdict.LEADING
    assert scripted.verbs == ["get", "create"]
    assert scripted.written == LeaseRecord("me", 15, "at 101", "at 101", 0)


@pytest.mark.conformance("LE-05")
@pytest.mark.parametrize("held", [lease(""), {**lease(), "spec": {}}, {**lease(), "spec": None}, lease("", 4)])
def test_lease_without_holder_is_acquired(held: dict[str, Any]) -> None:
    scripted = ScriptedMachine()
    assert scripted.attempt(held, None) is Verdict.LEADING
    transitions = LeaseRecord.of(held).lease_transitions
    assert scripted.written == LeaseRecord("me", 15, "at 101", "at 101", transitions + 1)


@pytest.mark.conformance("LE-05")
def test_held_lease_is_not_written() -> None:
    scripted = ScriptedMachine()
    assert scripted.attempt(lease("other")) is Verdict.NOT_LEADING
    assert scripted.machine.record.holder_identity == "other"


@pytest.mark.conformance("LE-03", "LE-05")
def test_lease_unchanged_for_its_duration_is_taken_over() -> None:
    scripted = ScriptedMachine()
    scripted.attempt(lease("other", 3))
    scripted.now += 13.9
    assert scripted.attempt(lease("other", 3)) is Verdict.NOT_LEADING
    assert scripted.attempt(lease("other", 3), None) is Verdict.LEADING
    assert scripted.written.lease_transitions == 4


@pytest.mark.conformance("LE-03")
def test_changing_lease_is_held_regardless_of_its_times() -> None:
    scripted = ScriptedMachine()
    for number in range(5):
        assert scripted.attempt(lease("other", written=f"1970-01-01T00:00:0{number}Z")) is Verdict.NOT_LEADING
        scripted.now += 14


@pytest.mark.conformance("LE-03")
def test_duration_in_the_record_applies() -> None:
    scripted = ScriptedMachine()
    scripted.attempt(lease("other", seconds=60))
    scripted.now += 50
    assert scripted.attempt(lease("other", seconds=60)) is Verdict.NOT_LEADING


@pytest.mark.conformance("LE-05")
@pytest.mark.parametrize("answers", [(NO_ANSWER,), (lease(), CONFLICT), (lease(), NO_ANSWER), (NOT_FOUND, CONFLICT)])
def test_failed_try_reports_its_error(answers: tuple[Any, ...]) -> None:
    scripted = ScriptedMachine()
    assert scripted.attempt(*answers) is Verdict.FAILED
    assert scripted.machine.error is answers[-1]


def test_deleted_lease_is_created_with_a_higher_number() -> None:
    scripted = ScriptedMachine()
    scripted.attempt(lease("other", 8))
    assert scripted.attempt(NOT_FOUND) is Verdict.NOT_LEADING
    scripted.now += 15
    assert scripted.attempt(NOT_FOUND, None) is Verdict.LEADING
    assert scripted.written.lease_transitions == 9


def test_another_process_with_our_identity_is_another_holder() -> None:
    scripted = ScriptedMachine("me")
    assert scripted.attempt(lease("me", 3)) is Verdict.NOT_LEADING
    scripted.now += 15
    assert scripted.attempt(lease("me", 3), None) is Verdict.LEADING
    assert scripted.written.lease_transitions == 4


def test_write_without_an_answer_is_recognised_as_ours() -> None:
    scripted = ScriptedMachine()
    scripted.attempt(lease("", 4), NO_ANSWER)
    request = scripted.requests[-1]
    assert isinstance(request, UpdateLease)
    assert scripted.machine.claimed
    assert scripted.attempt(request.lease, None) is Verdict.LEADING
    assert scripted.written.lease_transitions == 5


def test_refused_write_is_no_claim() -> None:
    scripted = ScriptedMachine()
    scripted.attempt(lease(), CONFLICT)
    assert not scripted.machine.claimed


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


def test_leader_recreates_its_deleted_lease_with_its_number() -> None:
    scripted = ScriptedMachine()
    scripted.attempt(lease("", 6), None)
    assert scripted.attempt(NOT_FOUND, NOT_FOUND, None) is Verdict.LEADING
    assert scripted.verbs == ["update", "get", "create"]
    assert scripted.written.lease_transitions == 7


def test_leader_without_answers_leads_until_its_deadline() -> None:
    scripted = leading()
    deadline = scripted.machine.deadline
    assert scripted.attempt(NO_ANSWER, NO_ANSWER) is Verdict.FAILED
    assert scripted.machine.claimed
    assert scripted.machine.deadline == deadline


@pytest.mark.conformance("LE-06")
def test_deadline_counts_from_the_time_of_sending() -> None:
    scripted = leading()
    assert (scripted.machine.deadline, scripted.machine.expires) == (111, 116)
    scripted.now = 105
    scripted.attempt(None)
    assert (scripted.machine.deadline, scripted.machine.expires) == (115, 120)


def test_leading_again_takes_a_new_number() -> None:
    scripted = leading()
    request = scripted.requests[-1]
    assert isinstance(request, CreateLease)
    stored = {**request.lease, "metadata": {"name": "it", "resourceVersion": "99"}}
    scripted.machine.give_up()
    assert scripted.attempt(stored) is Verdict.NOT_LEADING
    scripted.now += 15
    assert scripted.attempt(stored, None) is Verdict.LEADING
    assert scripted.written.lease_transitions == 1


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
