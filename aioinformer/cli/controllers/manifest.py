"""Manifests for `kubectl apply`: objects as YAML, and the RBAC objects of a manager."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.cli.controllers.needs import CLUSTER
from aioinformer.transport.auth import yaml_documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aioinformer.cli.controllers.needs import Rule

_API = "rbac.authorization.k8s.io"


def manifest(name: str, namespace: str, rules: list[Rule], notes: Iterable[str] = (), form: str = "yaml") -> str:
    """Return YAML documents, each with its reasons as comments, or JSON, which has no comments.

    Args:
        rules: sorted by namespace.
        notes: comments for the top.
        form: "yaml", or "json" for one List.
    """
    found = list(_objects(name, namespace, rules))
    if form == "json":
        items = [each for _, each in found]
        listed = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})
        return msgspec.json.format(listed).decode() + "\n"
    top = "".join(f"# {note}\n" for note in notes)
    return top + "---\n".join(comments + to_yaml(each, sort_keys=False) for comments, each in found)


def _objects(name: str, namespace: str, rules: list[Rule]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects, each with its comments."""
    yield "", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
    for place, grouped in groupby(rules, lambda rule: rule.namespace):
        found = list(grouped)
        comments = "".join(f"# {rule.what}: {'; '.join(rule.reasons)}\n" for rule in found)
        kind = "ClusterRole" if place == CLUSTER else "Role"
        metadata = {"name": name} if place == CLUSTER else {"name": name, "namespace": place}
        role = {
            "apiVersion": f"{_API}/v1",
            "kind": kind,
            "metadata": metadata,
            "rules": [_rule(each) for each in found],
        }
        binding = {
            "apiVersion": f"{_API}/v1",
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": {"apiGroup": _API, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        }
        yield comments, role
        yield "", binding


def _rule(rule: Rule) -> dict[str, Any]:
    found: dict[str, Any] = {
        "apiGroups": [rule.resource.group],
        "resources": [rule.what],
        "verbs": list(rule.verbs),
    }
    return {**found, "resourceNames": list(rule.names)} if rule.names else found


def to_yaml(*bodies: dict[str, Any], sort_keys: bool = True) -> str:
    """Return objects as YAML documents, with the keys in the order of kubectl: by name."""
    return yaml_documents.to_yaml(map(msgspec.to_builtins, bodies), sort_keys=sort_keys)
