"""The machine of leader election, step by step, without a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.leaderelection.lease import (
    CreateLease,
    LeaseRecord,
    UpdateLease,
    Verdict,
)
from tests.leaderelection.talk import CONFLICT, NO_ANSWER, NOT_FOUND, Talk, leading, lease

if TYPE_CHECKING:
    from aioinformer.errors import AioinformerError, ApiError

    pass


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
