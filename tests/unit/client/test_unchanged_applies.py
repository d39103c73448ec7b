"""Applies that have changed nothing are known for a while."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.client.changes.unchanged import UnchangedApplies, attempt_of

DESIRED = b'{"spec":{"replicas":null}}'


def state(version: str, uid: str = "one") -> dict[str, Any]:
    return {"metadata": {"name": "a", "uid": uid, "resourceVersion": version}}


@pytest.fixture
def known() -> UnchangedApplies:
    """Knows of one apply that has changed nothing."""
    known = UnchangedApplies()
    known.note(attempt_of(state("5"), "me", "", DESIRED, force=False), state("5"), 100.0)
    return known


def test_same_apply_changes_nothing_for_ten_minutes(known: UnchangedApplies) -> None:
    same = attempt_of(state("5"), "me", "", DESIRED, force=False)
    assert known.includes(same, 101.0)
    assert known.includes(same, 699.0)
    assert not known.includes(same, 701.0)


@pytest.mark.parametrize(
    ("cached", "manager", "subresource", "desired", "force"),
    [
        (state("6"), "me", "", DESIRED, False),
        (state("5", "two"), "me", "", DESIRED, False),
        (state("5"), "you", "", DESIRED, False),
        (state("5"), "me", "status", DESIRED, False),
        (state("5"), "me", "", b"{}", False),
        (state("5"), "me", "", DESIRED, True),
    ],
    ids=["version", "uid", "manager", "subresource", "configuration", "force"],
)
def test_another_apply_may_change_something(
    known: UnchangedApplies, cached: Any, manager: str, subresource: str, desired: bytes, force: bool
) -> None:
    assert not known.includes(attempt_of(cached, manager, subresource, desired, force=force), 101.0)


def test_answer_with_another_version_is_a_change(known: UnchangedApplies) -> None:
    same = attempt_of(state("5"), "me", "", DESIRED, force=False)
    known.note(same, state("6"), 101.0)
    assert not known.includes(same, 102.0)


@pytest.mark.parametrize("cached", [{"metadata": {"name": "a"}}, object()], ids=["no version", "no metadata"])
def test_object_without_a_version_proves_nothing(cached: Any) -> None:
    known = UnchangedApplies()
    attempt = attempt_of(cached, "me", "", DESIRED, force=False)
    known.note(attempt, cached, 1.0)
    assert not known.includes(attempt, 2.0)


def test_number_of_known_objects_is_bounded() -> None:
    known = UnchangedApplies()
    attempts = [attempt_of(state("5", f"uid-{at}"), "me", "", DESIRED, force=False) for at in range(5000)]
    for at, attempt in enumerate(attempts):
        known.note(attempt, state("5", f"uid-{at}"), 1.0)
    assert sum(known.includes(each, 2.0) for each in attempts) == 4096
