"""Validation of persistent volumes, whose source is immutable."""

from __future__ import annotations

import re
from posixpath import normpath
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.storage.claims import access_mode_causes, class_name_causes, volume_mode_causes
from aioinformer.testing.admission.specs.storage.volume_sources import SOURCES, driver_name
from aioinformer.testing.admission.specs.storage.volume_structs import NODE_AFFINITY, SOURCE
from aioinformer.testing.admission.specs.terms.go_structs import difference, go_struct
from aioinformer.testing.admission.specs.terms.node_selectors import node_selector_causes
from aioinformer.testing.admission.specs.terms.parts import between, format_causes, immutable, one_of, required
from aioinformer.testing.admission.specs.terms.paths import no_parent_steps
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_faults, subdomain_faults
from aioinformer.testing.schemas.quantities import amount

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
_CHAP = ("chapAuthDiscovery", "chapAuthSession")
_LONGEST_TARGET = 64
_TOO_LONG = (
    f"Total length of <volume name>:<iscsi.targetPortal> must be under {_LONGEST_TARGET} characters if "
    "iscsi.initiatorName is specified."
)
_INITIATOR = re.compile(r"iqn\.\d{4}-\d{2}\.[a-zA-Z0-9.-]+:[^,;*&$|\s]+$|eui.[a-zA-Z0-9]{16}$|naa.[a-zA-Z0-9]{32}$")
_SECRETS = ("controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef")
#: In the order in which the API checks them, with their names in the message about a second source.
# fmt: off
_SOURCES = {name: name for name in (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte", "cephfs",
    "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume",
    "azureDisk", "scaleIO", "local", "storageos", "csi",
)} | {"cephfs": "cephFS"}
# fmt: on


