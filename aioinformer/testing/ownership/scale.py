"""The scale subresource: the replicas of an object as a `Scale`, and their field managers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api import statuses
from aioinformer.testing.api.selectors import selector_text

if TYPE_CHECKING:
    from aioinformer.testing.api.served import Served

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


def _replicas_path(served: Served) -> list[str]:
    """Return the path of the replicas field."""
    return str((served.scale or _BUILTIN)["specReplicasPath"]).strip(".").split(".")


def scale_owners(served: Served, obj: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the field managers of the replicas field as managers of a `Scale`."""
    steps = [f"f:{name}" for name in _replicas_path(served)]
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
    return selector_text(selector if structured else {"matchLabels": selector})
