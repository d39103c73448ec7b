"""Validation of the pod subresources `ephemeralcontainers` and `resize`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.common.quality_of_service import quality_of_service
from aioinformer.testing.admission.specs.pods.pod_structs import EPHEMERAL_CONTAINER
from aioinformer.testing.admission.specs.pods.pods import pod_causes
from aioinformer.testing.admission.specs.terms.go_structs import difference, go_struct
from aioinformer.testing.api.statuses import Cause, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Part = Mapping[str, Any]

_RESIZABLE = ("cpu", "memory")
_NOT_RESIZABLE = "only cpu and memory resources are mutable"
_NOT_RESIZABLE_INIT = "only cpu and memory resources for init or sidecar containers are mutable"


def ephemeral_containers(obj: Part, old: Part | None) -> Iterator[Cause]:
    """Check ephemeral containers, which may be added but not changed or removed."""
    assert old is not None
    yield from pod_causes(obj)
    path = "spec.ephemeralContainers"
    added = {each.get("name"): each for each in obj["spec"].get("ephemeralContainers") or ()}
    for former in old["spec"].get("ephemeralContainers") or ():
        name = former["name"]
        if name not in added:
            yield Cause.forbidden(path, f"existing ephemeral containers {quote(name)} may not be removed\n")
            continue
        before, after = (go_struct(each, EPHEMERAL_CONTAINER) for each in (former, added[name]))
        if before != after:
            why = f"existing ephemeral containers {quote(name)} may not be changed\n{difference(before, after)}"
            yield Cause.forbidden(path, why)


def resize(obj: Part, old: Part | None) -> Iterator[Cause]:
    """Check new sizes of containers."""
    assert old is not None
    yield from pod_causes(obj)
    spec, former = obj["spec"], old["spec"]
    if quality_of_service(spec) != quality_of_service(former):
        said = quote((obj.get("status") or {}).get("qosClass", ""))
        yield Cause.invalid("spec", said, "Pod QOS Class may not change as a result of resizing")
    if not _can_be_resized(old.get("status") or {}):
        yield Cause.forbidden("spec", "Pod running on node without support for resize")
    order_causes = list(_order_causes(spec, former))
    yield from order_causes
    if not order_causes:
        yield from _sizes(spec, former)


def _can_be_resized(status: Part) -> bool:
    running = [each for each in status.get("containerStatuses") or () if (each.get("state") or {}).get("running")]
    return not running or running[0].get("resources") is not None


def _order_causes(spec: Part, former: Part) -> Iterator[Cause]:
    for field in ("containers", "initContainers"):
        new, old = ([each.get("name") for each in part.get(field) or ()] for part in (spec, former))
        if len(new) != len(old):
            yield Cause.forbidden(f"spec.{field}", f"{field} may not be added or removed on resize")
            continue
        for index, (name, before) in enumerate(zip(new, old, strict=True)):
            if name != before:
                why = f"{field} may not be renamed or reordered on resize"
                yield Cause.forbidden(f"spec.{field}[{index}].name", why)


def _sizes(spec: Part, former: Part) -> Iterator[Cause]:
    init_containers, others = (list(_pairs(spec, former, field)) for field in ("initContainers", "containers"))
    for container, before, path in (*init_containers, *others):
        yield from _removed_resources(container, before, f"{path}.resources")
    for container, before, _ in others:
        if _without_sizes(container) != _without_sizes(before):
            yield Cause.forbidden("spec", _NOT_RESIZABLE)
    for container, before, path in init_containers:
        if _without_sizes(container) != _without_sizes(before):
            yield Cause.forbidden(path, _NOT_RESIZABLE_INIT)
        policies = [each.get("restartPolicy") for each in container.get("resizePolicy") or ()]
        if container != before and container.get("restartPolicy") != "Always" and "RestartContainer" in policies:
            why = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
            yield Cause.forbidden(path, why)


def _pairs(spec: Part, former: Part, field: str) -> Iterator[tuple[Part, Part, str]]:
    pairs = zip(spec.get(field) or (), former.get(field) or (), strict=True)
    return ((new, old, f"spec.{field}[{index}]") for index, (new, old) in enumerate(pairs))


def _removed_resources(container: Part, before: Part, path: str) -> Iterator[Cause]:
    for field in ("requests", "limits"):
        new, old = ((each.get("resources") or {}).get(field) or {} for each in (container, before))
        if old.keys() - new.keys():
            yield Cause.forbidden(f"{path}.{field}", f"resource {field} cannot be removed")


def _without_sizes(container: Part) -> dict[str, Any]:
    resources = container.get("resources") or {}
    others = {
        field: {name: size for name, size in (resources.get(field) or {}).items() if name not in _RESIZABLE}
        for field in ("requests", "limits")
    }
    return {**container, "resources": {**resources, **others}, "resizePolicy": None}
