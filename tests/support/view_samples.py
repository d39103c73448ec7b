"""Views of objects, among them one pod and one custom resource."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aioinformer import Resource
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.record import decode_record
from aioinformer.cache.objects.views import view_class

if TYPE_CHECKING:
    from aioinformer.cache.objects.record import Record

PODS: Resource[Any] = Resource("", "v1", "pods", "Pod", model="V1Pod")
SECRETS: Resource[Any] = Resource("", "v1", "secrets", "Secret", model="V1Secret")
WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget")

POD = {
    "metadata": {
        "name": "a",
        "namespace": "ns",
        "uid": "u",
        "resourceVersion": "7",
        "labels": {"app": "x"},
        "annotations": {"k": "v"},
        "creationTimestamp": "2025-02-01T10:00:00Z",
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "o"}],
    },
    "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i", "env": [{"name": "E", "value": "1"}]}]},
    "status": {"phase": "Running"},
}
WIDGET = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": POD["metadata"],
    "spec": {"size": 3, "parts": [{"name": "p", "tags": ["t"]}], "items": {"keys": 1}},
}


def encoded(obj: Any, **encoding: Any) -> Record:
    return decode_record(json.dumps(obj, **encoding).encode())


def view_of(obj: Any, resource: Resource[Any], **encoding: Any) -> Any:
    """Return the view of an object, as an informer delivers it.

    Args:
        obj: its document.
        resource: of the object.
        encoding: options of `json.dumps`.
    """
    return view_class(resource)(encoded(obj, **encoding))


def stored_as(obj: Any, resource: Resource[Any], **form: Any) -> Any:
    """Return an object as an informer delivers it that keeps it in some form.

    Args:
        obj: its document, or the JSON of that.
        resource: of the object.
        form: how objects are kept: arguments of `SharedIndexInformer`, such as `decoder` and `storage`.
    """
    objects: ObjectType[Any] = ObjectType(resource, **form)
    raw = obj if isinstance(obj, bytes) else json.dumps(obj).encode()
    return objects.to_view(objects.on_arrival(objects.decode(raw)))


def pod(obj: Any = POD) -> Any:
    return view_of(obj, PODS)


def widget(obj: Any = WIDGET) -> Any:
    return view_of(obj, WIDGETS)
