"""Validation of updates of jobs: most fields are immutable, some may change until pods have been started."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.pods.pod_structs import go_pod_spec, go_template
from aioinformer.testing.admission.specs.terms.go_structs import go_struct
from aioinformer.testing.admission.specs.terms.parts import immutable
from aioinformer.testing.admission.specs.terms.selectors import same_selector
from aioinformer.testing.admission.specs.workloads.job_policies import FAILURE_POLICY, SUCCESS_POLICY
from aioinformer.testing.api.statuses import Cause, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Scheduling directives may change before the job has pods.
_PLACEMENT = ("nodeSelector", "tolerations", "schedulingGates")


def change_causes(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Cause]:
    """Check the update of a job.

    Args:
        spec: the new spec.
        old: the job that is replaced.
    """
    former = old.get("spec") or {}
    yield from _completions(spec, former)
    yield from same_selector(spec, old)
    yield from _template(spec.get("template") or {}, former.get("template") or {}, old)
    yield from immutable(spec.get("completionMode"), former.get("completionMode"), "spec.completionMode")
    yield from _policy(spec, former, "podFailurePolicy", FAILURE_POLICY)
    for field in ("backoffLimitPerIndex", "managedBy"):
        yield from immutable(spec.get(field), former.get(field), f"spec.{field}")
    yield from _policy(spec, former, "successPolicy", SUCCESS_POLICY)


def _completions(spec: Mapping[str, Any], former: Mapping[str, Any]) -> Iterator[Cause]:
    completions = spec.get("completions")
    if spec.get("completionMode") != "Indexed":
        yield from immutable(completions, former.get("completions"), "spec.completions")
    elif completions not in (None, former.get("completions"), spec.get("parallelism")):
        why = "can only be modified in tandem with spec.parallelism"
        yield Cause.invalid("spec.completions", str(completions), why)


def _policy(
    spec: Mapping[str, Any], former: Mapping[str, Any], field: str, shape: Mapping[str, Any]
) -> Iterator[Cause]:
    policy = spec.get(field)
    if policy != former.get(field):
        value = quote(None if policy is None else go_struct(policy, shape))
        yield Cause.invalid(f"spec.{field}", value, "field is immutable")


def _template(template: Mapping[str, Any], former: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[Cause]:
    """Check the template. Its scheduling directives may change while the job is suspended and has no pods."""
    status = old.get("status") or {}
    suspended = bool((old.get("spec") or {}).get("suspend"))
    halted = any(each["type"] == "Suspended" and each["status"] == "True" for each in status.get("conditions") or ())
    if not suspended or status.get("active") or not (halted or not status.get("startTime")):
        if template != former:
            yield Cause.invalid("spec.template", quote(go_template(template)), "field is immutable")
        return
    wanted, pods = deepcopy(dict(former.get("spec") or {})), template.get("spec") or {}
    for field in _PLACEMENT:
        _copy_field(wanted, pods, field)
    _copy_node_affinity(wanted, pods)
    _copy_resources(wanted, pods)
    if wanted != pods:
        yield Cause.invalid("spec.template.spec", quote(go_pod_spec(pods)), "field is immutable")


def _copy_field(wanted: dict[str, Any], given: Mapping[str, Any], field: str) -> None:
    wanted.pop(field, None)
    if field in given:
        wanted[field] = given[field]


def _copy_node_affinity(wanted: dict[str, Any], pods: Mapping[str, Any]) -> None:
    affinity = dict(wanted.get("affinity") or {})
    _copy_field(affinity, pods.get("affinity") or {}, "nodeAffinity")
    wanted["affinity"] = affinity
    if not affinity and "affinity" not in pods:
        del wanted["affinity"]


def _copy_resources(wanted: dict[str, Any], pods: Mapping[str, Any]) -> None:
    for field in ("containers", "initContainers"):
        pairs = zip(wanted.get(field) or (), pods.get(field) or (), strict=False)
        if len(wanted.get(field) or ()) == len(pods.get(field) or ()):
            for mine, theirs in pairs:
                if mine["name"] == theirs["name"]:
                    _copy_field(mine, theirs, "resources")
