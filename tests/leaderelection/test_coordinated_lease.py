"""Coordinated election: the server says who leads, candidates renew what they were given."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.leaderelection.lease import LeaseRecord, Verdict
from tests.leaderelection.talk import CONFLICT, NO_ANSWER, NOT_FOUND, Talk, lease


def given(holder: str = "me", transitions: int = 3, **spec: Any) -> dict[str, Any]:
    """A Lease as the server's own controller writes it."""
    made = lease(holder, transitions, seconds=5)
    return {**made, "spec": {**made["spec"], "strategy": "OldestEmulationVersion", **spec}}


def coordinated() -> Talk:
    return Talk(coordinated=True)


def leading() -> Talk:
    talk = coordinated()
    assert talk.attempt(given(), None) is Verdict.LEADING
    return talk


@pytest.mark.conformance("LE-13")
@pytest.mark.parametrize(
    "answer", [NOT_FOUND, given("other"), given("")], ids=["no lease", "held by another", "held by nobody"]
)
def test_what_was_not_given_is_neither_made_nor_taken(answer: Any) -> None:
    talk = coordinated()
    assert talk.attempt(answer) is Verdict.HELD
    talk.now += 1000
    assert talk.attempt(answer) is Verdict.HELD
    assert talk.verbs == ["get"]
    assert not talk.machine.claimed


@pytest.mark.conformance("LE-13")
def test_who_is_named_by_the_server_renews_and_leads() -> None:
    talk = leading()
    assert talk.verbs == ["get", "update"]
    assert talk.written == LeaseRecord("me", 15, "once", "at 101", 3)


@pytest.mark.conformance("LE-13")
def test_a_term_begins_when_the_leader_says_so_if_the_server_does_not() -> None:
    talk = coordinated()
    assert talk.attempt(given(acquireTime=None), None) is Verdict.LEADING
    assert talk.written.acquire_time == "at 101"
    assert talk.attempt(None) is Verdict.LEADING
    assert talk.written.acquire_time == "at 101"


@pytest.mark.conformance("LE-13")
def test_renewals_keep_what_the_server_wrote_beside_the_record() -> None:
    talk = leading()
    assert talk.attempt(None) is Verdict.LEADING
    request: Any = talk.asked[-1]
    assert talk.verbs == ["update"]
    assert request.lease["spec"]["strategy"] == "OldestEmulationVersion"


@pytest.mark.conformance("LE-13")
def test_a_preferred_holder_ends_the_term_without_another_write() -> None:
    talk = leading()
    assert talk.attempt(CONFLICT, given(preferredHolder="better")) is Verdict.HELD
    assert talk.verbs == ["update", "get"]
    assert not talk.machine.claimed
    assert talk.attempt(given(preferredHolder="better")) is Verdict.HELD


@pytest.mark.conformance("LE-13")
@pytest.mark.parametrize("answer", [NOT_FOUND, given("other", 4), given("me", 4)], ids=["deleted", "taken", "anew"])
def test_a_lease_that_is_not_the_one_that_was_given_ends_the_term(answer: Any) -> None:
    assert leading().attempt(CONFLICT, answer) is Verdict.HELD


@pytest.mark.conformance("LE-13")
def test_a_lease_that_nobody_renewed_for_its_duration_is_not_renewed_any_more() -> None:
    talk = coordinated()
    assert talk.attempt(given(), NO_ANSWER) is Verdict.FAILED
    talk.now += 5
    assert talk.attempt(given()) is Verdict.HELD
    assert talk.verbs == ["get"]


@pytest.mark.conformance("LE-13")
def test_a_server_that_does_not_answer_does_not_end_a_term_before_its_deadline() -> None:
    talk = leading()
    assert talk.attempt(NO_ANSWER, NO_ANSWER) is Verdict.FAILED
    assert talk.machine.claimed
    assert talk.machine.deadline == 101 + 10
