"""The catalog of built-in resources, and the resources that a CustomResourceDefinition serves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aioinformer import Resource
from aioinformer.resources import BUILTIN_RESOURCES
from aioinformer.resources.catalog import by_kind, find
from aioinformer.resources.crds import CustomResourceDefinition

DISCOVERY = json.loads((Path(__file__).parents[3] / "scripts" / "discovery.json").read_text())


def test_resource_is_found_by_its_plural() -> None:
    deployments = find("apps", "v1", "deployments")
    assert deployments is not None
    assert (deployments.kind, deployments.model, deployments.namespaced) == ("Deployment", "V1Deployment", True)
    assert (deployments.singular, deployments.short_names) == ("deployment", ("deploy",))
    assert deployments.categories == ("all",)
    assert deployments.subresources == ("scale", "status")


def test_resource_is_found_by_its_kind() -> None:
    assert by_kind("", "v1", "Node") is find("", "v1", "nodes")


@pytest.mark.parametrize("name", [("", "v1", "gadgets"), ("apps", "v0", "deployments"), ("app", "v1", "deployments")])
def test_other_resources_are_not_found(name: tuple[str, str, str]) -> None:
    assert find(*name) is None
    assert by_kind(*name) is None


def test_resources_of_equal_name_have_different_models() -> None:
    core, events = find("", "v1", "events"), find("events.k8s.io", "v1", "events")
    assert core is not None
    assert events is not None
    assert (core.kind, core.model) == ("Event", "CoreV1Event")
    assert (events.kind, events.model) == ("Event", "EventsV1Event")


@pytest.mark.parametrize("resource", BUILTIN_RESOURCES, ids=lambda resource: resource.gvr)
def test_catalog_equals_the_discovery_of_a_real_server(resource: Resource[Any]) -> None:
    recorded = DISCOVERY[resource.gvr]
    assert {
        "kind": resource.kind,
        "namespaced": resource.namespaced,
        "singular": resource.singular,
        "shortNames": list(resource.short_names),
        "subresources": list(resource.subresources),
        "verbs": list(resource.verbs),
        "categories": list(resource.categories),
    } == recorded


def test_names_are_unique() -> None:
    assert len({resource.gvr for resource in BUILTIN_RESOURCES}) == len(BUILTIN_RESOURCES) == len(DISCOVERY)


# Resources of a CustomResourceDefinition.


ESTABLISHED = {"conditions": [{"type": "Established", "status": "True", "reason": "InitialNamesAccepted"}]}


def definition(status: dict[str, Any] | None, scope: str = "Namespaced") -> CustomResourceDefinition:
    document = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": scope,
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "listKind": "WidgetList"},
            "versions": [
                {"name": "v1alpha1", "served": False, "storage": False, "schema": {}},
                {"name": "v1beta1", "served": True, "storage": False},
                {"name": "v1", "served": True, "storage": True},
            ],
        },
        **({} if status is None else {"status": status}),
    }
    return msgspec.json.decode(json.dumps(document), type=CustomResourceDefinition)


def test_stored_version_is_served_first() -> None:
    assert definition(ESTABLISHED).served() == [
        Resource("example.com", version, "widgets", "Widget", short_names=("wd",)) for version in ("v1", "v1beta1")
    ]
    assert not definition(ESTABLISHED, scope="Cluster").served()[0].namespaced
    assert definition(None).name == "widgets.example.com"


@pytest.mark.parametrize(
    "status",
    [
        None,
        {},
        {"conditions": None},
        {"conditions": [{"type": "Established", "status": "False"}, {"type": "NamesAccepted", "status": "True"}]},
    ],
)
def test_unestablished_definition_serves_nothing(status: dict[str, Any] | None) -> None:
    assert definition(status).served() == []
