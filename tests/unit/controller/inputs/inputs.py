"""Objects, owners and requests for tests of inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer import Resource
from aioinformer.controller import Change
from tests.support import view_samples
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.resources import ObjectName
    from aioinformer.workqueue import Cause


class Requests:
    """The function `enqueue` of inputs. It records "shop/web: configmaps shop/a updated", or "low shop/web: …"."""

    def __init__(self) -> None:
        self._new: list[str] = []

    def __call__(self, key: ObjectName, cause: Cause, priority: int) -> None:
        self._new.append(f"{'low ' if priority < 0 else ''}{key}: {cause}")

    async def new(self) -> list[str]:
        """Wait until everything has happened that can happen now; return what was enqueued since the last call."""
        await settled()
        return self.taken()

    def taken(self) -> list[str]:
        """Return what was enqueued since the last call."""
        new, self._new = self._new, []
        return new


def owner(name: str, uid: str, **members: Any) -> dict[str, Any]:
    """Return the owner reference to a widget that is the controller."""
    reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": name, "uid": uid, "controller": True}
    return reference | members


def owned_by(*references: dict[str, Any]) -> dict[str, Any]:
    """Return metadata with owner references."""
    return {"ownerReferences": list(references)}


WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget")

#: A cluster-scoped kind.
FLEETS: Resource[Any] = Resource("example.com", "v1", "fleets", "Fleet", namespaced=False)


def document(name: str = "web", **members: Any) -> dict[str, Any]:
    """Return a widget; the members replace those of the same name, and `metadata` is merged."""
    metadata = {
        "name": name,
        "namespace": "shop",
        "uid": f"uid-of-{name}",
        "resourceVersion": "1",
        "generation": 1,
        "labels": {"app": "web"},
        "annotations": {"note": "a"},
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:size": {}}}}],
    }
    metadata |= members.pop("metadata", {})
    plain = {name: value for name, value in metadata.items() if value is not None}
    return {"metadata": plain, "spec": {"size": 1, "image": "a"}, "status": {"ready": 0}} | members


def view_of(content: Mapping[str, Any], resource: Resource[Any] = WIDGETS, **encoding: Any) -> Any:
    """Return the view of an object, as an informer delivers it."""
    separators = (",", ":") if "indent" not in encoding else None
    return view_samples.view_of(content, resource, separators=separators, **encoding)


def widget(name: str = "web", **members: Any) -> Any:
    """Return the view of a widget."""
    return view_of(document(name, **members))


def update(**members: Any) -> Change:
    """Return the update of a widget to one with these members, and a new version."""
    members["metadata"] = {"resourceVersion": "2"} | members.get("metadata", {})
    return Change("updated", widget(), widget(**members))
