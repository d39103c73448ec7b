"""Validation of updates of pods: images, the deadline, tolerations and few other fields may change.

A pod with scheduling gates has no node. Until the last gate is removed, its node selector and affinity may be narrowed.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.pods.placement import toleration_causes
from aioinformer.testing.admission.specs.pods.pod_structs import NODE_TERM, go_pod_spec
from aioinformer.testing.admission.specs.terms.go_structs import difference, go_struct
from aioinformer.testing.admission.specs.terms.parts import between
from aioinformer.testing.api.statuses import Cause, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Part = Mapping[str, Any]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_LATEST = 2**31 - 1
_CHANGEABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)


def change_causes(spec: Part, old: Part) -> Iterator[Cause]:
    """Check that a new spec may replace the old one."""
    for field in ("containers", "initContainers"):
        new, former = spec.get(field) or (), old.get(field) or ()
        if len(new) != len(former):
            yield Cause.forbidden(f"spec.{field}", "pod updates may not add or remove containers")
            return
        yield from _images(new, f"spec.{field}")
    deadline = list(_deadline(spec.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")))
    yield from deadline
    if deadline and spec.get("activeDeadlineSeconds") is not None:
        return
    yield from _tolerations(spec.get("tolerations") or (), old.get("tolerations") or ())
    yield from _gates(spec.get("schedulingGates") or (), old.get("schedulingGates") or ())
    if spec == old:
        return
    kept = _without_allowed_changes(spec, old)
    if old.get("schedulingGates"):
        yield from _node_choice(kept, old)
    before, after = (go_pod_spec(each) for each in (old, kept))
    if before != after:
        why = f"pod updates may not change fields other than {_CHANGEABLE}\n{difference(before, after)}"
        # Code in the server's process acts as the scheduler, and may set the node name by an update.
        bound = not before["NodeName"] and before == {**after, "NodeName": ""}
        yield replace(Cause.forbidden("spec", why), missing=bound)


def _images(containers: Sequence[Part], path: str) -> Iterator[Cause]:
    for index, container in enumerate(containers):
        image = container.get("image", "")
        if not image:
            yield Cause.required(f"{path}[{index}].image")
        if image != image.strip():
            why = "must not have leading or trailing whitespace"
            yield Cause.invalid(f"{path}[{index}].image", quote(image), why)


def _deadline(seconds: int | None, old: int | None) -> Iterator[Cause]:
    path = "spec.activeDeadlineSeconds"
    if seconds is None and old is not None:
        yield Cause.invalid(path, "null", "must not update from a positive integer to nil value")
    elif causes := list(between(seconds, path, 0, _LATEST)):
        yield from causes
    elif seconds is not None and old is not None and old < seconds:
        yield Cause.invalid(path, str(seconds), "must be less than or equal to previous value")


def _tolerations(new: Sequence[Part], old: Sequence[Part]) -> Iterator[Cause]:
    kept = [_without(each, "tolerationSeconds") for each in new]
    if any(_without(each, "tolerationSeconds") not in kept for each in old):
        why = "existing toleration can not be modified except its tolerationSeconds"
        yield Cause.forbidden("spec.tolerations", why)
    else:
        yield from toleration_causes(new, "spec.tolerations")


def _gates(new: Sequence[Part], old: Sequence[Part]) -> Iterator[Cause]:
    known = {each.get("name", "") for each in old}
    for index, gate in enumerate(new):
        if (name := gate.get("name", "")) not in known:
            why = f"only deletion is allowed, but found new scheduling gate '{name}'"
            yield Cause.forbidden(f"spec.schedulingGates[{index}].name", why)


def _without_allowed_changes(spec: Part, old: Part) -> dict[str, Any]:
    """Return the new spec with the old values of all fields that may change."""
    kept = deepcopy(dict(spec))
    for field in ("containers", "initContainers"):
        for container, former in zip(kept.get(field) or (), old.get(field) or (), strict=True):
            container["image"] = former.get("image", "")
    _copy_fields(kept, old, "activeDeadlineSeconds", "schedulingGates", "tolerations")
    return kept


def _node_choice(kept: dict[str, Any], old: Part) -> Iterator[Cause]:
    labels, former = kept.get("nodeSelector") or {}, old.get("nodeSelector") or {}
    if labels != former:
        if any(labels.get(name) != value for name, value in former.items()):
            why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            selector = kept.get("nodeSelector")
            yield Cause.invalid("spec.nodeSelector", quote(selector and dict(sorted(selector.items()))), why)
        _copy_fields(kept, old, "nodeSelector")
    nodes, before = ((each.get("affinity") or {}).get("nodeAffinity") for each in (kept, old))
    if nodes == before:
        return
    yield from _terms(_terms_of(nodes), _terms_of(before))
    affinity = {**(kept.get("affinity") or {}), "nodeAffinity": before}
    kept["affinity"] = None if not any(affinity.values()) and old.get("affinity") is None else affinity


def _terms(new: Sequence[Part], old: Sequence[Part]) -> Iterator[Cause]:
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    if old and len(old) != len(new):
        quoted = [go_struct(term, NODE_TERM) for term in new] or None
        why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield Cause.invalid(path, quote(quoted), why)
        return
    for index, (term, former) in enumerate(zip(new, old, strict=False)):
        if not _only_adds(term, former):
            why = "only additions are allowed (no mutations or deletions)"
            yield Cause.invalid(f"{path}[{index}]", quote(go_struct(term, NODE_TERM)), why)


def _only_adds(new: Part, old: Part) -> bool:
    lists = [(new.get(field) or [], old.get(field) or []) for field in ("matchExpressions", "matchFields")]
    # An empty term matches no node, so adding requirements would not narrow it.
    if not any(former for _, former in lists):
        return not any(wanted for wanted, _ in lists)
    return all(wanted[: len(former)] == former for wanted, former in lists)


def _terms_of(nodes: Part | None) -> Sequence[Part]:
    return ((nodes or {}).get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()


def _copy_fields(target: dict[str, Any], source: Part, *fields: str) -> None:
    for field in fields:
        target[field] = source.get(field)


def _without(part: Part, field: str) -> Part:
    return {name: value for name, value in part.items() if name != field}