def persistent_volume(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    causes = list(_spec_causes(spec, obj["metadata"].get("name") or ""))
    if old is None:
        yield from causes
    else:
        # The API validates an update twice and reports the causes of both passes.
        yield from causes * 2
        yield from _change_causes(spec, old.get("spec") or {})


def _spec_causes(spec: Mapping[str, Any], name: str) -> Iterator[Cause]:
    yield from required(spec, "spec", "accessModes")
    yield from access_mode_causes(spec.get("accessModes") or (), "spec.accessModes")
    yield from _capacity_causes(spec.get("capacity"))
    if policy := spec.get("persistentVolumeReclaimPolicy"):
        yield from one_of(policy, "spec.persistentVolumeReclaimPolicy", _RECLAIM_POLICIES)
    if (affinity := spec.get("nodeAffinity")) is not None:
        if affinity.get("required") is None:
            yield Cause.required("spec.nodeAffinity.required", "must specify required node constraints")
        else:
            yield from node_selector_causes(affinity["required"], "spec.nodeAffinity.required")
    yield from _source_causes(spec, name)
    if policy == "Recycle" and normpath((spec.get("hostPath") or {}).get("path") or ".") in ("/", "//"):
        why = "may not be 'recycle' for a hostPath mount of '/'"
        yield Cause.forbidden("spec.persistentVolumeReclaimPolicy", why)
    yield from class_name_causes(spec.get("storageClassName"), "spec.storageClassName")
    yield from volume_mode_causes(spec.get("volumeMode"), "spec.volumeMode")
    if (attributes := spec.get("volumeAttributesClassName")) is not None:
        if not attributes:
            yield Cause.required("spec.volumeAttributesClassName", "an empty string is disallowed")
        yield from class_name_causes(attributes, "spec.volumeAttributesClassName")
        if "csi" not in spec:
            yield Cause.required("spec.csi", "has to be specified when using volumeAttributesClassName")


def _capacity_causes(capacity: Mapping[str, str] | None) -> Iterator[Cause]:
    if not capacity:
        yield Cause.required("spec.capacity")
    if set(capacity or ()) != {"storage"}:
        yield Cause.unsupported("spec.capacity", quote(capacity and dict(sorted(capacity.items()))), ("storage",))
    for name, size in (capacity or {}).items():
        if amount(size) <= -1:
            yield Cause.invalid(f"spec.capacity[{name}]", str(int(amount(size))), "must be a valid resource quantity")
        if amount(size) <= 0:
            yield Cause.invalid(f"spec.capacity[{name}]", quote(size), "must be greater than zero")


def _source_causes(spec: Mapping[str, Any], name: str) -> Iterator[Cause]:
    present = [source for source in _SOURCES if spec.get(source) is not None]
    if not present:
        yield Cause.required("spec", "must specify a volume type")
    for index, source in enumerate(present):
        path = f"spec.{source}"
        if index and source != "flexVolume":
            yield Cause.forbidden(f"spec.{_SOURCES[source]}", "may not specify more than 1 volume type")
        elif source == "iscsi":
            yield from _iscsi(spec[source], path, name)
        elif source == "csi":
            yield from _csi(spec[source], path)
        elif source == "local":
            yield from _local(spec[source], path)
            if spec.get("nodeAffinity") is None:
                yield Cause.required("spec.nodeAffinity", "Local volume requires node affinity")
        else:
            yield from SOURCES[source](spec[source], path)


def _local(source: Mapping[str, Any], path: str) -> Iterator[Cause]:
    yield from required(source, path, "path")
    yield from no_parent_steps(source.get("path") or "", f"{path}.path")


def _iscsi(source: Mapping[str, Any], path: str, name: str) -> Iterator[Cause]:
    portal, address, initiator = (source.get(field) for field in ("targetPortal", "iqn", "initiatorName"))
    yield from required(source, path, "targetPortal")
    if initiator is not None and len(f"{name}:{portal or ''}") > _LONGEST_TARGET:
        yield Cause.invalid(f"{path}.targetportal", quote(portal or ""), _TOO_LONG)
    yield from required(source, path, "iqn")
    yield from _initiator(address or None, f"{path}.iqn")
    yield from between(source.get("lun"), f"{path}.lun", 0, 255)
    yield from _chap(source, path)
    yield from _initiator(initiator, f"{path}.initiatorname")


def _initiator(name: str | None, path: str) -> Iterator[Cause]:
    if name is not None and not _INITIATOR.match(name):
        yield Cause.invalid(path, quote(name), "must be valid format")


def _chap(source: Mapping[str, Any], path: str) -> Iterator[Cause]:
    secret = source.get("secretRef")
    if secret is not None:
        yield from required(secret, f"{path}.secretRef", "name")
    elif any(source.get(field) for field in _CHAP):
        yield Cause.required(f"{path}.secretRef")


def _csi(source: Mapping[str, Any], path: str) -> Iterator[Cause]:
    yield from driver_name(source.get("driver") or "", f"{path}.driver")
    yield from required(source, path, "volumeHandle")
    for field in _SECRETS:
        if (secret := source.get(field)) is None:
            continue
        for part, faults in (("name", subdomain_faults), ("namespace", label_faults)):
            yield from required(secret, f"{path}.{field}", part)
            if secret.get(part):
                yield from format_causes(secret[part], f"{path}.{field}.{part}", faults)


def _change_causes(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Cause]:
    before, after = go_struct(old, SOURCE), go_struct(spec, SOURCE)
    if before["CSI"] and after["CSI"] and before["CSI"]["ControllerExpandSecretRef"] is None:
        # This secret may be set later.
        after["CSI"]["ControllerExpandSecretRef"] = None
    if before != after:
        why = f"spec.persistentvolumesource is immutable after creation\n{difference(before, after)}"
        yield Cause.forbidden("spec.persistentvolumesource", why)
    yield from immutable(spec.get("volumeMode"), old.get("volumeMode"), "volumeMode")
    affinity, former = spec.get("nodeAffinity"), old.get("nodeAffinity")
    if former is not None and affinity != former:
        value = "null" if affinity is None else quote(go_struct(affinity, NODE_AFFINITY))
        yield Cause.invalid("nodeAffinity", value, "field is immutable, except for updating from beta label to GA")
    if old.get("volumeAttributesClassName") is not None and spec.get("volumeAttributesClassName") is None:
        yield Cause.forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden")
