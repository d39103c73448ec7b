"""Label and field selectors in requests, and the selectable fields of each resource."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from aioinformer.errors import SelectorError
from aioinformer.resources.field_selectors import parse_field_selector
from aioinformer.resources.label_selectors import LabelSelector
from aioinformer.resources.selectors import parse_label_selector
from aioinformer.testing.api.statuses import bad_request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aioinformer.resources.field_selectors import FieldSelector
    from aioinformer.resources.resource import Resource

_POD = (
    "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
    "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
)  # fmt: skip
_EVENT = (
    "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
    "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
    "reportingComponent", "type", "source",
)  # fmt: skip
# The names of these fields in `events.k8s.io`.
_REGARDING_EVENT = (
    "regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid", "regarding.apiVersion",
    "regarding.resourceVersion", "regarding.fieldPath", "reason", "reportingController", "type",
)  # fmt: skip
_FIELDS: dict[str, tuple[str, ...]] = {
    "pods": _POD,
    "events": _EVENT,
    "events.events.k8s.io": _REGARDING_EVENT,
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
    "replicationcontrollers": ("status.replicas",),
    "jobs.batch": ("status.successful",),
    "certificatesigningrequests.certificates.k8s.io": ("spec.signerName",),
}
_ELSEWHERE = {"source": ("source.component", "reportingComponent"), "status.successful": ("status.succeeded",)}
_ZERO = {"spec.hostNetwork": "false", "spec.unschedulable": "false", "status.replicas": "0", "status.successful": "0"}
METADATA_FIELDS = ("metadata.name", "metadata.namespace")


def read_label_selector(text: str) -> LabelSelector:
    """Parse the label selector of a request."""
    try:
        return parse_label_selector(text)
    except SelectorError as error:
        raise bad_request(f"unable to parse the label selector: {error}") from None


def read_field_selector(text: str) -> FieldSelector:
    """Parse the field selector of a request; it may name unknown fields."""
    try:
        return parse_field_selector(text)
    except SelectorError as error:
        raise bad_request(f"invalid field selector: {error}") from None


def selector_text(selector: Mapping[str, Any]) -> str:
    """Return a LabelSelector of an object in the form of the query parameter, "<error>" for an invalid one."""
    try:
        return str(LabelSelector.from_dict({name: selector.get(name) for name in ("matchLabels", "matchExpressions")}))
    except SelectorError:
        return "<error>"


def selectable_fields(resource: Resource[Any]) -> tuple[str, ...]:
    """Return the selectable fields of a built-in resource beyond name and namespace, as in `Record.fields`."""
    return _FIELDS.get(resource.group_resource, ())


def field_values(obj: Mapping[str, Any], fields: Sequence[str]) -> tuple[str, ...]:
    """Return the values of these fields as selectors compare them: strings, "" if absent, booleans in lower case."""
    return tuple([_text(obj, name) for name in fields])


@cache
def _paths(name: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(path.split(".")) for path in _ELSEWHERE.get(name, (name,)))


def _text(obj: Mapping[str, Any], name: str) -> str:
    for path in _paths(name):
        value: Any = obj
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, bool):
            return "true" if value else "false"
        if value is not None and value != "":
            return str(value)
    return _ZERO.get(name, "")
