"""Validation of webhook configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.common.webhook_clients import REVIEW_VERSIONS, client_causes, review_version_causes
from aioinformer.testing.admission.specs.extension.admission_rules import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    condition_causes,
    rule_causes,
)
from aioinformer.testing.admission.specs.terms.parts import duplicate, one_of, selector_causes
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import subdomain_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_REINVOCATIONS = ("IfNeeded", "Never")
_LONGEST_TIMEOUT = 30
_LEAST_PARTS = 3
_VERSION_REQUIRED = f"must specify one of {', '.join(REVIEW_VERSIONS)}"


def webhooks(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    hooks = obj.get("webhooks") or ()
    for index, hook in enumerate(hooks):
        path, name = f"webhooks[{index}]", hook.get("name") or ""
        yield from _hook_causes(hook, path)
        yield from review_version_causes(
            hook.get("admissionReviewVersions") or (), f"{path}.admissionReviewVersions", _VERSION_REQUIRED
        )
        if name and any(each.get("name") == name for each in hooks[:index]):
            yield duplicate(name, f"{path}.name")


def _hook_causes(hook: Mapping[str, Any], path: str) -> Iterator[Cause]:
    yield from _name_causes(hook.get("name") or "", f"{path}.name")
    for index, rule in enumerate(hook.get("rules") or ()):
        yield from rule_causes(rule, f"{path}.rules[{index}]")
    yield from one_of(hook.get("failurePolicy"), f"{path}.failurePolicy", FAILURE_POLICIES)
    yield from one_of(hook.get("matchPolicy"), f"{path}.matchPolicy", MATCH_POLICIES)
    if (effects := hook.get("sideEffects")) is None:
        yield Cause.required(f"{path}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}")
    else:
        yield from one_of(effects, f"{path}.sideEffects", _SIDE_EFFECTS)
    if not 1 <= (timeout := hook.get("timeoutSeconds", 1)) <= _LONGEST_TIMEOUT:
        why = f"the timeout value must be between 1 and {_LONGEST_TIMEOUT} seconds"
        yield Cause.invalid(f"{path}.timeoutSeconds", str(timeout), why)
    for field in ("namespaceSelector", "objectSelector"):
        yield from selector_causes(hook.get(field) or {}, f"{path}.{field}")
    if (again := hook.get("reinvocationPolicy")) is not None:
        yield from one_of(again, f"{path}.reinvocationPolicy", _REINVOCATIONS)
    yield from client_causes(hook.get("clientConfig") or {}, f"{path}.clientConfig")
    yield from condition_causes(hook.get("matchConditions") or (), f"{path}.matchConditions")


def _name_causes(name: str, path: str) -> Iterator[Cause]:
    if not name:
        yield Cause.required(path)
    elif faults := subdomain_faults(name):
        yield Cause.invalid(path, quote(name), ",".join(faults))
    elif name.count(".") < _LEAST_PARTS - 1:
        yield Cause.invalid(path, quote(name), "should be a domain with at least three segments separated by dots")
