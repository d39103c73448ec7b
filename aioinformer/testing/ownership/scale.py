"""The scale subresource, and who owns the number of replicas after a write of a `Scale`.

To the API such a write is one of another object, which has one field. The owners of the replicas become owners of that
field, and are written back afterwards. On the way an updater's replicas move to an entry without a time, even if
nothing was changed. Two entries of the same manager are read as one, the later one: after the next write that changes
nothing no manager owns the replicas. A field without an owner is not tracked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api import statuses
from aioinformer.testing.ownership.managers import Owned, write_entries
from aioinformer.testing.schemas.field_paths import NO_FIELDS

if TYPE_CHECKING:
    from aioinformer.testing.api.served import Served
    from aioinformer.testing.ownership.managers import Owners
    from aioinformer.testing.schemas.field_paths import FieldSet

_BUILTIN = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".spec.selector",
}


def read_scale(served: Served, obj: Mapping[str, Any], *, must_exist: bool = False) -> dict[str, Any]:
    """Return the `Scale` of an object.

    Args:
        must_exist: whether a custom resource must have the replicas field. Writes do not need it.

    Raises:
        StatusError: 500, the field is missing.
    """
    paths = served.scale or _BUILTIN
    metadata = obj["metadata"]
    path = paths["specReplicasPath"]
    if must_exist and served.custom and _get(obj, path) is None:
        why = f'the spec replicas field "{path}" does not exist'
        message = f"Internal error occurred: {why}"
        raise statuses.StatusError(500, "InternalError", message, details={"causes": [{"message": why}]})
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    replicas = _get(obj, path)
    status: dict[str, Any] = {"replicas": _get(obj, paths["statusReplicasPath"]) or 0}
    selector = _selector(_get(obj, paths.get("labelSelectorPath", "")))
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in names if name in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def replicas_path(served: Served) -> list[str]:
    """Return the path of the replicas field."""
    return str((served.scale or _BUILTIN)["specReplicasPath"]).strip(".").split(".")


def scale_owners(served: Served, obj: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the field managers of the replicas field as managers of a `Scale`."""
    steps = [f"f:{name}" for name in replicas_path(served)]
    owners = []
    for entry in obj["metadata"].get("managedFields") or ():
        fields: Any = entry.get("fieldsV1") or {}
        for step in steps:
            fields = fields.get(step) if isinstance(fields, dict) else None
        if fields is not None:
            owners.append(entry | {"apiVersion": "autoscaling/v1", "fieldsV1": {"f:spec": {"f:replicas": {}}}})
    return owners


def apply_scale(served: Served, obj: dict[str, Any], scale: Mapping[str, Any]) -> dict[str, Any]:
    """Set the replicas of an object, and the preconditions that the `Scale` has.

    Args:
        obj: is changed.

    Raises:
        StatusError: 422, the number of replicas is negative.
    """
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if replicas < 0:
        cause = statuses.Cause.invalid("spec.replicas", str(replicas), "must be greater than or equal to 0")
        raise statuses.invalid("Scale", "autoscaling", obj["metadata"]["name"], [cause])
    set_replicas(served, obj, replicas)
    for field in ("resourceVersion", "uid"):
        if value := (scale.get("metadata") or {}).get(field):
            obj["metadata"][field] = value
    return obj


def set_replicas(served: Served, obj: dict[str, Any], replicas: int) -> None:
    """Set the replicas field of an object."""
    *parents, last = (served.scale or _BUILTIN)["specReplicasPath"].strip(".").split(".")
    place: dict[str, Any] = obj
    for part in parents:
        place = place.setdefault(part, {})
    place[last] = replicas


def _get(obj: Mapping[str, Any], path: str) -> Any:
    value: Any = obj
    for part in path.strip(".").split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _selector(selector: Any) -> str:
    if not isinstance(selector, Mapping):
        return selector if isinstance(selector, str) else ""
    structured = "matchLabels" in selector or "matchExpressions" in selector
    labels = (selector.get("matchLabels") or {}) if structured else selector
    parts = [(key, f"{key}={value}") for key, value in labels.items()]
    for each in selector.get("matchExpressions") or () if structured else ():
        key, values = each["key"], ",".join(sorted(each.get("values") or ()))
        match each["operator"]:
            case "In" | "NotIn":
                parts.append((key, f"{key} {'in' if each['operator'] == 'In' else 'notin'} ({values})"))
            case "Exists":
                parts.append((key, key))
            case _:
                parts.append((key, f"!{key}"))
    return ",".join(text for _, text in sorted(parts, key=lambda part: part[0]))


def note_scaling(
    metadata: dict[str, Any], owners: Owners, names: list[str], old: Mapping[str, Any], new: Mapping[str, Any]
) -> bool:
    """Record the owners after a write of a scale that changes nothing, or whose replicas no manager owned.

    Args:
        metadata: of the object to store.
        owners: before the write.
        names: the path of the replicas field.
        old: the object before the write.
        new: the object after the write.

    Returns:
        Whether it was such a write.
    """
    path = tuple(f"f:{name}" for name in names)
    owning = {manager: owned for manager, owned in owners.items() if path in owned.fields}
    if owning and _number(old, names) != _number(new, names):
        return False
    entries = []
    for manager, owned in owners.items():
        if manager not in owning or manager.operation == "Apply":
            entries.append((manager, owned))
            continue
        if rest := owned.fields - {path}:
            entries.append((manager, Owned(rest, owned.time)))
        entries.append((manager, Owned(frozenset({path}))))
    write_entries(metadata, entries)
    return True


def _number(obj: Mapping[str, Any], names: list[str]) -> Any:
    value: Any = obj
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value or 0


def unscaled_fields(served: Served, obj: Mapping[str, Any]) -> FieldSet:
    """Return the replicas field if it is 0: a `Scale` leaves it out then, and no manager owns it."""
    names = replicas_path(served)
    value: Any = obj
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return NO_FIELDS if value else frozenset({tuple(f"f:{name}" for name in names)})
