"""The expansion of persistent volume claims, which their storage class must allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode
from aioinformer.testing.schemas.quantities import amount

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.object_store import ObjectStore

_CLASSES = "storageclasses.storage.k8s.io"
_NOT_EXPANDABLE = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)


def check_growth(store: ObjectStore, served: Served, obj: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    """Check that a claim may grow.

    Raises:
        StatusError: 403, the storage class does not allow volume expansion.
    """
    if served.resource.group_resource != "persistentvolumeclaims" or _size(obj) <= _size(old):
        return
    name = str((obj.get("spec") or {}).get("storageClassName") or "")
    found = store.find(store.registry.resolve(_CLASSES), "", name)
    if found is None or not decode(found.body).get("allowVolumeExpansion"):
        raise statuses.forbidden(served.resource, old["metadata"]["name"], _NOT_EXPANDABLE)


def _size(claim: Mapping[str, Any]) -> Decimal:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return amount(requests.get("storage") or "0")
