"""Validation of node selectors: by label, by name or by topology."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.admission.specs.terms.parts import duplicate, format_causes
from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_name_faults, label_value_faults, subdomain_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_INVALID_OPERATOR = "not a valid selector operator"


def node_selector_causes(selector: Mapping[str, Any], path: str, *, strict: bool = True) -> Iterator[Cause]:
    """Check a node selector.

    Args:
        strict: whether the values must be valid label values.
    """
    terms = selector.get("nodeSelectorTerms") or ()
    if not terms:
        yield Cause.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms):
        yield from node_term_causes(term, f"{path}.nodeSelectorTerms[{index}]", strict=strict)


def node_term_causes(term: Mapping[str, Any], path: str, *, strict: bool = True) -> Iterator[Cause]:
    """Check one term of a node selector."""
    for index, wanted in enumerate(term.get("matchExpressions") or ()):
        yield from _label_causes(wanted, f"{path}.matchExpressions[{index}]", strict)
    for index, wanted in enumerate(term.get("matchFields") or ()):
        yield from _field_causes(wanted, f"{path}.matchFields[{index}]")


def _label_causes(wanted: Mapping[str, Any], path: str, strict: bool) -> Iterator[Cause]:
    operator, values = wanted.get("operator", ""), wanted.get("values") or ()
    match operator:
        case "In" | "NotIn":
            if not values:
                yield Cause.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if values:
                why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield Cause.forbidden(f"{path}.values", why)
        case "Gt" | "Lt":
            if len(values) != 1:
                why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                yield Cause.required(f"{path}.values", why)
        case _:
            yield Cause.invalid(f"{path}.operator", quote(operator), _INVALID_OPERATOR)
    yield from format_causes(wanted.get("key", ""), f"{path}.key", label_name_faults)
    for index, value in enumerate(values if strict else ()):
        yield from format_causes(value, f"{path}.values[{index}]", label_value_faults)


def _field_causes(wanted: Mapping[str, Any], path: str) -> Iterator[Cause]:
    operator, key, values = wanted.get("operator", ""), wanted.get("key", ""), wanted.get("values") or ()
    if operator not in ("In", "NotIn"):
        yield Cause.invalid(f"{path}.operator", quote(operator), _INVALID_OPERATOR)
    elif len(values) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield Cause.required(f"{path}.values", why)
    if key != "metadata.name":
        yield Cause.invalid(f"{path}.key", quote(key), "not a valid field selector key")
        return
    for index, value in enumerate(values):
        yield from format_causes(value, f"{path}.values[{index}]", subdomain_faults)


def topology_causes(terms: Sequence[Mapping[str, Any]], path: str) -> Iterator[Cause]:
    """Check the topology terms of a storage class."""
    known: list[Mapping[str, set[str]]] = []
    for index, term in enumerate(terms):
        here, found = f"{path}[{index}].matchLabelExpressions", dict[str, set[str]]()
        for number, wanted in enumerate(term.get("matchLabelExpressions") or ()):
            key, values = wanted.get("key", ""), wanted.get("values") or ()
            yield from _topology_value_causes(key, values, f"{here}[{number}]")
            if key in found:
                yield duplicate(key, f"{here}[{number}].key")
            found[key] = set(values)
        if found in known:
            yield duplicate("", here)
        known.append(found)


def _topology_value_causes(key: str, values: Sequence[str], path: str) -> Iterator[Cause]:
    if not values:
        yield Cause.required(f"{path}.values")
    for index, value in enumerate(values):
        if value in values[:index]:
            yield duplicate(value, f"{path}.values[{index}]")
    yield from format_causes(key, f"{path}.key", label_name_faults)
