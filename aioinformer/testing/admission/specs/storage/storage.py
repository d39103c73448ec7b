"""Validation of storage classes, drivers, attachments and capacities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.storage.volume_sources import driver_name
from aioinformer.testing.admission.specs.terms.go_structs import go_struct
from aioinformer.testing.admission.specs.terms.node_selectors import topology_causes
from aioinformer.testing.admission.specs.terms.parts import (
    duplicate,
    format_causes,
    immutable,
    non_negative,
    one_of,
    selector_causes,
)
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_name_faults, subdomain_faults
from aioinformer.testing.schemas.quantities import amount

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_RECLAIM_POLICIES = ("Delete", "Retain")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLES = ("Persistent", "Ephemeral")
_MOST_PARAMETERS = 512
_LARGEST_PARAMETERS = 256 * 1024
_LONGEST_NODE_ID = 256
_SHORTEST_TOKEN = 600
_LONGEST_TOKEN = 2**32
_SHORTEST_PERIOD = 10
_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
_ATTACHMENT = {
    "Attacher": "",
    "Source": {"PersistentVolumeName": None, "InlineVolumeSpec": None},
    "NodeName": "",
}
_NODE_DRIVER = {"Name": "", "NodeID": "", "TopologyKeys": None, "Allocatable": None}


def storage_class(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    yield from _provisioner(obj.get("provisioner") or "", "provisioner")
    yield from _parameters(obj.get("parameters") or {})
    if policy := obj.get("reclaimPolicy"):
        yield from one_of(policy, "reclaimPolicy", _RECLAIM_POLICIES)
    yield from one_of(obj["volumeBindingMode"], "volumeBindingMode", _BINDING_MODES)
    yield from topology_causes(obj.get("allowedTopologies") or (), "allowedTopologies")
    if old is not None:
        for field in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
            yield from immutable(obj.get(field), old.get(field), field)


def volume_attributes_class(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    for field in ("driverName", "parameters"):
        if old is not None and (obj.get(field) or None) != (old.get(field) or None):
            yield Cause.forbidden(field, f"updates to {field} are forbidden.")
    yield from _provisioner(obj.get("driverName") or "", "driverName")
    yield from _parameters(obj.get("parameters") or {})
    if not obj.get("parameters"):
        yield Cause.required("parameters", "must contain at least one key/value pair")


def _provisioner(name: str, path: str) -> Iterator[Cause]:
    if not name:
        yield Cause.required(path)
    else:
        yield from format_causes(name.lower(), path, label_name_faults)


def _parameters(parameters: Mapping[str, str]) -> Iterator[Cause]:
    if len(parameters) > _MOST_PARAMETERS:
        yield Cause.too_long("parameters", _MOST_PARAMETERS)
        return
    if "" in parameters:
        yield Cause.invalid("parameters", '""', "field can not be empty.")
    if sum(len(name.encode()) + len(value.encode()) for name, value in parameters.items()) > _LARGEST_PARAMETERS:
        yield Cause.too_long("parameters", _LARGEST_PARAMETERS)


def volume_attachment(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    """Check an attachment. An inline volume spec is not checked."""
    spec = obj.get("spec") or {}
    yield from driver_name(spec.get("attacher") or "", "spec.attacher")
    source = spec.get("source") or {}
    name, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    if name is None and inline is None:
        yield Cause.required("spec.source", _ONE_SOURCE)
    elif name is not None and inline is not None:
        yield Cause.forbidden("spec.source", _ONE_SOURCE)
    elif name == "":
        yield Cause.required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName")
    yield from format_causes(spec.get("nodeName") or "", "spec.nodeName", subdomain_faults)
    if name is not None:
        yield from format_causes(name, "spec.source.persistentVolumeName", subdomain_faults)
    if old is not None and spec != (old.get("spec") or {}):
        yield Cause.invalid("spec", quote(go_struct(spec, _ATTACHMENT)), "field is immutable")


def csi_driver(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    if (policy := spec.get("fsGroupPolicy")) is not None:
        yield from one_of(policy, "spec.fsGroupPolicy", _GROUP_POLICIES)
    requests = spec.get("tokenRequests") or ()
    for index, request in enumerate(requests):
        known = [each.get("audience", "") for each in requests[:index]]
        yield from _token_causes(request, known, f"spec.tokenRequests[{index}]")
    for mode in spec.get("volumeLifecycleModes") or ():
        yield from one_of(mode, "spec.volumeLifecycleModes", _LIFECYCLES)
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < _SHORTEST_PERIOD:
        why = f"must be greater than or equal to {_SHORTEST_PERIOD} seconds"
        yield Cause.invalid("spec.nodeAllocatableUpdatePeriodSeconds", str(period), why)
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not requests:
        why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        yield Cause.invalid("spec.serviceAccountTokenInSecrets", quote(in_secrets), why)
    if old is not None:
        for field, reported in (
            ("attachRequired", "attachedRequired"),
            ("volumeLifecycleModes", "volumeLifecycleModes"),
        ):
            yield from immutable(spec.get(field), (old.get("spec") or {}).get(field), f"spec.{reported}")


def _token_causes(request: Mapping[str, Any], known: list[str], path: str) -> Iterator[Cause]:
    if request.get("audience", "") in known:
        yield duplicate(request.get("audience", ""), f"{path}.audience")
        return
    seconds = request.get("expirationSeconds")
    if seconds is not None and seconds < _SHORTEST_TOKEN:
        why = "may not specify a duration less than 10 minutes"
        yield Cause.invalid(f"{path}.expirationSeconds", str(seconds), why)
    if seconds is not None and seconds > _LONGEST_TOKEN:
        why = "may not specify a duration larger than 2^32 seconds"
        yield Cause.invalid(f"{path}.expirationSeconds", str(seconds), why)


def csi_node(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    drivers = (obj.get("spec") or {}).get("drivers") or ()
    for index, driver in enumerate(drivers):
        path, name = f"spec.drivers[{index}]", driver.get("name") or ""
        yield from driver_name(name, f"{path}.name")
        yield from _node_id(driver.get("nodeID") or "", f"{path}.nodeID")
        yield from non_negative((driver.get("allocatable") or {}).get("count"), f"{path}.allocatable.count")
        if any(each.get("name") == name for each in drivers[:index]):
            yield duplicate(name, f"{path}.name")
        yield from _topology_keys(driver.get("topologyKeys") or (), path)
    former = {each["name"]: each for each in ((old or {}).get("spec") or {}).get("drivers") or ()}
    for driver in drivers:
        current = go_struct(driver | {"allocatable": None}, _NODE_DRIVER)
        if driver.get("name") in former:
            known = go_struct(former[driver["name"]] | {"allocatable": None}, _NODE_DRIVER)
            yield from immutable(current, known, "spec.drivers")


def _node_id(name: str, path: str) -> Iterator[Cause]:
    if not name:
        yield Cause.required(path)
    if len(name) > _LONGEST_NODE_ID:
        yield Cause.invalid(path, quote(name), f"must be {_LONGEST_NODE_ID} characters or less")


def _topology_keys(keys: Any, path: str) -> Iterator[Cause]:
    for index, key in enumerate(keys):
        if not key:
            yield Cause.required(path)
        if key in keys[:index]:
            yield duplicate(key, path)
        yield from format_causes(key, path, label_name_faults)


def csi_storage_capacity(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    if obj.get("nodeTopology") is not None:
        yield from selector_causes(obj["nodeTopology"], "nodeTopology")
    yield from format_causes(obj.get("storageClassName") or "", "storageClassName", subdomain_faults)
    if (size := obj.get("capacity")) is not None and amount(size) < 0:
        yield Cause.invalid("capacity", quote(size), "must be greater than or equal to 0")
    if old is not None:
        for field in ("nodeTopology", "storageClassName"):
            yield from immutable(obj.get(field), old.get(field), field)
