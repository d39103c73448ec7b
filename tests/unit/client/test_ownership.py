"""Fields that move to an apply: those of former updates, and those of elements whose key somebody has changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aioinformer.client import managed_fields_upgrade
from aioinformer.client.changes.drift import Duplicate, duplicates, repair
from aioinformer.errors import Invalid, api_error


def entry(manager: str, operation: str, fields: Any, **others: Any) -> dict[str, Any]:
    made = {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1"}
    return {**made, "fieldsV1": fields, **others}


def with_managers(*entries: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "resourceVersion": "7", "managedFields": list(entries)}, **members}


# Former updates.


def of_data(name: str) -> dict[str, Any]:
    return {"f:data": {f"f:{name}": {}}}


A, B, C = map(of_data, "abc")
APPLIED, STATUS = entry("op", "Apply", A), entry("op", "Update", C, subresource="status")
OTHER = entry("x", "Update", C)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([entry("op", "Update", A)], [APPLIED]),
        ([APPLIED, entry("op", "Update", B)], [entry("op", "Apply", {"f:data": {"f:a": {}, "f:b": {}}})]),
        (
            [
                entry("op", "Update", A),
                entry("old", "Update", B, apiVersion="v1beta1"),
                entry("x", "Update", C),
                STATUS,
            ],
            [entry("op", "Apply", {"f:data": {"f:a": {}, "f:b": {}}}), entry("x", "Update", C), STATUS],
        ),
        ([entry("op", "Apply", A), entry("x", "Update", B), entry("old", "Apply", B)], None),
        ([STATUS], None),
        ([], None),
    ],
)
def test_updates_of_the_given_managers_become_applied(entries: list[Any], expected: list[Any] | None) -> None:
    patch = managed_fields_upgrade(with_managers(*entries), ["op", "old"], "op")
    if expected is None:
        assert patch is None
    else:
        assert patch == {"metadata": {"resourceVersion": "7", "managedFields": expected}}


def test_updates_of_a_subresource_are_moved_apart() -> None:
    both = with_managers(STATUS, entry("op", "Update", A))
    patch = managed_fields_upgrade(both, ["op"], "op", subresource="status")
    assert patch is not None
    moved = entry("op", "Apply", C, subresource="status")
    assert patch["metadata"]["managedFields"] == [moved, entry("op", "Update", A)]


# Keys that somebody has changed.


def refusal(*fields: str, reason: str = "FieldValueDuplicate") -> Invalid:
    causes = [{"reason": reason, "message": "Duplicate value", "field": each} for each in fields]
    found = api_error(422, {"reason": "Invalid", "message": "m", "details": {"causes": causes}})
    assert isinstance(found, Invalid)
    return found


PORTS = Duplicate(("spec", "ports"), "name")


def test_refusals_for_shared_members_alone_are_recognised() -> None:
    nested = Duplicate(("spec", "template", "spec", "containers", "[]", "ports"), "name")
    error = refusal("spec.ports[1].name", "spec.ports[2].name", "spec.template.spec.containers[0].ports[1].name")
    assert duplicates(error) == [PORTS, nested]
    assert str(nested) == "spec.template.spec.containers[].ports"
    assert duplicates(refusal("spec.ports[1].name", "spec.replicas")) == []
    assert duplicates(refusal("spec.ports[1].name", reason="FieldValueInvalid")) == []
    assert duplicates(refusal()) == []


def key(port: int, protocol: str = "TCP") -> str:
    return "k:" + json.dumps({"port": port, "protocol": protocol}, separators=(",", ":"))


def element(port: int, **others: Any) -> dict[str, Any]:
    return {"name": "sql", "port": port, "protocol": "TCP", "targetPort": "sql", **others}


def owner(manager: str, operation: str, *ports: int, **others: Any) -> dict[str, Any]:
    owned: dict[str, Any] = {key(port): {".": {}, "f:name": {}, "f:port": {}} for port in ports}
    return entry(manager, operation, {"f:spec": {"f:ports": {**owned, ".": {}}}}, **others)


WANTED = {"spec": {"ports": [{"name": "sql", "port": 5432, "targetPort": "sql"}]}}
OWN = entry("op", "Apply", {"f:spec": {"f:selector": {}}})
LIVE = {"ports": [element(9999)]}


def test_changed_key_of_an_own_element_is_found() -> None:
    live = with_managers(OWN, owner("edit", "Update", 9999, 1), entry("x", "Update", A), spec=LIVE)
    patch, reason = repair(WANTED, live, "op", [PORTS])
    assert reason == ""
    moved: Any = {"f:spec": {"f:selector": {}, "f:ports": {key(9999): {".": {}, "f:name": {}, "f:port": {}}}}}
    rest = [owner("edit", "Update", 1), entry("x", "Update", A)]
    assert patch == {"metadata": {"resourceVersion": "7", "managedFields": [entry("op", "Apply", moved), *rest]}}


def test_element_of_an_element_is_found() -> None:
    own = entry("op", "Apply", {"f:spec": {"f:containers": {'k:{"name":"main"}': {"f:image": {}}}}})
    ports: Any = {"f:ports": {'k:{"containerPort":81}': {"f:name": {}}}}
    edit = entry("edit", "Update", {"f:spec": {"f:containers": {'k:{"name":"main"}': ports}}})
    wanted = {"spec": {"containers": [{"name": "main", "ports": [{"name": "web", "containerPort": 80}]}]}}
    ports_of_both = [{"name": "web", "containerPort": 81}]
    containers = [{"name": "side", "ports": ports_of_both}, {"name": "main", "ports": ports_of_both}]
    live = with_managers(own, edit, spec={"containers": containers})
    patch, _ = repair(wanted, live, "op", [Duplicate(("spec", "containers", "[]", "ports"), "name")])
    assert patch is not None
    main = {"f:image": {}, **ports}
    assert patch["metadata"]["managedFields"] == [
        entry("op", "Apply", {"f:spec": {"f:containers": {'k:{"name":"main"}': main}}})
    ]


@pytest.mark.parametrize(
    ("entries", "live", "reason"),
    [
        ([OWN, owner("x", "Apply", 9999)], LIVE, "field manager 'x' applies"),
        ([OWN, owner("edit", "Update", 9999), owner("x", "Apply", 9999)], LIVE, "field manager 'x' applies"),
        ([OWN, owner("x", "Update", 9999, subresource="status")], LIVE, "field manager 'x' has written through status"),
        ([OWN, owner("x", "Update", 9999, apiVersion="v2")], LIVE, "field manager 'x' has written with v2"),
        ([OWN, owner("x", "Update", 1)], LIVE, "is recorded for no field manager"),
        ([OWN, owner("x", "Update", 9999)], {"ports": [element(9999, targetPort="web")]}, "has other fields, too"),
    ],
)
def test_element_of_others_is_left_with_the_reason(entries: list[Any], live: Any, reason: str) -> None:
    found = repair(WANTED, with_managers(*entries, spec=live), "op", [PORTS])
    shown = 'spec.ports has the element {"port":9999,"protocol":"TCP"} with the same name, which '
    assert found == (None, f"{shown}{reason}; remove it, or rename one of the two")


@pytest.mark.parametrize(
    ("wanted", "entries", "live"),
    [
        (WANTED, [owner("edit", "Update", 9999)], LIVE),  # the manager applies nothing
        (WANTED, [OWN, owner("edit", "Update", 9999)], {"ports": [element(9999), element(5432)]}),
        (WANTED, [OWN, owner("edit", "Update", 9999, 9998)], {"ports": [element(9999), element(9998)]}),
        (WANTED, [OWN, owner("edit", "Update", 9999)], {"ports": [element(9999, name="other")]}),
        (WANTED, [OWN, entry("edit", "Update", {"f:spec": {"f:ports": {}}})], LIVE),  # replaced as a whole
        ({"spec": {"ports": [*WANTED["spec"]["ports"], element(9999)]}}, [OWN, owner("edit", "Update", 9999)], LIVE),
    ],
)
def test_nothing_is_moved_without_one_element_in_the_way(wanted: Any, entries: list[Any], live: Any) -> None:
    assert repair(wanted, with_managers(*entries, spec=live), "op", [PORTS]) == (None, "")
