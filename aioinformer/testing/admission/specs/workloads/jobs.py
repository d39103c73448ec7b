"""Validation of jobs and of the job templates of cron jobs.

The API checks an updated job twice: as a new job, and for forbidden changes. The answer lists the causes of both.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.common.job_selectors import PREFIX, own_labels, settle_selector
from aioinformer.testing.admission.specs.pods.pods import template_causes
from aioinformer.testing.admission.specs.terms.parts import domain_path, non_negative, one_of, selector_causes
from aioinformer.testing.admission.specs.terms.selectors import matches, mismatch, quote_selector
from aioinformer.testing.admission.specs.workloads.job_changes import change_causes
from aioinformer.testing.admission.specs.workloads.job_policies import failure_policy_causes, success_policy_causes
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

INDEXED = "Indexed"
_MOST_INDEXES = 100_000
_MOST_WITH_BACKOFF_LIMIT = 10_000
_LONGEST_MANAGER = 63
_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)


def job(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    if old is None:
        settled = deepcopy(dict(obj))
        settle_selector(settled)
        obj = settled
    spec, metadata = obj.get("spec") or {}, obj.get("metadata") or {}
    yield from _generated(spec, metadata, old)
    yield from _whole_spec(spec)
    yield from _indexed_names(spec, metadata)
    if old is not None:
        yield from _whole_spec(spec)
        yield from change_causes(spec, old)


def job_spec_causes(spec: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Check the spec of a job, except for its selector.

    Args:
        path: of the spec.
    """
    for field in _COUNTS:
        yield from non_negative(spec.get(field), f"{path}.{field}")
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield Cause.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if spec.get("managedBy") is not None:
        yield from _manager(spec["managedBy"], f"{path}.managedBy")
    mode = spec.get("completionMode")
    if mode is not None:
        yield from one_of(mode, f"{path}.completionMode", ("NonIndexed", INDEXED))
    if mode == INDEXED:
        yield from _indexed(spec, path)
    elif mode in (None, "NonIndexed"):
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(field) is not None:
                yield Cause.invalid(f"{path}.{field}", str(spec[field]), "requires indexed completion mode")
    if spec.get("podFailurePolicy") is not None:
        yield from failure_policy_causes(spec, f"{path}.podFailurePolicy")
    if spec.get("successPolicy") is not None:
        yield from success_policy_causes(spec, f"{path}.successPolicy", indexed=mode == INDEXED)
    replaced = ("Failed",) if spec.get("podFailurePolicy") is not None else ("Failed", "TerminatingOrFailed")
    if spec.get("podReplacementPolicy") is not None:
        yield from one_of(spec["podReplacementPolicy"], f"{path}.podReplacementPolicy", replaced)
    template = spec.get("template") or {}
    yield from template_causes(template, f"{path}.template")
    yield from _restart_policy(
        spec, (template.get("spec") or {}).get("restartPolicy"), f"{path}.template.spec.restartPolicy"
    )


def _generated(spec: Mapping[str, Any], metadata: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    """Check that the generated selector and labels are unchanged."""
    selector = spec.get("selector")
    if spec.get("manualSelector") or selector is None:
        return
    former = _labels((old or {}).get("spec") or spec)
    expected = own_labels(dict(metadata))
    if not {f"{PREFIX}controller-uid", f"{PREFIX}job-name"} <= former.keys():
        expected = {name: value for name, value in expected.items() if not name.startswith(PREFIX)}
    labels = _labels(spec)
    for name, value in expected.items():
        path, why = f"spec.template.metadata.labels[{name}]", f"must be '{value}'"
        if name not in labels:
            yield Cause.required(path, why)
        elif labels[name] != value:
            yield Cause.invalid(path, quote(dict(sorted(labels.items()))), why)
    if not any(selector_causes(selector, "")) and not matches(selector, expected):
        yield Cause.invalid("spec.selector", quote_selector(selector), "`selector` not auto-generated")


def _whole_spec(spec: Mapping[str, Any]) -> Iterator[Cause]:
    yield from job_spec_causes(spec, "spec")
    selector = spec.get("selector")
    wrong = [] if selector is None else list(selector_causes(selector, "spec.selector"))
    if selector is None:
        yield Cause.required("spec.selector")
    yield from wrong
    labels = _labels(spec)
    if not wrong and (selector is None or not matches(selector, labels)):
        yield mismatch(labels or None, "spec.template.metadata.labels", missing=selector is None or not labels)


def _indexed_names(spec: Mapping[str, Any], metadata: Mapping[str, Any]) -> Iterator[Cause]:
    """Check that the name of the last indexed pod is valid."""
    completions, name = spec.get("completions"), metadata.get("name", "")
    if spec.get("completionMode") == INDEXED and completions is not None and completions > 0:
        last = f"{name}-{completions - 1}"
        if label_faults(last):
            why = f"will not able to create pod with invalid DNS label: {last}"
            yield Cause.invalid("metadata.name", quote(name), why)


def _indexed(spec: Mapping[str, Any], path: str) -> Iterator[Cause]:
    completions, parallelism, failed = (spec.get(field) for field in ("completions", "parallelism", "maxFailedIndexes"))
    if completions is None:
        yield Cause.required(f"{path}.completions", f"when completion mode is {INDEXED}")
    yield from _at_most(parallelism, f"{path}.parallelism", _MOST_INDEXES, f" when completion mode is {INDEXED}")
    if completions is not None and failed is not None and failed > completions:
        yield Cause.invalid(f"{path}.maxFailedIndexes", str(failed), "must be less than or equal to completions")
    yield from _at_most(failed, f"{path}.maxFailedIndexes", _MOST_INDEXES)
    if completions is not None and completions > _MOST_INDEXES and spec.get("backoffLimitPerIndex") is not None:
        if failed is None:
            why = f"must be specified when completions is above {_MOST_INDEXES}"
            yield Cause.required(f"{path}.maxFailedIndexes", why)
        why = f" when completions are above {_MOST_INDEXES} and used with backoff limit per index"
        yield from _at_most(parallelism, f"{path}.parallelism", _MOST_WITH_BACKOFF_LIMIT, why)
        yield from _at_most(failed, f"{path}.maxFailedIndexes", _MOST_WITH_BACKOFF_LIMIT, why)


def _at_most(value: int | None, path: str, highest: int, when: str = "") -> Iterator[Cause]:
    if value is not None and value > highest:
        yield Cause.invalid(path, str(value), f"must be less than or equal to {highest}{when}")


def _manager(name: str, path: str) -> Iterator[Cause]:
    yield from domain_path(name, path)
    if len(name.encode()) > _LONGEST_MANAGER:
        yield Cause.too_long(path, _LONGEST_MANAGER)


def _restart_policy(spec: Mapping[str, Any], policy: str | None, path: str) -> Iterator[Cause]:
    """Check that the restart policy lets pods end."""
    if policy in (None, "", "Always"):
        yield Cause.required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield Cause.unsupported(path, quote(policy), ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        yield Cause.invalid(path, quote(policy), 'only "Never" is supported when podFailurePolicy is specified')


def _labels(spec: Mapping[str, Any]) -> Mapping[str, str]:
    return ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
