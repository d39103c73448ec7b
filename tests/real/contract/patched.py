"""Objects to patch, and patches that set one value of them."""

from __future__ import annotations

from typing import Any

from tests.real.contract.conversation import JSON_PATCH
from tests.real.contract.paths import CONFIGMAPS, DEPLOYMENTS, SERVICES

ACCOUNTS = "/api/v1/namespaces/{ns}/serviceaccounts"
NO_FINALIZERS = {"metadata": {"finalizers": None}}

Row = tuple[str, dict[str, Any], dict[str, Any]]
"""Path of the collection, the object, and the patch."""


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


def in_container(made: dict[str, Any], patch: dict[str, Any]) -> Row:
    """Return a row that patches a container of a deployment.

    Args:
        made: fields of the container besides name and image.
    """
    first = {"name": "c", "image": "i", **made}
    return in_deployment(deployment(first), containers=[{"name": "c", **patch}])


def in_pods(made: dict[str, Any], patch: dict[str, Any]) -> Row:
    """Return a row that patches the pod spec of a deployment."""
    return in_deployment(deployment(**made), **patch)


def in_service(ports: list[dict[str, Any]], patch: dict[str, Any], **fields: Any) -> Row:
    """Return a row that patches the spec of a service."""
    return SERVICES, {**named(), "spec": {"ports": ports, **fields}}, {"spec": patch}


def in_data(made: dict[str, Any] | None, patch: Any) -> Row:
    """Return a row that patches the data of a ConfigMap."""
    return CONFIGMAPS, named() if made is None else named() | {"data": made}, {"data": patch}


def in_metadata(made: dict[str, Any], patch: dict[str, Any]) -> Row:
    """Return a row that patches the metadata of a ConfigMap."""
    return CONFIGMAPS, named(**made), {"metadata": patch}
