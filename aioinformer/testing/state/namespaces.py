"""What namespaces allow: new objects only in those that are there to stay, and some that are never deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode
from aioinformer.testing.api.statuses import Cause

if TYPE_CHECKING:
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.ledger import Ledger

_PERMANENT = frozenset({"default", "kube-system", "kube-public"})


def check_namespace(ledger: Ledger, served: Served, namespace: str, name: str) -> None:
    """Refuses new objects where there is no namespace, or one that goes.

    Args:
        namespace: that it is to be in.
        name: of the object.

    Raises:
        StatusError: 403 or 404.
    """
    if not served.resource.namespaced:
        return
    namespaces = ledger.registry.find("", "v1", "namespaces")
    assert namespaces is not None
    record = ledger.get(namespaces, "", namespace)
    if b'"deletionTimestamp"' in record.body and decode(record.body)["metadata"].get("deletionTimestamp"):
        raise statuses.forbidden(
            served.resource,
            name,
            f"unable to create new content in namespace {namespace} because it is being terminated",
            [Cause("NamespaceTerminating", "metadata.namespace", f"namespace {namespace} is being terminated")],
        )


def check_permanence(served: Served, name: str) -> None:
    """Refuses the deletion of a namespace that the cluster needs.

    Raises:
        StatusError: 403.
    """
    if served.resource.group_resource == "namespaces" and name in _PERMANENT:
        raise statuses.forbidden(served.resource, name, "this namespace may not be deleted")
