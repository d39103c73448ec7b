"""What the observer of an upgrade finds in an audit log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.real.e2e.upgrade import Audit, Changed, faults_of

if TYPE_CHECKING:
    from pathlib import Path


class Log:
    """An audit log, and what the observer has found in it."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "audit.log"
        self._version = 0
        self.audit = Audit(folder)

    def take(self, verb: str, resource: str, name: str, code: int = 200, message: str = "", **sent: str) -> None:
        self._version += 1
        time = f"2026-03-01T00:00:{self._version:02}.000000Z"
        event: dict[str, Any] = {
            "stage": "ResponseComplete",
            "verb": verb,
            "requestURI": "/",
            "objectRef": {"resource": resource, "name": name},
            "responseStatus": {"code": code, "message": message},
            "requestReceivedTimestamp": time,
            "stageTimestamp": time,
            "requestObject": {"data": sent},
            "responseObject": {"metadata": {"name": name, "uid": name, "resourceVersion": str(self._version)}},
        }
        with self._file.open("a") as file:
            file.write(json.dumps(event) + "\n")

    def faults(self, children: list[str], done: str = "0") -> dict[str, list[str]]:
        """Return what is wrong, with these children of the object `elected-00` in the end."""
        self.audit.read()
        changed = Changed(["elected-00"])
        objects = [{"metadata": {"name": "elected-00"}, "data": {"done": done}}]
        secrets = [{"metadata": {"name": f"elected-00-{each}", "labels": {"child": each}}} for each in children]
        return {name: found for name, found in faults_of(self.audit, changed, objects, secrets, []).items() if found}


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


KEPT = ["keep-0", "keep-1"]


def test_leaders_one_after_the_other_and_their_children_are_no_fault(log: Log) -> None:
    log.take("create", "secrets", "elected-00-keep-0", 201)
    log.take("patch", "configmaps", "elected-00", by="a", epoch="1")
    log.take("patch", "configmaps", "elected-00", by="b", epoch="2")
    log.take("delete", "secrets", "elected-00-extra")
    assert log.faults(KEPT) == {}
    assert (log.audit.reviews, log.audit.applied, log.audit.pruned) == (2, 1, 1)


@pytest.mark.parametrize(("by", "epoch"), [("b", "2"), ("a", "1")])
def test_two_leaders_at_a_time_are_found(log: Log, by: str, epoch: str) -> None:
    log.take("patch", "configmaps", "elected-00", by="a", epoch="2")
    log.take("patch", "configmaps", "elected-00", by=by, epoch=epoch)
    assert [*log.faults(KEPT)] == ["terms with two leaders"]


def test_child_that_belongs_to_its_owner_is_not_deleted(log: Log) -> None:
    log.take("delete", "secrets", "elected-00-keep-0")
    assert log.faults(KEPT) == {"children pruned that belong to their owner": ["elected-00-keep-0"]}


def test_children_fit_their_owner_in_the_end(log: Log) -> None:
    log.take("patch", "configmaps", "elected-00", by="a", epoch="1")
    found = ["elected-00-extra", "elected-00-keep-1"]
    assert log.faults(["keep-0", "extra"]) == {"children that are missing or too many": found}


def test_refused_review_and_lost_change_are_found(log: Log) -> None:
    message = 'failed calling webhook "hook.example.com": x509: certificate signed by unknown authority'
    log.take("patch", "configmaps", "elected-00", 500, message)
    assert log.faults(KEPT, done="-1") == {
        "reviews refused": [f"patch elected-00: {message}"],
        "changes not processed": ["elected-00"],
    }
