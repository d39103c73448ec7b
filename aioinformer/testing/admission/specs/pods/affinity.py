"""Validation of affinity and topology spread constraints.

Preferred terms have a weight. Label values are checked only in required terms: a preference for a value that no node
can have is harmless.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.node_selectors import node_selector_causes, node_term_causes
from aioinformer.testing.admission.specs.terms.parts import duplicate, format_causes, one_of, selector_causes
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_faults, label_name_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Part = Mapping[str, Any]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")


def affinity_causes(affinity: Part, path: str) -> Iterator[Cause]:
    """Check the affinity of a pod."""
    if (nodes := affinity.get("nodeAffinity")) is not None:
        yield from _node_affinity(nodes, f"{path}.nodeAffinity")
    for field in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(field) or {}
        for index, term in enumerate(pods.get(_REQUIRED) or ()):
            yield from _pod_term(term, f"{path}.{field}.{_REQUIRED}[{index}]")
        for index, preference in enumerate(pods.get(_PREFERRED) or ()):
            here = f"{path}.{field}.{_PREFERRED}[{index}]"
            yield from _weight(preference, here)
            yield from _pod_term(preference.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm")


def spread_causes(constraints: Sequence[Part], path: str) -> Iterator[Cause]:
    """Check the topology spread constraints of a pod."""
    kinds = [(each.get("topologyKey", ""), each.get("whenUnsatisfiable", "")) for each in constraints]
    for index, constraint in enumerate(constraints):
        here, (key, action) = f"{path}[{index}]", kinds[index]
        yield from _positive(constraint.get("maxSkew", 0), f"{here}.maxSkew")
        if not key:
            yield Cause.required(f"{here}.topologyKey", "can not be empty")
        yield from one_of(action, f"{here}.whenUnsatisfiable", _ACTIONS)
        if kinds[index] in kinds[index + 1 :]:
            yield duplicate(f"{{{key}, {action}}}", f"{here}.{{topologyKey, whenUnsatisfiable}}")
        if (domains := constraint.get("minDomains")) is not None:
            yield from _positive(domains, f"{here}.minDomains")
            if action != "DoNotSchedule":
                why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                yield Cause.invalid(f"{here}.minDomains", str(domains), why)
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(field) is not None:
                yield from one_of(constraint[field], f"{here}.{field}", _POLICIES)
        yield from _label_keys(constraint, here)
        yield from selector_causes(constraint.get("labelSelector") or {}, f"{here}.labelSelector")


def _node_affinity(nodes: Part, path: str) -> Iterator[Cause]:
    if nodes.get(_REQUIRED) is not None:
        yield from node_selector_causes(nodes[_REQUIRED], f"{path}.{_REQUIRED}")
    for index, preference in enumerate(nodes.get(_PREFERRED) or ()):
        here = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight(preference, here)
        yield from node_term_causes(preference.get("preference") or {}, f"{here}.preference", strict=False)


def _weight(preference: Part, path: str) -> Iterator[Cause]:
    if not 1 <= (weight := preference.get("weight", 0)) <= 100:
        yield Cause.invalid(f"{path}.weight", str(weight), "must be in the range 1-100")


def _positive(value: int, path: str) -> Iterator[Cause]:
    if value <= 0:
        yield Cause.invalid(path, str(value), "must be greater than zero")


def _pod_term(term: Part, path: str) -> Iterator[Cause]:
    for field in ("labelSelector", "namespaceSelector"):
        yield from selector_causes(term.get(field) or {}, f"{path}.{field}")
    for name in term.get("namespaces") or ():
        yield from format_causes(name, f"{path}.namespace", label_faults)
    yield from _label_keys(term, path)
    key = term.get("topologyKey", "")
    if not key:
        yield Cause.required(f"{path}.topologyKey", "can not be empty")
    yield from format_causes(key, f"{path}.topologyKey", label_name_faults)


def _label_keys(holder: Part, path: str) -> Iterator[Cause]:
    """Check the label keys whose values selectors take from the pod."""
    selector = holder.get("labelSelector")
    matching, mismatching = (holder.get(field) or () for field in ("matchLabelKeys", "mismatchLabelKeys"))
    for field, keys in (("matchLabelKeys", matching), ("mismatchLabelKeys", mismatching)):
        if keys and selector is None:
            yield Cause.forbidden(f"{path}.{field}", "must not be specified when labelSelector is not set")
        elif keys:
            for index, key in enumerate(keys):
                yield from format_causes(key, f"{path}.{field}[{index}]", label_name_faults)
    if selector is not None:
        yield from _selected_twice(matching, selector, path)
    for index, key in enumerate(matching):
        if key in mismatching:
            why = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield Cause.invalid(f"{path}.matchLabelKeys[{index}]", quote(key), why)


def _selected_twice(keys: Sequence[str], selector: Part, path: str) -> Iterator[Cause]:
    """Check that the selector does not use the keys already. For pods, keys are merged into the selector before."""
    seen = set(selector.get("matchLabels") or ())
    for expression in selector.get("matchExpressions") or ():
        key = expression.get("key", "")
        if key in keys and key in seen:
            index = len(keys) - 1 - keys[::-1].index(key)
            yield Cause.invalid(f"{path}[{index}]", quote(key), "exists in both matchLabelKeys and labelSelector")
        seen.add(key)
