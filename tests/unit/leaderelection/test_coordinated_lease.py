"""Coordinated election: the server chooses the leader, and candidates renew what it assigns to them."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.leaderelection.lease import LeaseRecord, Verdict
from tests.unit.leaderelection.scripted_machine import CONFLICT, NO_ANSWER, NOT_FOUND, ScriptedMachine, lease


def assigned(holder: str = "me", transitions: int = 3, **spec: Any) -> dict[str, Any]:
    """Return a Lease as the server's controller writes it."""
    made = lease(holder, transitions, seconds=5)
    return {**made, "spec": {**made["spec"], "strategy": "OldestEmulationVersion", **spec}}


def coordinated() -> ScriptedMachine:
    return ScriptedMachine(coordinated=True)


def leading() -> ScriptedMachine:
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
def test_assigned_candidate_renews_and_leads() -> None:
    scripted = leading()
    assert scripted.verbs == ["get", "update"]
    assert scripted.written == LeaseRecord("me", 15, "once", "at 101", 3)


@pytest.mark.conformance("LE-13")
def test_leader_sets_a_missing_acquire_time() -> None:
    scripted = coordinated()
    assert scripted.attempt(assigned(acquireTime=None), None) is Verdict.LEADING
    assert scripted.written.acquire_time == "at 101"
    assert scripted.attempt(None) is Verdict.LEADING
    assert scripted.written.acquire_time == "at 101"


@pytest.mark.conformance("LE-13")
def test_renewals_keep_other_fields_of_the_spec() -> None:
    scripted = leading()
    assert scripted.attempt(None) is Verdict.LEADING
    request: Any = scripted.requests[-1]
    assert scripted.verbs == ["update"]
    assert request.lease["spec"]["strategy"] == "OldestEmulationVersion"


@pytest.mark.conformance("LE-13")
def test_preferred_holder_ends_the_term_without_another_write() -> None:
    scripted = leading()
    assert scripted.attempt(CONFLICT, assigned(preferredHolder="better")) is Verdict.NOT_LEADING
    assert scripted.verbs == ["update", "get"]
    assert not scripted.machine.claimed
    assert scripted.attempt(assigned(preferredHolder="better")) is Verdict.NOT_LEADING


@pytest.mark.conformance("LE-13")
@pytest.mark.parametrize(
    "answer", [NOT_FOUND, assigned("other", 4), assigned("me", 4)], ids=["deleted", "taken", "new term"]
)
def test_changed_assignment_ends_the_term(answer: Any) -> None:
    assert leading().attempt(CONFLICT, answer) is Verdict.NOT_LEADING


@pytest.mark.conformance("LE-13")
def test_expired_assignment_is_not_renewed() -> None:
    scripted = coordinated()
    assert scripted.attempt(assigned(), NO_ANSWER) is Verdict.FAILED
    scripted.now += 5
    assert scripted.attempt(assigned()) is Verdict.NOT_LEADING
    assert scripted.verbs == ["get"]


@pytest.mark.conformance("LE-13")
def test_unanswered_renewal_keeps_the_term_until_its_deadline() -> None:
    scripted = leading()
    assert scripted.attempt(NO_ANSWER, NO_ANSWER) is Verdict.FAILED
    assert scripted.machine.claimed
    assert scripted.machine.deadline == 101 + 10
