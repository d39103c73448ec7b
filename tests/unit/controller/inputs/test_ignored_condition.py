"""Which updates differ in one condition alone."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.controller.inputs.content import only_condition_changed
from tests.unit.controller.inputs.inputs import document, view_of, widget

READY = {"type": "Ready", "status": "True"}
FAILED = {"type": "Reconciled", "status": "False", "reason": "ReconcileFailed"}
WORKS = {"type": "Reconciled", "status": "True", "reason": "ReconcileSucceeded"}


def state(version: str = "1", size: int = 1, replicas: int = 3, *conditions: Any) -> Any:
    metadata = {"resourceVersion": version}
    return widget(spec={"size": size}, metadata=metadata, status={"replicas": replicas, "conditions": list(conditions)})


@pytest.mark.behaviour("C-144")
@pytest.mark.parametrize(
    ("new", "ignored"),
    [
        (state("2", 1, 3, READY, WORKS), True),
        (state("2", 1, 3, READY), True),
        (state("2", 1, 3, READY, FAILED), False),
        (state("2", 2, 3, READY, WORKS), False),
        (state("2", 1, 4, READY, WORKS), False),
        (state("2", 1, 3, {**READY, "status": "False"}, WORKS), False),
    ],
    ids=["changed", "gone", "nothing", "spec", "status", "other condition"],
)
def test_change_of_the_condition_alone_is_known(new: Any, ignored: bool) -> None:
    assert only_condition_changed(state("1", 1, 3, READY, FAILED), new, "Reconciled") == ignored


@pytest.mark.behaviour("C-144")
def test_first_condition_of_a_new_status_is_known() -> None:
    old, new = widget(status={}), widget(status={"conditions": [FAILED]})
    assert only_condition_changed(old, new, "Reconciled")


@pytest.mark.behaviour("C-144")
@pytest.mark.parametrize(
    ("old", "new", "ignored"),
    [
        ({}, {"conditions": [FAILED]}, True),
        (None, {"conditions": [FAILED]}, True),
        ({"conditions": [FAILED]}, None, True),
        ({"conditions": None}, {"conditions": [FAILED]}, True),
        ({"conditions": [FAILED]}, {"conditions": None}, True),
        ({"conditions": []}, {"conditions": [READY]}, False),
        ({"conditions": [READY]}, {"conditions": None}, False),
        ({"conditions": [FAILED]}, {"conditions": [FAILED], "replicas": 1}, False),
        ({}, None, False),
        ({"note": "x" * 200_000}, {"note": "x" * 200_000, "conditions": [FAILED]}, False),
    ],
    ids=[
        "first",
        "first of no status",
        "last",
        "null before",
        "null after",
        "other",
        "other gone",
        "more",
        "none",
        "large",
    ],
)
def test_missing_and_null_conditions_are_none(old: Any, new: Any, ignored: bool) -> None:
    assert only_condition_changed(widget(status=old), widget(status=new), "Reconciled") is ignored


@pytest.mark.behaviour("C-144")
def test_other_formatting_of_the_same_condition_is_no_change() -> None:
    members: dict[str, Any] = {"status": {"conditions": [FAILED]}}
    spaced = view_of(document(**members), indent=2)
    assert not only_condition_changed(widget(**members), spaced, "Reconciled")
    changed = view_of(document(status={"conditions": [WORKS]}), indent=2)
    assert only_condition_changed(widget(**members), changed, "Reconciled"), "in any form"
