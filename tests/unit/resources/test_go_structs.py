"""Objects in the form in which the server stores them."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.resources.catalog.go_structs import Whole, stored_form
from aioinformer.resources.quantities import canonical


def stored_container(**members: Any) -> Any:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [members]}}
    return stored_form(pod)["spec"]["containers"][0]


def test_empty_values_are_left_out_unless_pointers_have_them() -> None:
    assert "value" not in stored_container(name="a", env=[{"name": "A", "value": ""}])["env"][0]
    assert "ports" not in stored_container(name="a", ports=[])  # merged
    assert stored_container(name="a", args=[])["args"] is None  # replaced
    assert stored_container(name="a", securityContext={"privileged": False})["securityContext"] == {"privileged": False}
    assert "tty" not in stored_container(name="a", tty=False)


def test_quantities_are_canonical_unless_kinds_round_them() -> None:
    limits = {"cpu": "1000m", "memory": 1024, "fine": "0.0005", "odd": "many"}
    expected = {"cpu": "1", "memory": "1024", "fine": "0.0005", "odd": "many"}
    assert stored_container(name="a", resources={"limits": limits})["resources"]["limits"] == expected


def test_references_are_replaced_as_a_whole_with_their_defaults() -> None:
    made = stored_container(name="a", env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}])
    reference = made["env"][0]["valueFrom"]["fieldRef"]
    assert reference == {"apiVersion": "v1", "fieldPath": "x"}
    assert isinstance(reference, Whole)
    assert not isinstance(made["env"][0]["valueFrom"], Whole)


def test_custom_resources_keep_all_but_empty_metadata() -> None:
    spec = {"parts": [], "size": 0}
    obj = {"apiVersion": "e/v1", "kind": "W", "metadata": {"name": "a", "labels": {}}, "spec": spec}
    assert stored_form(obj)["spec"] == spec
    assert "labels" not in stored_form(obj)["metadata"]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1.5", "1500m"),
        ("1.483", "1.483"),
        ("1e0", "1e0"),
        ("10e2", "1e3"),
        ("1000", "1k"),
        ("1024Ki", "1Mi"),
        ("1025Ki", "1025Ki"),
        ("1.5Gi", "1536Mi"),
        ("0.5", "500m"),
        ("0Ki", "0"),
        ("+1", "+1"),
    ],
)
def test_quantity_is_written_as_a_real_server_writes_it(text: str, written: str) -> None:
    assert canonical(text) == written
