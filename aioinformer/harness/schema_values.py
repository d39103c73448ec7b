"""Objects drawn from structural schemas, by hypothesis: at the limits of their types, and with fields left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

if TYPE_CHECKING:
    from collections.abc import Callable

_Drawn = TypeVar("_Drawn")

TEXTS = st.one_of(st.sampled_from(["", "a", "red", "25%", "1Gi", "100m", "0", "1.5"]), st.text(max_size=6))
INTEGERS = st.one_of(
    st.integers(-3, 12),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([2**53 + 1, 2**63 - 1, -(2**63)]),
)
NUMBERS = st.one_of(INTEGERS, st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([1.0, 0.5]))
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.text("abxy", max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)


def find_smallest(drawn: Any, fault: Callable[[Any], str], most: int) -> Any:
    """Return the smallest value for which `fault` returns a text; None if there is none among those drawn.

    Args:
        drawn: a strategy, or a pair of them.
        most: values to draw.
    """
    strategy = st.tuples(*drawn) if isinstance(drawn, tuple) else drawn
    options = settings(
        max_examples=most,
        database=None,
        deadline=None,
        derandomize=True,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    try:
        return find(strategy, lambda value: bool(fault(value)), settings=options)
    except NoSuchExample:
        return None


def partial_objects(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return the contents of objects, without metadata, of which any field may be absent.

    Values have the types of the schema; patterns, enumerations and ranges may not hold.
    """
    names = ("apiVersion", "kind", "metadata")
    fields = {name: _values(each) for name, each in schema.get("properties", {}).items() if name not in names}
    return st.fixed_dictionaries({}, optional=fields)


def _values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    found = _typed(schema)
    if "enum" in schema:
        found = st.one_of(st.sampled_from(schema["enum"]), found)
    return st.one_of(st.none(), found) if schema.get("nullable") else found


def _typed(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "x-kubernetes-int-or-string" in schema:
        return st.one_of(INTEGERS, TEXTS)
    match schema.get("type"):
        case "string":
            return TEXTS
        case "boolean":
            return st.booleans()
        case "integer":
            return INTEGERS
        case "number":
            return NUMBERS
        case "array":
            return _lists(schema)
        case "object":
            return _objects(schema)
    return ANYTHING


def _lists(schema: dict[str, Any]) -> st.SearchStrategy[list[Any]]:
    members = _values(schema["items"])
    match schema.get("x-kubernetes-list-type"):
        case "map":
            keys = schema["x-kubernetes-list-map-keys"]
            every = schema["items"]["properties"]
            required = {name: _values(every[name]) for name in keys}
            optional = {name: _values(each) for name, each in every.items() if name not in required}
            members = st.fixed_dictionaries(required, optional=optional)
            return st.lists(members, max_size=3, unique_by=lambda each: tuple(str(each[name]) for name in keys))
        case "set":
            return st.lists(members, max_size=3, unique_by=str)
    return st.lists(members, max_size=3)


def _objects(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    if "properties" in schema:
        return st.fixed_dictionaries({}, optional={name: _values(each) for name, each in schema["properties"].items()})
    inner = schema.get("additionalProperties")
    values = _values(inner) if isinstance(inner, dict) else ANYTHING
    return st.dictionaries(st.text(min_size=1, max_size=3), values, max_size=3)
