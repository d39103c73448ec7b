"""The record in a Lease, and the times of leader election."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.leaderelection.lease import CreateLease, LeaderElectionOptions, LeaseRecord, UpdateLease
from tests.unit.leaderelection.scripted_machine import NOT_FOUND, TEMPLATE, ScriptedMachine, lease

if TYPE_CHECKING:
    from collections.abc import Callable


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
def test_new_lease_has_the_given_labels() -> None:
    scripted = ScriptedMachine(labels={"b": "2"})
    scripted.attempt(NOT_FOUND, None)
    request = scripted.requests[-1]
    assert isinstance(request, CreateLease)
    assert request.lease["metadata"] == {"name": "it", "labels": {"b": "2"}}


@pytest.mark.conformance("LE-10")
def test_record_round_trip() -> None:
    record = LeaseRecord("me", 15, "2026-01-02T03:04:05.000006Z", "2026-01-02T03:04:07.000008Z", 9)
    assert LeaseRecord.of(record.into(TEMPLATE, {})) == record


@pytest.mark.parametrize(
    "spec", ["x", [], {"leaseDurationSeconds": "15"}, {"leaseTransitions": 1.5}, {"renewTime": None}]
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


@pytest.mark.parametrize("number", [10**400, -(10**400), 2**31, 1.5, float("inf"), "15", [15], None])
def test_numbers_beyond_int32_count_as_missing(number: object) -> None:
    record = LeaseRecord.of({"spec": {"leaseDurationSeconds": number, "leaseTransitions": number}})
    assert (record.lease_duration_seconds, record.lease_transitions) == (0, 0)
