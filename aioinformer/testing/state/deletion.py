"""How an object goes: at once, or marked first, until nobody holds it by a finalizer any more.

A deletion with finalizers is an update that sets `deletionTimestamp`; the update that removes the last finalizer is the
deletion. Namespaces go when they are empty, and a pod is marked first and removed then even if nobody holds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.api.encoding import decode, encode_object
from aioinformer.testing.state.dependents import FOREGROUND, ORPHAN
from aioinformer.testing.state.strategies import default_policy

if TYPE_CHECKING:
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.ledger import Ledger
    from aioinformer.testing.state.storage import Record

_CRD = "customresourcedefinitions.apiextensions.k8s.io"
_CRD_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


def delete_record(
    ledger: Ledger, served: Served, record: Record, policy: str, now: str, *, dry_run: bool
) -> tuple[bytes, bool]:
    """Deletes an object that may be deleted, or begins to.

    Args:
        record: as it is stored.
        policy: what becomes of its dependents: "", "Background", "Foreground" or "Orphan".
        now: the time, as objects have it.
        dry_run: do everything but store it.

    Returns:
        The last state of the object, and whether it is gone.
    """
    obj = decode(served.body(record.body))
    metadata = obj["metadata"]
    finalizers = list(metadata.get("finalizers") or ())
    extra = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(policy or default_policy(served))
    is_definition, is_namespace, graceful = (
        served.resource.group_resource == name for name in (_CRD, "namespaces", "pods")
    )
    if is_definition:
        extra = _CRD_FINALIZER
    if extra and extra not in finalizers and "deletionTimestamp" not in metadata:
        finalizers.append(extra)
    if not finalizers and not is_namespace and not graceful:
        return (record if dry_run else ledger.remove(served, record)).body, True
    if "deletionTimestamp" in metadata:
        return record.body, False
    metadata["deletionTimestamp"] = now
    if is_namespace:
        obj.setdefault("status", {})["phase"] = "Terminating"
    elif not is_definition:
        metadata["deletionGracePeriodSeconds"] = 0
        if "generation" in metadata:
            metadata["generation"] += 1
    if finalizers:
        metadata["finalizers"] = finalizers
    if dry_run:
        return encode_object(obj, custom=served.custom), False
    changed = ledger.commit(served, "MODIFIED", obj, record)
    if graceful and not finalizers:
        # Even without grace watches see a pod marked before it is gone.
        ledger.remove(served, changed)
        return changed.body, True
    ledger.suspect(served, changed, metadata)
    if is_namespace or is_definition:
        ledger.untidy()
    return changed.body, False
