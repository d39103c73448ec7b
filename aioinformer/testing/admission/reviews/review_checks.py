"""Validation of access reviews, with the messages of kube-apiserver."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.encoding import encode_plain
from aioinformer.testing.api.golike import quoted
from aioinformer.testing.api.statuses import Cause
from aioinformer.testing.api.validation import label_name_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SHOWN = {"path": "Path", "verb": "Verb"}
_SELECTORS = ("fieldSelector", "labelSelector")
_WITH_VALUES = ("In", "NotIn")
_WITHOUT_VALUES = ("Exists", "DoesNotExist")


def question_causes(
    spec: Mapping[str, Any], metadata: Mapping[str, Any], *, others: bool, local: bool
) -> Iterator[Cause]:
    """Yield what is wrong with an access review.

    Args:
        spec: of the review.
        metadata: of the review, with the namespace of the request.
        others: whether the review may be about another user.
        local: whether the review is about one namespace.
    """
    wanted, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    shown = json.dumps({name: (path or {}).get(field, "") for field, name in _SHOWN.items()}, separators=(",", ":"))
    if wanted is not None and path is not None:
        why = "cannot be specified in combination with resourceAttributes"
        yield Cause.invalid("spec.nonResourceAttributes", shown, why)
    if wanted is None and path is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield Cause.invalid("spec.resourceAttributes", "null", why)
    if others and not spec.get("user") and not spec.get("groups"):
        yield Cause.invalid("spec.user", '""', "at least one of user or group must be specified")
    for field in _SELECTORS:
        selector = (wanted or {}).get(field)
        if selector is not None:
            yield from _selector(selector, f"spec.resourceAttributes.{field}", labels=field == "labelSelector")
    own = {field: value for field, value in metadata.items() if not (local and field == "namespace")}
    if own:
        why = "must be empty except for namespace" if local else "must be empty"
        yield Cause.invalid("metadata", encode_plain(metadata).decode(), why)
    if local and wanted is not None and wanted.get("namespace", "") != metadata.get("namespace", ""):
        why = "must match metadata.namespace"
        yield Cause.invalid("spec.resourceAttributes.namespace", quoted(wanted.get("namespace", "")), why)
    if local and path is not None:
        yield Cause.invalid("spec.nonResourceAttributes", shown, "disallowed on this kind of request")


def evaluation_error(wanted: Mapping[str, Any]) -> str:
    """Return an error for unknown operators, which a newer client may send; "" if there are none."""
    errors = []
    for field in _SELECTORS:
        requirements = (wanted.get(field) or {}).get("requirements") or ()
        known = [each for each in requirements if each.get("operator") in (*_WITH_VALUES, *_WITHOUT_VALUES)]
        if len(known) < len(requirements):
            part = "partially " if known else ""
            errors.append(f"spec.resourceAttributes.{field} {part}ignored due to parse error")
    return "; ".join(errors)


def _selector(selector: Mapping[str, Any], path: str, *, labels: bool) -> Iterator[Cause]:
    raw, requirements = selector.get("rawSelector") or "", selector.get("requirements") or ()
    if raw and requirements:
        yield Cause.invalid(f"{path}.rawSelector", quoted(raw), "may not specified at the same time as requirements")
    if not raw and not requirements:
        why = f"when {path} is specified, requirements or rawSelector is required"
        yield Cause.required(f"{path}.requirements", why)
    for index, requirement in enumerate(requirements):
        here = f"{path}.requirements[{index}]"
        key, operator = requirement.get("key", ""), requirement.get("operator", "")
        if not labels and not key:
            yield Cause.required(f"{here}.key", "must be specified")
        if operator in _WITH_VALUES and not requirement.get("values"):
            yield Cause.required(f"{here}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        if operator in _WITHOUT_VALUES and requirement.get("values"):
            why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield Cause.forbidden(f"{here}.values", why)
        if labels:
            yield from (Cause.invalid(f"{here}.key", quoted(key), why) for why in label_name_faults(key))
