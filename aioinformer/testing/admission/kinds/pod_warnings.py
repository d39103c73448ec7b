"""Warnings of the API about pods and pod templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.addresses import ip_warnings
from aioinformer.testing.api.validation import label_faults, label_value_faults
from aioinformer.testing.schemas.quantities import amount

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Part = Mapping[str, Any]

_REQUIRED, _PREFERRED = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))
_MATCHES_NOTHING = "a null labelSelector results in matching no pod"
_SURPRISING_NAME = "which can result in surprising behavior; a DNS label is recommended"
_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_SECCOMP_OF_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_OF = "container.seccomp.security.alpha.kubernetes.io/"
_IN_BYTES = ("memory", "ephemeral-storage")


def pod_warnings(obj: Part) -> Iterator[str]:
    """Return the warnings for a new pod."""
    yield from _name(obj, "the Pod's hostname")
    yield from _template(obj, "")


def pod_template_warnings(obj: Part) -> Iterator[str]:
    """Return the warnings for a PodTemplate object."""
    yield from _template(obj.get("template") or {}, "template.")


def template_warnings(obj: Part) -> Iterator[str]:
    """Return the warnings for a workload whose pods are named after it."""
    yield from _name(obj, "Pod names and hostnames")
    yield from workload_warnings(obj)


def workload_warnings(obj: Part) -> Iterator[str]:
    """Return the warnings for the pod template of a workload."""
    spec, path = obj.get("spec") or {}, "spec."
    if "jobTemplate" in spec:
        spec, path = spec["jobTemplate"].get("spec") or {}, "spec.jobTemplate.spec."
    yield from _template(spec.get("template") or {}, f"{path}template.")


def _name(obj: Part, what: str) -> Iterator[str]:
    if faults := label_faults(obj["metadata"]["name"]):
        yield f"metadata.name: this is used in {what}, {_SURPRISING_NAME}: [{' '.join(faults)}]"


def _template(template: Part, path: str) -> Iterator[str]:
    spec, annotations = template.get("spec") or {}, (template.get("metadata") or {}).get("annotations") or {}
    here = f"{path}spec"
    for name in spec.get("nodeSelector") or ():
        if name in _LABELS:
            yield f"{here}.nodeSelector[{name}]: {_LABELS[name]}"
    yield from _nodes((spec.get("affinity") or {}).get("nodeAffinity") or {}, f"{here}.affinity.nodeAffinity")
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        place, key = f"{here}.topologySpreadConstraints[{index}]", constraint.get("topologyKey", "")
        if key in _LABELS:
            yield f"{place}.topologyKey: {key} is {_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{place}.labelSelector: {_MATCHES_NOTHING}"
    for name, why in _ANNOTATIONS.items():
        if name in annotations:
            yield f"{path}metadata.annotations[{name}]: {why}"
    for index, volume in enumerate(spec.get("volumes") or ()):
        for source, why in _VOLUMES.items():
            if volume.get(source) is not None:
                shown_source = "storageOS" if source == "storageos" else source
                yield f"{here}.volumes[{index}].{shown_source}: {why}"
    yield from _duplicates(spec, here)
    yield from _fractional_sizes(spec.get("overhead") or {}, f"{here}.overhead")
    if (spec.get("securityContext") or {}).get("seccompProfile") is None and _SECCOMP_OF_POD in annotations:
        yield f"{path}metadata.annotations[{_SECCOMP_OF_POD}]: {_SECCOMP}"
    containers = [
        (container, f"{here}.{field}[{index}]")
        for field in ("initContainers", "containers", "ephemeralContainers")
        for index, container in enumerate(spec.get(field) or ())
    ]
    for container, place in containers:
        yield from _container(container, place, annotations, f"{path}metadata.annotations")
    yield from _ports(containers)
    yield from _port_names(containers)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        why = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{here}.terminationGracePeriodSeconds: {why}"
    yield from _pods(spec.get("affinity") or {}, f"{here}.affinity")
    for index, server in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        yield from ip_warnings(f"{here}.dnsConfig.nameservers[{index}]", server)
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        yield from ip_warnings(f"{here}.hostAliases[{index}].ip", alias.get("ip", ""))


def _nodes(affinity: Part, path: str) -> Iterator[str]:
    terms = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    for index, term in enumerate(terms):
        yield from _node_term(term, f"{path}.{_REQUIRED}.nodeSelectorTerms[{index}]", values=False)
    for index, preference in enumerate(affinity.get(_PREFERRED) or ()):
        yield from _node_term(preference["preference"], f"{path}.{_PREFERRED}[{index}].preference", values=True)


def _node_term(term: Part, path: str, *, values: bool) -> Iterator[str]:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        here, key = f"{path}.matchExpressions[{index}]", expression.get("key", "")
        if key in _LABELS:
            yield f"{here}.key: {key} is {_LABELS[key]}"
        for number, value in enumerate(expression.get("values") or () if values else ()):
            for why in label_value_faults(value):
                yield f"{here}.values[{number}]: {value} is invalid, {why}"


def _pods(affinity: Part, path: str) -> Iterator[str]:
    for field in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(field) or {}
        for index, term in enumerate(pods.get(_REQUIRED) or ()):
            if term.get("labelSelector") is None:
                yield f"{path}.{field}.{_REQUIRED}[{index}].labelSelector: {_MATCHES_NOTHING}"
        for index, preference in enumerate(pods.get(_PREFERRED) or ()):
            if preference["podAffinityTerm"].get("labelSelector") is None:
                here = f"{path}.{field}.{_PREFERRED}[{index}].podAffinityTerm"
                yield f"{here}.labelSelector: {_MATCHES_NOTHING}"


def _duplicates(spec: Part, path: str) -> Iterator[str]:
    for field, key in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        found: Sequence[str] = [each.get(key, "") for each in spec.get(field) or ()]
        for index, value in enumerate(found):
            if value in found[:index]:
                yield f'{path}.{field}[{index}].{key}: duplicate {key} "{value}"'
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'


def _container(container: Part, path: str, annotations: Part, notes: str) -> Iterator[str]:
    note = f"{_SECCOMP_OF}{container.get('name', '')}"
    if note in annotations and (container.get("securityContext") or {}).get("seccompProfile") is None:
        yield f"{notes}[{note}]: {_SECCOMP}"
    for name in _IN_BYTES:
        for part in ("limits", "requests"):
            sizes = (container.get("resources") or {}).get(part) or {}
            yield from _fractional_sizes({name: sizes[name]} if name in sizes else {}, f"{path}.resources.{part}")
    seen: set[str] = set()
    for index, variable in enumerate(container.get("env") or ()):
        name, value = variable.get("name", ""), variable.get("value", "")
        itself = f"$({name})"
        if name in seen and (variable.get("valueFrom") is not None or value == itself or itself not in value):
            yield f'{path}.env[{index}]: hides previous definition of "{name}", which may be dropped when using apply'
        seen.add(name)


def _ports(containers: Sequence[tuple[Part, str]]) -> Iterator[str]:
    seen: dict[tuple[int, str], list[tuple[str, str, int]]] = {}
    for container, path in containers:
        for index, port in enumerate(container.get("ports") or ()):
            here, address, host_port = f"{path}.ports[{index}]", port.get("hostIP", ""), port.get("hostPort", 0)
            if address and not host_port:
                yield f"{here}: hostIP set without hostPort: {_go_port(port)}"
            others = seen.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
            for where, other_address, other_port in others:
                if (address, host_port) == (other_address, other_port):
                    yield f"{here}: duplicate port definition with {where}"
                elif not host_port or not other_port:
                    yield f"{here}: overlapping port definition with {where}"
                elif host_port == other_port and (not address) != (not other_address):
                    yield f"{here}: dangerously ambiguous port definition with {where}"
            others.append((here, address, host_port))


def _port_names(containers: Sequence[tuple[Part, str]]) -> Iterator[str]:
    seen: dict[str, str] = {}
    for container, path in containers:
        for index, port in enumerate(container.get("ports") or ()):
            if not (name := port.get("name", "")):
                continue
            here = f"{path}.ports[{index}]"
            if (other := seen.setdefault(name, here)) != here:
                select = f"services and probes that select ports by name will use {other}"
                yield f'{here}: duplicate port name "{name}" with {other}, {select}'


def _go_port(port: Part) -> str:
    fields = ("name", "hostPort", "containerPort", "protocol", "hostIP")
    zeros = {"hostPort": 0, "containerPort": 0}
    return "{" + " ".join(f"{name[0].upper()}{name[1:]}:{port.get(name, zeros.get(name, ''))}" for name in fields) + "}"


def _fractional_sizes(sizes: Part, path: str) -> Iterator[str]:
    for name in _IN_BYTES:
        if name in sizes and amount(sizes[name]) * 1000 % 1000:
            yield f'{path}[{name}]: fractional byte value "{sizes[name]}" is invalid, must be an integer'
