"""Pod selectors of workloads: matching, quoting, and the check that they do not change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.statuses import Cause, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether the labels match a valid label selector."""
    named = (selector.get("matchLabels") or {}).items()
    expressions = selector.get("matchExpressions") or ()
    return all(labels.get(name) == value for name, value in named) and all(_holds(each, labels) for each in expressions)


def quote_selector(selector: Mapping[str, Any] | None) -> str:
    """Return a selector as the API quotes it."""
    if selector is None:
        return "null"
    parts = {
        "matchLabels": dict(sorted((selector.get("matchLabels") or {}).items())),
        "matchExpressions": [
            {field: each[field] for field in ("key", "operator", "values") if each.get(field) or field != "values"}
            for each in selector.get("matchExpressions") or ()
        ],
    }
    return quote({name: part for name, part in parts.items() if part})


def same_selector(spec: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[Cause]:
    """Check that an update keeps the selector."""
    if old is not None and spec.get("selector") != (old.get("spec") or {}).get("selector"):
        yield Cause.invalid("spec.selector", quote_selector(spec.get("selector")), "field is immutable")


def mismatch(labels: Mapping[str, str] | None, path: str, *, missing: bool = False) -> Cause:
    """Return the cause for a template whose labels do not match the selector.

    Args:
        labels: of the template.
        path: of the labels.
        missing: whether the selector or the labels are missing.
    """
    labels_text = quote(None if labels is None else dict(sorted(labels.items())))
    return Cause.invalid(path, labels_text, "`selector` does not match template `labels`", missing=missing)


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
    return value is None
