"""Validation of deployments, replica sets, stateful sets, daemon sets, replication controllers and revisions.

The kinds differ in what they report for a selector that does not match the template. Some skip the template if the
selector is invalid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.pods.pods import template_causes
from aioinformer.testing.admission.specs.storage.claims import claim_spec_causes
from aioinformer.testing.admission.specs.terms.parts import (
    format_causes,
    immutable,
    non_negative,
    one_of,
    selector_causes,
)
from aioinformer.testing.admission.specs.terms.selectors import matches, mismatch, quote_selector, same_selector
from aioinformer.testing.admission.specs.workloads.rollouts import (
    daemon_set_strategy,
    deployment_strategy,
    stateful_set_strategy,
)
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_faults, labelling_causes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TEMPLATE = "spec.template"
# The controller sets these in each pod and ignores the template's values.
_SET_BY_CONTROLLER = frozenset({"hostname", "subdomain"})
_MUTABLE_IN_STATEFUL_SETS = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


def deployment(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    yield from _numbers(spec, "replicas")
    yield from _replicated(spec)
    yield from deployment_strategy(spec.get("strategy") or {}, "spec.strategy")
    yield from _numbers(spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
        yield Cause.invalid("spec.progressDeadlineSeconds", str(deadline), "must be greater than minReadySeconds")
    yield from same_selector(spec, old)


def replica_set(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    yield from _numbers(spec, "replicas", "minReadySeconds")
    yield from _replicated(spec)
    yield from same_selector(spec, old)


def daemon_set(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    selector, template = spec.get("selector"), spec.get("template") or {}
    yield from same_selector(spec, old)
    wrong = [] if selector is None else list(selector_causes(selector, "spec.selector"))
    yield from wrong
    if not wrong:
        yield from _mismatch(template, selector)
    if selector is not None:
        yield from _empty_selector(selector, "daemonset")
    yield from template_causes(template, _TEMPLATE)
    yield from _always_restarted(template, "DaemonSet")
    yield from _numbers(spec, "minReadySeconds")
    yield from daemon_set_strategy(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    yield from _numbers(spec, "revisionHistoryLimit")


def stateful_set(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        yield Cause.invalid("spec.podManagementPolicy", quote(policy), "must be 'OrderedReady' or 'Parallel'")
    yield from stateful_set_strategy(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    for field, kept in (spec.get("persistentVolumeClaimRetentionPolicy") or {}).items():
        yield from one_of(kept, f"spec.persistentVolumeClaimRetentionPolicy.{field}", ("Retain", "Delete"))
    for index, claim in enumerate(() if old is not None else spec.get("volumeClaimTemplates") or ()):
        yield from claim_spec_causes(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
    yield from _numbers(spec, "replicas", "minReadySeconds")
    yield from non_negative((spec.get("ordinals") or {}).get("start"), "spec.ordinals.start")
    if old is None and (service := spec.get("serviceName")):
        yield from format_causes(service, "spec.serviceName", label_faults)
    selector, template = spec.get("selector"), _with_claims(spec)
    wrong = list(_selector(selector, "statefulset"))
    yield from wrong
    if selector and any(selector_causes(selector, "")):
        yield Cause("FieldValueInvalid", "spec.selector", f"Invalid value: {quote_selector(selector)}")
    else:
        yield from _mismatch(template, selector)
        yield from template_causes(template, _TEMPLATE)
        yield from labelling_causes(template.get("metadata") or {}, _TEMPLATE)
    yield from _always_restarted(template, "StatefulSet")
    if old is not None and _immutable_fields(spec) != _immutable_fields(old.get("spec") or {}):
        *others, last = (f"'{field}'" for field in _MUTABLE_IN_STATEFUL_SETS)
        changeable = f"{', '.join(others)} and {last}"
        why = f"updates to statefulset spec for fields other than {changeable} are forbidden"
        yield Cause.forbidden("spec", why)


def replication_controller(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    selector, template = spec.get("selector"), spec.get("template")
    yield from _numbers(spec, "minReadySeconds")
    if not selector:
        yield Cause.required("spec.selector")
    yield from _numbers(spec, "replicas")
    if template is None:
        yield Cause.required(_TEMPLATE)
        return
    yield from _mismatch(template, {"matchLabels": selector})
    yield from template_causes(template, _TEMPLATE)
    yield from _always_restarted(template, "ReplicationController")


def controller_revision(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    """Check a former state of a stateful set or daemon set."""
    data = obj.get("data")
    yield from non_negative(obj.get("revision"), "revision")
    if old is not None:
        yield from immutable(data, old.get("data"), "data")
    elif not isinstance(data, dict):
        yield Cause.required("data", "data is mandatory" if data is None else "data must be a valid JSON object")


def _numbers(spec: Mapping[str, Any], *fields: str) -> Iterator[Cause]:
    for field in fields:
        yield from non_negative(spec.get(field), f"spec.{field}")


def _replicated(spec: Mapping[str, Any]) -> Iterator[Cause]:
    """Check the selector and the template of a deployment or replica set."""
    selector, template = spec.get("selector"), spec.get("template") or {}
    yield from _selector(selector, "deployment")
    if selector and any(selector_causes(selector, "")):
        yield Cause.invalid("spec.selector", quote_selector(selector), "invalid label selector")
        return
    yield from _mismatch(template, selector)
    yield from template_causes(template, _TEMPLATE)
    yield from _always_restarted(template, "ReplicaSet")


def _selector(selector: Mapping[str, Any] | None, kind: str) -> Iterator[Cause]:
    if selector is None:
        yield Cause.required("spec.selector")
        return
    yield from selector_causes(selector, "spec.selector")
    yield from _empty_selector(selector, kind)


def _empty_selector(selector: Mapping[str, Any], kind: str) -> Iterator[Cause]:
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        why = f"empty selector is invalid for {kind}"
        yield Cause.invalid("spec.selector", quote_selector(selector), why, missing=True)


def _mismatch(template: Mapping[str, Any], selector: Mapping[str, Any] | None) -> Iterator[Cause]:
    """Check that the selector matches the template. A missing selector matches nothing."""
    labels = (template.get("metadata") or {}).get("labels")
    if selector is None or not matches(selector, labels or {}):
        yield mismatch(labels, f"{_TEMPLATE}.metadata.labels", missing=selector is None or not labels)


def _always_restarted(template: Mapping[str, Any], kind: str) -> Iterator[Cause]:
    """Check that the pods are restarted and have no deadline."""
    spec, path = template.get("spec") or {}, f"{_TEMPLATE}.spec"
    yield from one_of(spec.get("restartPolicy"), f"{path}.restartPolicy", ("Always",))
    if spec.get("activeDeadlineSeconds") is not None:
        yield Cause.forbidden(f"{path}.activeDeadlineSeconds", f"activeDeadlineSeconds in {kind} is not Supported")


def _with_claims(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the template with a volume for each claim, as the pods get it. Claims replace volumes of the same name."""
    template = spec.get("template") or {}
    names = [(claim.get("metadata") or {}).get("name", "") for claim in spec.get("volumeClaimTemplates") or ()]
    pods = {field: value for field, value in (template.get("spec") or {}).items() if field not in _SET_BY_CONTROLLER}
    claims = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    pods["volumes"] = claims + [each for each in pods.get("volumes") or () if each.get("name") not in names]
    return {**template, "spec": pods}


def _immutable_fields(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the immutable fields of a stateful set that are not empty."""
    return {field: value for field, value in spec.items() if value and field not in _MUTABLE_IN_STATEFUL_SETS}
