"""Validation of admission policies and their bindings. `admission_rules` says which expressions are compiled."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.cel.types import STRING
from aioinformer.testing.admission.specs.extension.admission_rules import (
    FAILURE_POLICIES,
    condition_causes,
    constraint_causes,
    expression_causes,
    not_compiled,
    path_segment_faults,
)
from aioinformer.testing.admission.specs.terms.parts import duplicate, format_causes, one_of, required, selector_causes
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_name_faults, letter_label_faults, subdomain_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Part = Mapping[str, Any]

_ACTIONS = ("Audit", "Deny", "Warn")
_NOT_FOUND_ACTIONS = ("Deny", "Allow")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_REINVOCATIONS = ("IfNeeded", "Never")
_MUTATING_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
_PATCHES = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
_MOST_ANNOTATIONS = 20
_NO_CHECKS = "validations or auditAnnotations must contain at least one item"
_MUTUALLY_EXCLUSIVE = "name and selector are mutually exclusive"


def validating_policy(obj: Part, old: Part | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    yield from _policy_causes(spec)
    checks, annotations = spec.get("validations") or (), spec.get("auditAnnotations") or ()
    if not checks and not annotations:
        yield Cause.required("spec.validations", _NO_CHECKS)
        yield Cause.required("spec.auditAnnotations", _NO_CHECKS)
    for index, check in enumerate(checks):
        yield from _validation_causes(check, f"spec.validations[{index}]", parameters=spec.get("paramKind") is not None)
    if len(annotations) > _MOST_ANNOTATIONS:
        why = f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations"
        yield Cause.invalid("spec.auditAnnotations", quote(annotations), why)
    for index, each in enumerate(annotations):
        path, key = f"spec.auditAnnotations[{index}]", each.get("key") or ""
        if name := obj["metadata"].get("name"):
            yield from format_causes(f"{name}/{key}", f"{path}.key", label_name_faults)
        if (each.get("valueExpression") or "").strip():
            raise not_compiled(f"{path}.valueExpression")
        yield Cause.required(f"{path}.valueExpression", "valueExpression is not specified")
        if any((other.get("key") or "") == key for other in annotations[:index]):
            yield duplicate(key, f"{path}.key")


def mutating_policy(obj: Part, old: Part | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    yield from _policy_causes(spec, mutating=True)
    if not spec.get("mutations"):
        yield Cause.required("spec.mutations", "mutations must contain at least one item")
    for index, mutation in enumerate(spec.get("mutations") or ()):
        yield from _mutation_causes(mutation, f"spec.mutations[{index}]")
    if not spec.get("reinvocationPolicy"):
        yield Cause.required("spec.reinvocationPolicy")
    else:
        yield from one_of(spec["reinvocationPolicy"], "spec.reinvocationPolicy", _REINVOCATIONS)


def _policy_causes(spec: Part, *, mutating: bool = False) -> Iterator[Cause]:
    yield from one_of(spec.get("failurePolicy"), "spec.failurePolicy", FAILURE_POLICIES)
    if (kind := spec.get("paramKind")) is not None:
        yield from _kind_causes(kind, "spec.paramKind")
    constraints = spec.get("matchConstraints")
    if constraints is None:
        yield Cause.required("spec.matchConstraints")
    else:
        yield from constraint_causes(constraints, "spec.matchConstraints")
        yield from required(constraints, "spec.matchConstraints", "resourceRules")
        if mutating:
            yield from _operation_causes(constraints, "spec.matchConstraints")
    parameters = spec.get("paramKind") is not None
    yield from condition_causes(spec.get("matchConditions") or (), "spec.matchConditions", parameters=parameters)
    for index, variable in enumerate(spec.get("variables") or ()):
        yield from _variable_causes(variable, f"spec.variables[{index}]")


def _kind_causes(kind: Part, path: str) -> Iterator[Cause]:
    group_version, name = kind.get("apiVersion") or "", kind.get("kind") or ""
    if not group_version:
        yield Cause.required(f"{path}.apiVersion")
    elif group_version.count("/") > 1:
        yield Cause.invalid(
            f"{path}.apiVersion", quote(group_version), f"unexpected GroupVersion string: {group_version}"
        )
    else:
        group, _, version = group_version.rpartition("/")
        if group and (faults := subdomain_faults(group)):
            yield Cause.invalid(f"{path}.apiVersion", quote(group), ",".join(faults))
        if not version:
            yield Cause.invalid(f"{path}.apiVersion", quote(group_version), "version must be specified")
        elif faults := letter_label_faults(version):
            yield Cause.invalid(f"{path}.apiVersion", quote(version), ",".join(faults))
    yield from required(kind, path, "kind")
    if name and (faults := letter_label_faults(name.lower())):
        why = f"may have mixed case, but should otherwise match: {','.join(faults)}"
        yield Cause.invalid(f"{path}.kind", quote(name), why)


def _operation_causes(constraints: Part, path: str) -> Iterator[Cause]:
    for rule in constraints.get("resourceRules") or ():
        for operation in rule.get("operations") or ():
            yield from one_of(operation, f"{path}.resourceRules.operations", _MUTATING_OPERATIONS)


def _variable_causes(variable: Part, path: str) -> Iterator[Cause]:
    name = variable.get("name") or ""
    if not name.strip():
        yield Cause.required(f"{path}.name", "name is not specified")
    elif not re.fullmatch("[_a-zA-Z][_a-zA-Z0-9]*", name):
        yield Cause.invalid(f"{path}.name", quote(name), "must be a valid CEL identifier")
    if (variable.get("expression") or "").strip():
        raise not_compiled(f"{path}.expression")
    yield Cause.required(f"{path}.expression", "expression is not specified")


def _validation_causes(check: Part, path: str, *, parameters: bool) -> Iterator[Cause]:
    expression, why = check.get("expression") or "", "expression is not specified"
    yield from expression_causes(expression, f"{path}.expression", why, parameters=parameters)
    computed, message = check.get("messageExpression") or "", check.get("message") or ""
    for field, text in (("messageExpression", computed), ("message", message)):
        if text and not text.strip():
            yield Cause.invalid(f"{path}.{field}", quote(text), "must be non-empty if specified")
        elif text and field == "messageExpression":
            yield from expression_causes(text, f"{path}.{field}", wanted=STRING, parameters=parameters)
        elif re.search(r"[\n\r]", text.strip()):
            yield Cause.invalid(f"{path}.message", quote(text), "must not contain line breaks")
    if (reason := check.get("reason")) is not None:
        yield from one_of(reason, f"{path}.reason", _REASONS)


def _mutation_causes(mutation: Part, path: str) -> Iterator[Cause]:
    kind = mutation.get("patchType") or ""
    if not kind:
        yield Cause.required(f"{path}.patchType")
        return
    if kind not in _PATCHES:
        yield Cause.unsupported(f"{path}.patchType", quote(kind), tuple(_PATCHES))
        return
    for named, field in sorted(_PATCHES.items(), key=lambda item: item[0] != kind):
        patch, here = mutation.get(field), f"{path}.{field}"
        if named != kind:
            if patch is not None:
                yield Cause.invalid(here, f'"{{{field}}}"', f"must not be specified when patchType is {kind}")
        elif patch is None:
            yield Cause.required(here, f"must be specified when patchType is {kind}")
        elif (patch.get("expression") or "").strip():
            raise not_compiled(f"{here}.expression")
        else:
            yield Cause.required(f"{here}.expression")


def validating_binding(obj: Part, old: Part | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    yield from _binding_causes(spec)
    yield from _action_causes(spec.get("validationActions") or (), "spec.validationActions")


def mutating_binding(obj: Part, old: Part | None) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    yield from _binding_causes(spec)
    yield from _operation_causes(spec.get("matchResources") or {}, "spec.matchResources")


def _binding_causes(spec: Part) -> Iterator[Cause]:
    yield from required(spec, "spec", "policyName")
    if spec.get("policyName"):
        yield from format_causes(spec["policyName"], "spec.policyName", subdomain_faults)
    if (reference := spec.get("paramRef")) is not None:
        yield from _reference_causes(reference, "spec.paramRef")
    yield from constraint_causes(spec.get("matchResources"), "spec.matchResources")


def _reference_causes(reference: Part, path: str) -> Iterator[Cause]:
    name, selector = reference.get("name") or "", reference.get("selector")
    if name:
        yield from format_causes(name, f"{path}.name", path_segment_faults)
    if name and selector is not None:
        yield Cause.forbidden(f"{path}.name", _MUTUALLY_EXCLUSIVE)
    if selector is not None:
        yield from selector_causes(selector, f"{path}.selector")
    if name and selector is not None:
        yield Cause.forbidden(f"{path}.selector", _MUTUALLY_EXCLUSIVE)
    if not name and selector is None:
        yield Cause.required(path, "one of name or selector must be specified")
    yield from required(reference, path, "parameterNotFoundAction")
    if action := reference.get("parameterNotFoundAction"):
        yield from one_of(action, f"{path}.parameterNotFoundAction", _NOT_FOUND_ACTIONS)


def _action_causes(actions: Sequence[str], path: str) -> Iterator[Cause]:
    for index, action in enumerate(actions):
        yield from one_of(action, f"{path}[{index}]", _ACTIONS)
        if action in actions[:index]:
            yield duplicate(action, f"{path}[{index}]")
    if {"Deny", "Warn"}.issubset(actions):
        why = "repeating the same validation failure information in the API response and headers serves no purpose"
        yield Cause.invalid(path, quote(actions), f"must not contain both Deny and Warn ({why})")
    if not actions:
        yield Cause.required(path, "at least one validation action is required")
