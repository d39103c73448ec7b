"""What an earlier version has written, recorded: it has the formats of this version, which goes on with it.

It was recorded with commit 7536a066, whose Leases have no annotations. `make upgrade-check` runs that commit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aioinformer.client.changes.applied import difference
from aioinformer.client.changes.ownership import has_key, owned_fields

BEFORE = json.loads(Path(__file__).with_name("written_before.json").read_text())
NOW = json.loads(Path(__file__).with_name("written.json").read_text())
SERVER_SETS = {"uid", "resourceVersion", "creationTimestamp", "managedFields"}
CHILD = BEFORE["child"]


def members_of(value: Any) -> Any:
    """Return the members of an object, without those that the server sets."""
    if not isinstance(value, dict):
        return ""
    return {name: members_of(each) for name, each in value.items() if name not in SERVER_SETS}


@pytest.mark.parametrize("item", ["Lease of an election", "Lease of a ring", "ConfigMap of a ring", "Secret with a CA"])
def test_objects_have_the_same_members_and_manager(item: str) -> None:
    now = members_of(NOW[item])
    now["metadata"].pop("annotations", None)
    assert members_of(BEFORE[item]) == now
    [entry] = BEFORE[item]["metadata"]["managedFields"]
    assert [f"{entry['manager']} {entry['operation']}"] == NOW["field manager of the manager's own objects"][item]


def test_child_that_was_created_needs_no_write() -> None:
    metadata = {name: value for name, value in CHILD["metadata"].items() if name not in SERVER_SETS}
    wanted = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": CHILD["data"]}
    assert difference(wanted, CHILD, "web") == ""
    changed = {**wanted, "data": {"seq": "MQ=="}}
    assert difference(changed, CHILD, "web") == ".data.seq differs"


def test_child_that_was_created_belongs_to_its_controller() -> None:
    [owned] = owned_fields(CHILD, "web")
    [reference] = CHILD["metadata"]["ownerReferences"]
    assert has_key(owned["f:metadata"]["f:ownerReferences"], {"uid": reference["uid"]})
    assert owned_fields(CHILD, "other") == []
