"""Validation of persistent volume claims and of claim templates.

The spec of a claim is immutable, with two exceptions for bound claims: the size may grow, and the volume attributes
class may change.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.common.data_sources import set_data_source
from aioinformer.testing.admission.specs.terms.go_structs import difference, go_struct
from aioinformer.testing.admission.specs.terms.parts import format_causes, immutable, one_of, required, selector_causes
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_faults, subdomain_faults
from aioinformer.testing.schemas.quantities import amount

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_EXCLUSIVE = "ReadWriteOncePod"
_VOLUME_MODES = ("Block", "Filesystem")
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_SOURCE = {"APIGroup": None, "Kind": "", "Name": ""}
_SPEC = {
    "AccessModes": None,
    "Selector": None,
    "Resources": {"Limits": None, "Requests": None},
    "VolumeName": "",
    "StorageClassName": None,
    "VolumeMode": None,
    "DataSource": (_SOURCE,),
    "DataSourceRef": (_SOURCE | {"Namespace": None},),
    "VolumeAttributesClassName": None,
}


def claim(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    spec = deepcopy(obj.get("spec") or {})
    set_data_source(spec, None if old is None else old.get("spec"))
    yield from claim_spec_causes(spec, "spec")
    if old is not None:
        yield from _change_causes(obj, old)


def claim_spec_causes(spec: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Check the spec of a claim or of a claim template.

    Args:
        path: of the spec.
    """
    modes = spec.get("accessModes") or ()
    if not modes:
        yield Cause.required(f"{path}.accessModes", "at least 1 access mode is required")
    if spec.get("selector") is not None:
        yield from selector_causes(spec["selector"], f"{path}.selector")
    yield from access_mode_causes(modes, f"{path}.accessModes")
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        yield Cause.required(f"{path}.resources[storage]")
    elif amount(size) <= 0:
        yield Cause.invalid(f"{path}.resources[storage]", quote(size), "must be greater than zero")
    yield from class_name_causes(spec.get("storageClassName"), f"{path}.storageClassName")
    yield from volume_mode_causes(spec.get("volumeMode"), f"{path}.volumeMode")
    yield from _source_causes(spec, path)
    yield from class_name_causes(spec.get("volumeAttributesClassName"), f"{path}.volumeAttributesClassName")


def access_mode_causes(modes: Sequence[str], path: str) -> Iterator[Cause]:
    """Check the access modes of a volume."""
    for mode in modes:
        yield from one_of(mode, path, _ACCESS_MODES)
    if _EXCLUSIVE in modes and any(mode != _EXCLUSIVE and mode in _ACCESS_MODES for mode in modes):
        yield Cause.forbidden(path, "may not use ReadWriteOncePod with other access modes")


def class_name_causes(name: str | None, path: str) -> Iterator[Cause]:
    """Check an optional class name."""
    if name:
        yield from format_causes(name, path, subdomain_faults)


def volume_mode_causes(mode: str | None, path: str) -> Iterator[Cause]:
    """Check an optional volume mode."""
    if mode is not None:
        yield from one_of(mode, path, _VOLUME_MODES)


def _source_causes(spec: Mapping[str, Any], path: str) -> Iterator[Cause]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    for each, name in ((source, "dataSource"), (reference, "dataSourceRef")):
        if each is not None:
            yield from _reference_causes(each, f"{path}.{name}")
    if source is None or reference is None:
        return
    # The API quotes its path object here, which is printed as "{}".
    if reference.get("namespace"):
        yield Cause.invalid(path, "{}", "may not be specified when dataSourceRef.namespace is specified")
    elif go_struct(source, _SOURCE) != go_struct(reference, _SOURCE):
        yield Cause.invalid(path, "{}", "must match dataSourceRef")


def _reference_causes(reference: Mapping[str, Any], path: str) -> Iterator[Cause]:
    kind, group = (reference.get(field) or "" for field in ("kind", "apiGroup"))
    yield from required(reference, path, "name", "kind")
    if not group and kind != "PersistentVolumeClaim":
        why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        yield Cause.invalid(path, quote(kind), why)
    if group:
        yield from format_causes(group, f"{path}.apiGroup", subdomain_faults)
    if namespace := reference.get("namespace"):
        yield from format_causes(namespace, f"{path}.namespace", label_faults)


def _change_causes(obj: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Cause]:
    spec, former = deepcopy(obj.get("spec") or {}), deepcopy(old.get("spec") or {})
    if not former.get("volumeName") and spec.get("volumeName"):
        former["volumeName"] = spec["volumeName"]
    yield from _class_causes(obj, old, spec)
    if (old.get("status") or {}).get("phase") == "Bound":
        if (requests := (spec.get("resources") or {}).get("requests")) is not None:
            requests["storage"] = _size(former)
        spec["volumeAttributesClassName"] = former.get("volumeAttributesClassName")
    before, after = go_struct(former, _SPEC), go_struct(spec, _SPEC)
    if before != after:
        what = "resources.requests and volumeAttributesClassName for bound claims"
        why = f"spec is immutable after creation except {what}\n{difference(before, after)}"
        yield Cause.forbidden("spec", why)
    size, there = _size(obj.get("spec") or {}), (old.get("status") or {}).get("capacity") or {}
    if amount(size) < amount(_size(former)) and amount(size) <= amount(there.get("storage") or "0"):
        yield Cause.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")
    yield from immutable(spec.get("volumeMode"), former.get("volumeMode"), "volumeMode")


def _class_causes(obj: Mapping[str, Any], old: Mapping[str, Any], spec: dict[str, Any]) -> Iterator[Cause]:
    """Check the storage class. It may be set later, or move from the annotation to the field; it is immutable then."""
    new, former = ((each["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION) for each in (obj, old))
    name, unset = spec.get("storageClassName"), (old.get("spec") or {}).get("storageClassName") is None
    if unset and former is not None and name == former and new in (None, former):
        spec["storageClassName"] = None
        return
    if (new or "") != (former or ""):
        yield Cause.invalid(f"metadata.annotations.{_CLASS_ANNOTATION}", quote(new or ""), "field is immutable")
    if unset and name is not None and former in (None, name):
        spec["storageClassName"] = None


def _size(spec: Mapping[str, Any]) -> str:
    size: str = ((spec.get("resources") or {}).get("requests") or {}).get("storage") or "0"
    return size
