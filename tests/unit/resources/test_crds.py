"""Resources that a CustomResourceDefinition serves."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from aioinformer.resources.crds import CustomResourceDefinition
from aioinformer.resources.resource import Resource

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
