"""Checks that many kinds share: label selectors, references, numbers and formats."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.statuses import Cause, quote
from aioinformer.testing.api.validation import label_name_faults, label_value_faults, segment_faults, subdomain_faults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"


def non_negative(value: Any, path: str) -> Iterator[Cause]:
    """Check that an optional number is not negative."""
    if value is not None and value < 0:
        yield Cause.invalid(path, str(value), "must be greater than or equal to 0")


def immutable(value: Any, old: Any, path: str) -> Iterator[Cause]:
    """Check that a field keeps its value."""
    if value != old:
        yield Cause.invalid(path, quote(value), "field is immutable")


def duplicate(value: Any, path: str) -> Cause:
    """Return the cause for a value that occurs more than once."""
    return Cause("FieldValueDuplicate", path, f"Duplicate value: {quote(value)}")


def not_found(value: Any, path: str) -> Cause:
    """Return the cause for a reference to a name that does not exist."""
    return Cause("FieldValueNotFound", path, f"Not found: {quote(value)}", missing=True)


def required(holder: Mapping[str, Any], path: str, *fields: str) -> Iterator[Cause]:
    """Check that the fields are present and not empty."""
    return (Cause.required(f"{path}.{field}") for field in fields if not holder.get(field))


def format_causes(value: str, path: str, faults: Callable[[str], Sequence[str]]) -> Iterator[Cause]:
    """Check the format of a string.

    Args:
        faults: returns what is wrong with a string, such as `label_faults`.
    """
    return (Cause.invalid(path, quote(value), why) for why in faults(value))


def segments(holder: Mapping[str, Any], path: str, *fields: str) -> Iterator[Cause]:
    """Check that the fields are present and are valid path segments."""
    for field in fields:
        if value := holder.get(field):
            yield from format_causes(value, f"{path}.{field}", segment_faults)
        else:
            yield Cause.required(f"{path}.{field}")


def one_of(value: Any, path: str, known: Sequence[str]) -> Iterator[Cause]:
    """Check that a value is one of `known`; the message lists them in this order."""
    if value not in known:
        yield Cause.unsupported(path, quote(value), known)


def lone_wildcard(values: Sequence[str], path: str, what: str) -> Iterator[Cause]:
    """Check that "*", which stands for all values, is the only one."""
    if len(values) > 1 and "*" in values:
        yield Cause.invalid(path, quote(values), f"if '*' is present, must not specify other {what}")


def domain_path(value: str, path: str) -> Iterator[Cause]:
    """Check a required path that is prefixed with a domain, such as "acme.io/foo"."""
    domain, _, rest = value.partition("/")
    if not value:
        yield Cause.required(path)
    elif not domain or not rest:
        yield Cause.invalid(path, quote(value), 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from format_causes(domain, path, subdomain_faults)
        if not re.fullmatch(_PATH, rest):
            yield Cause.invalid(path, quote(rest), f"Invalid path (regex used for validation is '{_PATH}')")


def between(value: int | None, path: str, lowest: int, highest: int) -> Iterator[Cause]:
    """Check that an optional number lies within the bounds."""
    if value is not None and not lowest <= value <= highest:
        yield Cause.invalid(path, str(value), f"must be between {lowest} and {highest}, inclusive")


def selector_causes(selector: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Check a label selector."""
    for name, value in (selector.get("matchLabels") or {}).items():
        yield from (Cause.invalid(f"{path}.matchLabels", quote(name), why) for why in label_name_faults(name))
        yield from (Cause.invalid(f"{path}.matchLabels", quote(value), why) for why in label_value_faults(value))
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        here, operator = f"{path}.matchExpressions[{index}]", expression.get("operator", "")
        if operator in ("In", "NotIn"):
            if not expression.get("values"):
                yield Cause.required(f"{here}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist"):
            if expression.get("values"):
                why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield Cause.forbidden(f"{here}.values", why)
        else:
            yield Cause.invalid(f"{here}.operator", quote(operator), "not a valid selector operator")
        name = expression.get("key", "")
        yield from format_causes(name, f"{here}.key", label_name_faults)
        for place, value in enumerate(expression.get("values") or ()):
            yield from format_causes(value, f"{here}.values[{place}]", label_value_faults)


def containers_of(spec: Mapping[str, Any], path: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield all containers of a pod with their paths, in the order in which the API visits them."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield container, f"{path}.{field}[{index}]"
