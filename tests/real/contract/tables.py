"""Shared by rows: paths, tables of variants, and objects to patch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import JSON_PATCH

if TYPE_CHECKING:
    from collections.abc import Mapping


# "{ns}" is the namespace of the row.
CONFIGMAPS = "/api/v1/namespaces/{ns}/configmaps"
PODS = "/api/v1/namespaces/{ns}/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
SERVICES = "/api/v1/namespaces/{ns}/services"
NAMESPACES = "/api/v1/namespaces"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ACCOUNTS = "/api/v1/namespaces/{ns}/serviceaccounts"
NO_FINALIZERS = {"metadata": {"finalizers": None}}

Row = tuple[str, dict[str, Any], dict[str, Any]]
"""Path of the collection, the object, and the patch."""


def variants(argument: str, table: Mapping[str, Any]) -> pytest.MarkDecorator:
    """Run a row for each entry of a table; the names of entries are part of the row's name."""
    return pytest.mark.parametrize(argument, [pytest.param(value, id=name) for name, value in table.items()])


def setting(path: str, value: Any, content_type: str) -> Any:
    """Return a patch that sets one value."""
    if content_type == JSON_PATCH:
        return [{"op": "add", "path": path, "value": value}]
    for name in reversed(path.split("/")[1:]):
        value = {name: value}
    return value


def named(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", **metadata}}


def pod_spec(*containers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"containers": list(containers) or [{"name": "c", "image": "i"}], **fields}


def deployment(*containers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod_spec(*containers, **fields)}
    return {**named(), "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}


def in_deployment(made: dict[str, Any], **spec: Any) -> Row:
    """Return a row that patches the pod template of a deployment."""
    return DEPLOYMENTS, made, {"spec": {"template": {"spec": spec}}}


def in_metadata(made: dict[str, Any], patch: dict[str, Any]) -> Row:
    """Return a row that patches the metadata of a ConfigMap."""
    return CONFIGMAPS, named(**made), {"metadata": patch}


POD = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


DEPLOYMENT: dict[str, Any] = {
    "metadata": {"name": "a"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]},
    },
}
