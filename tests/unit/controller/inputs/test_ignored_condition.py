"""Which updates differ in one condition alone."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.controller.inputs.content import only_condition_changed
from tests.unit.controller.inputs.inputs import widget

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
