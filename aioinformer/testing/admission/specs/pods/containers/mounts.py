"""Validation of volume mounts and volume devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.parts import not_found, one_of, required
from aioinformer.testing.admission.specs.terms.paths import descending_path, no_parent_steps
from aioinformer.testing.api.statuses import Cause, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Part = Mapping[str, Any]

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_READ_ONLY = ("Disabled", "Enabled", "IfPossible")


def mount_causes(container: Part, path: str, volumes: Mapping[str, Part]) -> Iterator[Cause]:
    """Check the volume mounts of a container.

    Args:
        path: of the container.
        volumes: of the pod, by name.
    """
    mounts, devices = _parts(container, "volumeMounts"), _parts(container, "volumeDevices")
    device_names = {device.get("name", "") for device in devices}
    device_paths = {device.get("devicePath", "") for device in devices}
    places: set[str] = set()
    for index, mount in enumerate(mounts):
        here, name, place = f"{path}.volumeMounts[{index}]", mount.get("name", ""), mount.get("mountPath", "")
        yield from required(mount, here, "name")
        if name not in volumes:
            yield not_found(name, f"{here}.name")
        yield from required(mount, here, "mountPath")
        if place in places:
            yield Cause.invalid(f"{here}.mountPath", quote(place), "must be unique")
        places.add(place)
        if name in device_names:
            yield Cause.invalid(f"{here}.name", quote(name), "must not already exist in volumeDevices")
        if place in device_paths:
            yield Cause.invalid(f"{here}.mountPath", quote(place), "must not already exist as a path in volumeDevices")
        # The API reports these without the index of the mount.
        yield from _sub_paths(mount, here, f"{path}.volumeMounts")
        yield from _propagation(mount, f"{path}.volumeMounts.mountPropagation", container)
        yield from _recursive_read_only(mount, f"{path}.volumeMounts.recursiveReadOnly")


def device_causes(container: Part, path: str, volumes: Mapping[str, Part]) -> Iterator[Cause]:
    """Check the volume devices of a container.

    Args:
        path: of the container.
        volumes: of the pod, by name.
    """
    mounts = _parts(container, "volumeMounts")
    mounted = {mount.get("name", "") for mount in mounts}
    mount_paths = {mount.get("mountPath", "") for mount in mounts}
    names, places = set[str](), set[str]()
    for index, device in enumerate(_parts(container, "volumeDevices")):
        here, name, place = f"{path}.volumeDevices[{index}]", device.get("name", ""), device.get("devicePath", "")
        yield from required(device, here, "name")
        if name in names:
            yield Cause.invalid(f"{here}.name", quote(name), "must be unique")
        if name not in volumes:
            yield not_found(name, f"{here}.name")
        elif all(volumes[name].get(source) is None for source in ("persistentVolumeClaim", "ephemeral")):
            why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield Cause.invalid(f"{here}.name", quote(name), why)
        yield from required(device, here, "devicePath")
        if place in places:
            yield Cause.invalid(f"{here}.devicePath", quote(place), "must be unique")
        if any(no_parent_steps(place, here)):
            yield Cause.invalid(f"{here}.devicePath", quote(place), "can not contain backsteps ('..')")
        else:
            places.add(place)
        if name in mounted:
            yield Cause.invalid(f"{here}.name", quote(name), "must not already exist in volumeMounts")
        if place in mount_paths:
            yield Cause.invalid(f"{here}.devicePath", quote(place), "must not already exist as a path in volumeMounts")
        if name:
            names.add(name)


def _parts(container: Part, field: str) -> Sequence[Part]:
    parts: Sequence[Part] = container.get(field) or ()
    return parts


def _sub_paths(mount: Part, here: str, path: str) -> Iterator[Cause]:
    plain, expanded = mount.get("subPath", ""), mount.get("subPathExpr", "")
    if plain:
        yield from descending_path(plain, f"{path}.subPath")
    if plain and expanded:
        yield Cause.invalid(f"{here}.subPathExpr", quote(expanded), "subPathExpr and subPath are mutually exclusive")
    if expanded:
        yield from descending_path(expanded, f"{path}.subPathExpr")


def _propagation(mount: Part, path: str, container: Part) -> Iterator[Cause]:
    value = mount.get("mountPropagation")
    if value is None:
        return
    yield from one_of(value, path, _PROPAGATIONS)
    if value == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        yield Cause.forbidden(path, "Bidirectional mount propagation is available only to privileged containers")


def _recursive_read_only(mount: Part, path: str) -> Iterator[Cause]:
    value = mount.get("recursiveReadOnly")
    if value is None or value == "Disabled":
        return
    yield from one_of(value, path, _READ_ONLY)
    if value in _READ_ONLY:
        if not mount.get("readOnly"):
            yield Cause.forbidden(path, "may only be specified when readOnly is true")
        if mount.get("mountPropagation") not in (None, "None"):
            yield Cause.forbidden(path, "may only be specified when mountPropagation is None or not specified")
