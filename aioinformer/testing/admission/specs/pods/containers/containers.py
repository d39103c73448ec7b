"""Validation of the containers of a pod.

A pod has three lists of containers. Init containers may not have probes or lifecycle hooks unless they are sidecars.
Ephemeral containers may set only few fields. The lists are checked one after another: the names of the first two are
unique together, and the third may use none of them. Causes are in the order in which the API reports them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.pods.containers.environment import import_causes, variable_causes
from aioinformer.testing.admission.specs.pods.containers.mounts import device_causes, mount_causes
from aioinformer.testing.admission.specs.pods.containers.probes import lifecycle_causes, probe_causes
from aioinformer.testing.admission.specs.pods.containers.resources import pod_requirement_causes, requirement_causes
from aioinformer.testing.admission.specs.pods.containers.restarts import resize_causes, restart_causes
from aioinformer.testing.admission.specs.pods.containers.security_contexts import security_context_causes
from aioinformer.testing.admission.specs.storage.volumes import valid_volumes
from aioinformer.testing.admission.specs.terms.parts import duplicate, format_causes, not_found, one_of, required
from aioinformer.testing.api.addresses import port_faults, port_name_faults
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Part = Mapping[str, Any]

_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_SIDECAR_FIELDS = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
# fmt: off
_NOT_OF_EPHEMERAL = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe", "readinessProbe",
    "startupProbe", "lifecycle",
)
# fmt: on


def container_causes(spec: Part, path: str) -> Iterator[Cause]:
    """Check all containers of a pod.

    Args:
        spec: of the pod.
        path: of the spec.
    """
    volumes = _volumes(spec, path)
    if not spec.get("containers"):
        yield Cause.required(f"{path}.containers")
    yield from _regular_containers(spec, f"{path}.containers", volumes)
    yield from _init_containers(spec, f"{path}.initContainers", volumes)
    yield from _ephemeral_containers(spec, f"{path}.ephemeralContainers", volumes)
    yield from pod_requirement_causes(spec, path)


def image_causes(spec: Part, path: str) -> Iterator[Cause]:
    """Check the images of a pod. Templates are not checked: the image may be filled in later."""
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield from _image(container, f"{path}.{field}[{index}]")


def _regular_containers(spec: Part, path: str, volumes: Mapping[str, Part]) -> Iterator[Cause]:
    names: set[str] = set()
    containers = spec.get("containers") or ()
    for index, container in enumerate(containers):
        here, name = f"{path}[{index}]", container.get("name", "")
        yield from _common(container, here, spec, volumes)
        if name in names:
            yield duplicate(name, f"{here}.name")
        names.add(name)
        yield from lifecycle_causes(container, here, spec)
        yield from probe_causes(container, here)
        yield from restart_causes(container, here)
    yield from _host_ports(containers, path)


def _init_containers(spec: Part, path: str, volumes: Mapping[str, Part]) -> Iterator[Cause]:
    names = {container.get("name", "") for container in spec.get("containers") or ()}
    for index, container in enumerate(spec.get("initContainers") or ()):
        here, name = f"{path}[{index}]", container.get("name", "")
        is_sidecar = container.get("restartPolicy") == "Always"
        yield from _common(container, here, spec, volumes)
        yield from restart_causes(container, here)
        if name in names:
            yield duplicate(name, f"{here}.name")
        names |= {name} if name else set()
        # Init containers run one after another, so their host ports cannot conflict.
        yield from _host_ports([container], path)
        if is_sidecar:
            yield from lifecycle_causes(container, here, spec)
            yield from probe_causes(container, here)
            continue
        for field in _SIDECAR_FIELDS:
            if container.get(field) is not None:
                why = "may not be set for init containers without restartPolicy=Always"
                yield Cause.forbidden(f"{here}.{field}", why)
        for number, policy in enumerate(container.get("resizePolicy") or ()):
            if policy.get("restartPolicy") == "RestartContainer":
                why = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                place = f"{here}.resizePolicy[{number}].restartPolicy"
                yield Cause.invalid(place, quote(policy["restartPolicy"]), why)


def _ephemeral_containers(spec: Part, path: str, volumes: Mapping[str, Part]) -> Iterator[Cause]:
    others = {each.get("name", "") for field in ("containers", "initContainers") for each in spec.get(field) or ()}
    names = set(others)
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        here, name, target = f"{path}[{index}]", container.get("name", ""), container.get("targetContainerName")
        yield from _common(container, here, spec, volumes)
        yield from _image(container, here)
        if name in names:
            yield duplicate(name, f"{here}.name")
        names.add(name)
        if target and target not in others:
            yield not_found(target, f"{here}.targetContainerName")
        for field in _NOT_OF_EPHEMERAL:
            value = container.get(field)
            # An empty `resources` is a default value.
            if value is not None and (value or field != "resources"):
                yield Cause.forbidden(f"{here}.{field}", "cannot be set for an Ephemeral Container")
        for number, mount in enumerate(container.get("volumeMounts") or ()):
            for field in ("subPath", "subPathExpr"):
                if mount.get(field):
                    place = f"{here}.volumeMounts[{number}].{field}"
                    yield Cause.forbidden(place, "cannot be set for an Ephemeral Container")


def _common(container: Part, path: str, spec: Part, volumes: Mapping[str, Part]) -> Iterator[Cause]:
    if name := container.get("name"):
        yield from format_causes(name, f"{path}.name", label_faults)
    else:
        yield Cause.required(f"{path}.name")
    yield from required(container, path, "image")
    yield from _required_one_of(container, path, "terminationMessagePolicy", _MESSAGE_POLICIES)
    yield from _ports(container.get("ports") or (), f"{path}.ports")
    yield from variable_causes(container.get("env") or (), f"{path}.env")
    yield from import_causes(container.get("envFrom") or (), f"{path}.envFrom")
    yield from mount_causes(container, path, volumes)
    yield from device_causes(container, path, volumes)
    yield from _required_one_of(container, path, "imagePullPolicy", _PULL_POLICIES)
    claims = [claim.get("name", "") for claim in spec.get("resourceClaims") or ()]
    yield from requirement_causes(container.get("resources") or {}, f"{path}.resources", claims)
    policies, restarts = container.get("resizePolicy") or (), spec.get("restartPolicy", "Always")
    yield from resize_causes(policies, f"{path}.resizePolicy", restarts)
    context = container.get("securityContext") or {}
    own_users = spec.get("hostUsers") is False
    yield from security_context_causes(context, f"{path}.securityContext", host_users=not own_users)


def _volumes(spec: Part, path: str) -> Mapping[str, Part]:
    fields = ("containers", "initContainers", "ephemeralContainers")
    containers = [container for field in fields for container in spec.get(field) or ()]
    if any(container.get("volumeMounts") or container.get("volumeDevices") for container in containers):
        return valid_volumes(spec, path)
    return {}


def _required_one_of(container: Part, path: str, field: str, known: Sequence[str]) -> Iterator[Cause]:
    yield from required(container, path, field)
    if container.get(field):
        yield from one_of(container[field], f"{path}.{field}", known)


def _ports(ports: Sequence[Part], path: str) -> Iterator[Cause]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        here, name = f"{path}[{index}]", port.get("name")
        if name and (faults := port_name_faults(name)):
            yield from (Cause.invalid(f"{here}.name", quote(name), why) for why in faults)
        elif name in names:
            yield duplicate(name, f"{here}.name")
        elif name:
            names.add(name)
        yield from required(port, here, "containerPort")
        for field in ("containerPort", "hostPort"):
            if number := port.get(field):
                yield from (Cause.invalid(f"{here}.{field}", str(number), why) for why in port_faults(number))
        yield from _required_one_of(port, here, "protocol", _PROTOCOLS)


def _host_ports(containers: Sequence[Part], path: str) -> Iterator[Cause]:
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            place = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if place in taken:
                yield duplicate(place, f"{path}[{index}].ports[{number}].hostPort")
            taken.add(place)


def _image(container: Part, path: str) -> Iterator[Cause]:
    image = container.get("image", "")
    if image != image.strip():
        yield Cause.invalid(f"{path}.image", quote(image), "must not have leading or trailing whitespace")
