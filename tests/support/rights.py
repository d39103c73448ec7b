"""Rights of users on an API server for tests, by roles and bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.models import rbac_v1

if TYPE_CHECKING:
    from aioinformer.testing import ApiServer


def grant_paths(server: ApiServer, user: str, *paths: str, verbs: tuple[str, ...] = ("get",)) -> None:
    """Let a user request URLs that belong to no resource."""
    name = f"paths-of-{user}"
    rule = {"nonResourceURLs": list(paths), "verbs": list(verbs)}
    server.create(rbac_v1.CLUSTER_ROLES, {"metadata": {"name": name}, "rules": [rule]})
    binding = {"metadata": {"name": name}, **_binding("ClusterRole", name, user)}
    server.create(rbac_v1.CLUSTER_ROLE_BINDINGS, binding)


def grant(server: ApiServer, user: str, *resources: str, namespace: str = "") -> None:
    """Let a user get, list and watch resources, in one namespace or in all."""
    name = f"readers-{user}-{namespace or 'all'}"
    rule = {"apiGroups": ["*"], "resources": list(resources), "verbs": ["get", "list", "watch"]}
    server.create(rbac_v1.CLUSTER_ROLES, {"metadata": {"name": name}, "rules": [rule]})
    bindings = rbac_v1.ROLE_BINDINGS if namespace else rbac_v1.CLUSTER_ROLE_BINDINGS
    where = {"namespace": namespace} if namespace else {}
    server.create(bindings, {"metadata": {"name": name, **where}, **_binding("ClusterRole", name, user)})


def revoke(server: ApiServer, user: str, namespace: str = "") -> None:
    """Take away what `grant` gave."""
    name = f"readers-{user}-{namespace or 'all'}"
    if namespace:
        server.delete(rbac_v1.ROLE_BINDINGS, name, namespace)
    else:
        server.delete(rbac_v1.CLUSTER_ROLE_BINDINGS, name)


def _binding(kind: str, name: str, user: str) -> dict[str, object]:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    return {"roleRef": role, "subjects": [subject]}
