"""Label keys in affinity terms and spread constraints: they stand for the pod's own values.

They are written into the selectors of the terms once, when the pod is created.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_OPERATORS = {"matchLabelKeys": "In", "mismatchLabelKeys": "NotIn"}


def with_label_keys(spec: Mapping[str, Any], labels: Mapping[str, str]) -> Mapping[str, Any]:
    """Return a pod specification whose selectors include the values of the label keys.

    Returns:
        The same specification, if its terms have no keys.
    """
    if not any(term.get(field) for term in _terms(spec) for field in _OPERATORS):
        return spec
    merged = deepcopy(dict(spec))
    for term in _terms(merged):
        if (selector := term.get("labelSelector")) is None:
            continue
        for field, operator in _OPERATORS.items():
            for key in term.get(field) or ():
                if key in labels:
                    wanted = {"key": key, "operator": operator, "values": [labels[key]]}
                    selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), wanted]
    return merged


def _terms(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    affinity = spec.get("affinity") or {}
    for field in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(field) or {}
        yield from pods.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for preference in pods.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield preference.get("podAffinityTerm") or {}
    yield from spec.get("topologySpreadConstraints") or ()
