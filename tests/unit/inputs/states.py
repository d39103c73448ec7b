"""States of objects for tests of inputs: views as informers deliver them, and their changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aioinformer.cache.objects.record import decode_record
from aioinformer.cache.objects.views import view_class
from aioinformer.inputs.predicates import Change
from aioinformer.resources.resource import Resource

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    return view_class(resource)(decode_record(json.dumps(content, separators=separators, **encoding).encode()))


def widget(name: str = "web", **members: Any) -> Any:
    """Return the view of a widget."""
    return view_of(document(name, **members))


def update(**members: Any) -> Change:
    """Return the update of a widget to one with these members, and a new version."""
    members["metadata"] = {"resourceVersion": "2"} | members.get("metadata", {})
    return Change("updated", widget(), widget(**members))
