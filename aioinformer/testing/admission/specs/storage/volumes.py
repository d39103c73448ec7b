"""Validation of the volumes of a pod.

A volume has a name and exactly one source. Only the first source is checked; each further source is a fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.storage.volume_sources import SOURCES
from aioinformer.testing.admission.specs.terms.parts import duplicate, format_causes, required
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_faults, subdomain_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: Names that the API reports for some fields when a volume has more than one source.
_REPORTED_NAMES = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}


def volume_causes(spec: Mapping[str, Any], path: str, pod: str = "") -> Iterator[Cause]:
    """Check the volumes of a pod.

    Args:
        spec: of the pod.
        path: of the spec.
        pod: the name of the pod; "" in a template.
    """
    volumes = spec.get("volumes") or ()
    generated_claims = {
        f"{pod}-{each.get('name', '')}" for each in volumes if pod and each.get("ephemeral") is not None
    }
    names: set[str] = set()
    for index, volume in enumerate(volumes):
        here = f"{path}.volumes[{index}]"
        causes = [*_source_causes(volume, here, pod), *_name_causes(volume.get("name", ""), f"{here}.name", names)]
        yield from causes
        if not causes:
            names.add(volume["name"])
        if (claim := (volume.get("persistentVolumeClaim") or {}).get("claimName")) in generated_claims:
            why = "must not reference a PVC that gets created for an ephemeral volume"
            yield Cause.invalid(f"{here}.persistentVolumeClaim.claimName", quote(claim), why)


def valid_volumes(spec: Mapping[str, Any], path: str) -> dict[str, Mapping[str, Any]]:
    """Return the valid volumes by name. For mounts, the API treats invalid volumes as missing."""
    wrong = {cause.field.removeprefix(path).split(".")[1] for cause in volume_causes(spec, path)}
    volumes = enumerate(spec.get("volumes") or ())
    return {volume["name"]: volume for index, volume in volumes if f"volumes[{index}]" not in wrong}


def _name_causes(name: str, path: str, names: set[str]) -> Iterator[Cause]:
    if name:
        yield from format_causes(name, path, label_faults)
    else:
        yield Cause.required(path)
    if name in names:
        yield duplicate(name, path)


def _source_causes(volume: Mapping[str, Any], path: str, pod: str) -> Iterator[Cause]:
    sources = [name for name in SOURCES if volume.get(name) is not None]
    if not sources:
        yield Cause.required(path, "must specify a volume type")
        return
    name = volume.get("name", "")
    for number, source in enumerate(sources):
        if number == 0:
            if source == "image" and pod:
                # A template may leave out the reference, to be filled in later.
                yield from required(volume[source], f"{path}.{source}", "reference")
            yield from SOURCES[source](volume[source], f"{path}.{source}")
            if source == "ephemeral" and pod and name:
                claim = f"{pod}-{name}"
                for why in subdomain_faults(claim):
                    yield Cause.invalid(f"{path}.name", quote(name), f"PVC name {quote(claim)}: {why}")
        else:
            yield Cause.forbidden(
                f"{path}.{_REPORTED_NAMES.get(source, source)}", "may not specify more than 1 volume type"
            )
        if source == "iscsi" and _is_too_long(name, volume[source]):
            what = "Total length of <volume name>:<iscsi.targetPortal>"
            why = f"{what} must be under 64 characters if iscsi.initiatorName is specified."
            yield Cause.invalid(f"{path}.name", quote(name), why)


def _is_too_long(name: str, source: Mapping[str, Any]) -> bool:
    return source.get("initiatorName") is not None and len(f"{name}:{source.get('targetPortal', '')}") > 64
