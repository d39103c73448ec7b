"""A namespace provisioner: each Tenant has a namespace, with a quota and with its administrators.

The Tenant is cluster-scoped, so it can own objects in every namespace. When it is deleted, the
server deletes all of them.

kubectl apply -f examples/namespace_provisioner.yaml && python examples/namespace_provisioner.py
"""

from __future__ import annotations

from typing import Any

from aioinformer import Condition, Resource
from aioinformer.controller import Manager, Request, apply_set, set_status
from aioinformer.models import core_v1, rbac_v1

TENANTS = Resource[Any]("example.com", "v1", "tenants", "Tenant", namespaced=False)
PARTS = [core_v1.NAMESPACES, core_v1.RESOURCE_QUOTAS, rbac_v1.ROLE_BINDINGS]
WRITES = {TENANTS: ("patch",)} | dict.fromkeys(PARTS, ("create", "patch", "delete"))

manager = Manager("namespace-provisioner")


@manager.controller(TENANTS, owns=PARTS, writes=WRITES)
async def tenants(request: Request[Any]) -> None:
    tenant = request.object
    if tenant is None or tenant.metadata.deletion_timestamp:
        return
    # The namespace comes first: the others are in it.
    await apply_set(request, [namespace(tenant), quota(tenant), admins(tenant)], resources=PARTS)
    ready = Condition("Ready", "True", "Provisioned", f"Namespace {request.name} is ready")
    await set_status(request, [ready])


def namespace(tenant: Any) -> dict[str, Any]:
    metadata = {
        "name": tenant.metadata.name,
        "labels": {"example.com/tenant": tenant.metadata.name},
    }
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def quota(tenant: Any) -> dict[str, Any]:
    metadata = {"name": "tenant", "namespace": tenant.metadata.name}
    spec = {"hard": {"pods": str(tenant["spec"]["pods"])}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


def admins(tenant: Any) -> dict[str, Any]:
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User"}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "tenant-admins", "namespace": tenant.metadata.name},
        "roleRef": {**user, "kind": "ClusterRole", "name": "admin"},
        "subjects": [{**user, "name": name} for name in tenant["spec"].get("admins", ())],
    }


if __name__ == "__main__":
    manager.main()
