"""Pod priority: a pod gets priority and preemption policy from its priority class.

Every cluster has two system classes. A pod without a class gets the default class, if there is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import decode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.object_store import ObjectStore

_CLASSES = "priorityclasses.scheduling.k8s.io"
_SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_COMPUTED = "priority admission controller computed {} from the given PriorityClass name"
_PREEMPTION = "PreemptLowerPriority"


def settle_priority(store: ObjectStore, served: Served, obj: dict[str, Any], *, whole: bool) -> None:
    """Set the priority of a new pod, or check that a new default class is the only one.

    Args:
        obj: is changed.
        whole: whether the class must exist.

    Raises:
        StatusError: 403, the class does not exist, the pod has other values, or there is a default class already.
    """
    metadata = obj["metadata"]
    name = str(metadata.get("name") or metadata.get("generateName") or "Unknown")
    if served.resource.group_resource == _CLASSES:
        default = _default_class(store) if obj.get("globalDefault") else None
        if default is not None and default["metadata"]["name"] != name:
            why = (
                f"PriorityClass {default['metadata']['name']} is already marked as default. Only one default can exist"
            )
            raise statuses.forbidden(served.resource, name, why)
    if served.resource.group_resource != "pods":
        return
    spec = obj["spec"]
    wanted = spec.get("priorityClassName")
    found = _class(store, wanted) if wanted else _default_class(store)
    if found is None and wanted and whole:
        raise statuses.forbidden(served.resource, name, f"no PriorityClass with name {wanted} was found")
    if found is not None and not wanted:
        spec["priorityClassName"] = found["metadata"]["name"]
    priority = 0 if found is None else found.get("value", 0)
    preemption = _PREEMPTION if found is None else found.get("preemptionPolicy") or _PREEMPTION
    if spec.setdefault("priority", priority) != priority and whole:
        why = f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
        raise statuses.forbidden(served.resource, name, why + _COMPUTED.format(priority))
    if spec.setdefault("preemptionPolicy", preemption) != preemption and whole:
        why = f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
        raise statuses.forbidden(served.resource, name, why + _COMPUTED.format(preemption))


def _class(store: ObjectStore, name: str) -> Mapping[str, Any] | None:
    record = store.find(store.registry.resolve(_CLASSES), "", name)
    if record is not None:
        found: dict[str, Any] = decode(record.body)
        return found
    value = _SYSTEM_CLASSES.get(name)
    return None if value is None else {"metadata": {"name": name}, "value": value}


def _default_class(store: ObjectStore) -> Mapping[str, Any] | None:
    """Return the default class; of several, the one with the lowest value."""
    records = store.collection(store.registry.resolve(_CLASSES)).records("")
    classes: list[dict[str, Any]] = [
        decode(record.body) for record in records if b'"globalDefault":true' in record.body
    ]
    return min(classes, key=lambda each: int(each.get("value", 0)), default=None)
