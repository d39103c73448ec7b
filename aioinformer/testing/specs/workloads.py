"""What must be true of what keeps pods running: deployments, replica sets, stateful sets, daemon sets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.specs.parts import immutable
from aioinformer.testing.specs.pods import pod_spec_causes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def deployment(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    yield from _workload(spec)
    strategy = spec.get("strategy") or {}
    if strategy.get("type") == "Recreate" and strategy.get("rollingUpdate") is not None:
        why = "may not be specified when strategy `type` is 'Recreate'"
        yield Cause.forbidden("spec.strategy.rollingUpdate", why)
    yield from _same_selector(spec, old)


def selecting(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    """Replica sets and daemon sets, whose selectors stay what they are."""
    spec = obj.get("spec") or {}
    yield from _workload(spec)
    yield from _same_selector(spec, old)


def stateful_set(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    yield from _workload(obj.get("spec") or {})


def _workload(spec: Mapping[str, Any]) -> Iterator[Cause]:
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    wanted = (spec.get("selector") or {}).get("matchLabels") or {}
    if any(labels.get(name) != value for name, value in wanted.items()):
        why = "`selector` does not match template `labels`"
        said = json.dumps(labels, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        yield Cause.invalid("spec.template.metadata.labels", said, why)
    yield from pod_spec_causes(template.get("spec") or {}, "spec.template.spec")


def _same_selector(spec: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    if old is not None:
        yield from immutable(spec.get("selector"), (old.get("spec") or {}).get("selector"), "spec.selector")
