"""Values for a structural schema: mostly valid ones, at the limits, and some of other types."""

from __future__ import annotations

import ipaddress
from typing import Any

from hypothesis import strategies as st

_TIMES = st.one_of(
    st.from_regex(
        r"[12][0-9]{3}-[01][0-9]-[0-3][0-9][Tt ][0-2][0-9]:[0-6][0-9]:[0-6][0-9]"
        r"(\.[0-9]{1,10})?(Z|z|[+-][0-2][0-9]:?[0-6][0-9])?",
        fullmatch=True,
    ),
    st.datetimes().map(lambda each: each.isoformat() + "Z"),
)
_FORMATS: dict[str, st.SearchStrategy[Any]] = {
    "date-time": _TIMES,
    "date": st.one_of(st.dates().map(str), st.from_regex(r"[0-9]{4}-[01][0-9]-[0-3][0-9]", fullmatch=True)),
    "byte": st.one_of(
        st.from_regex(r"([A-Za-z0-9+/]{4}){0,3}([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", fullmatch=True),
        st.text("AZaz09+/=-_", max_size=8),
    ),
    "uuid": st.one_of(
        st.uuids().map(str), st.uuids().map(lambda each: each.hex), st.uuids().map(lambda each: str(each).upper())
    ),
}
_FORMATS["ipv4"] = st.one_of(
    st.ip_addresses(v=4).map(str), st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){3}", fullmatch=True)
)
_FORMATS["ipv6"] = st.one_of(st.ip_addresses(v=6).map(str), st.from_regex(r"[0-9a-f:]{2,12}", fullmatch=True))
_TEXTS = st.one_of(st.sampled_from(["", "a", "red", "25%", "1Gi", "100m", "0", "1.5"]), st.text(max_size=6))
_NUMBERS = st.one_of(
    st.integers(-3, 12),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 1.0, 0.5]),
)
_WILD = st.recursive(
    st.one_of(st.none(), st.booleans(), _NUMBERS, _TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.text("abxy", max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return values, of which some do not fit the schema."""
    return st.one_of(_fitting(schema), _fitting(schema), _WILD)


def _fitting(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    found: list[st.SearchStrategy[Any]] = [st.none()] if schema.get("nullable") else []
    if "enum" in schema:
        found.append(st.sampled_from(schema["enum"]))
    kind = schema.get("type")
    if "x-kubernetes-int-or-string" in schema:
        found += [_NUMBERS, _texts(schema)]
    elif kind == "string":
        found.append(_texts(schema))
    elif kind == "boolean":
        found.append(st.booleans())
    elif kind in ("integer", "number"):
        found += [_NUMBERS, st.integers(-3, 12)]
    elif kind == "array":
        items = values(schema["items"]) if "properties" not in schema["items"] else _fitting(schema["items"])
        found.append(st.lists(items, min_size=schema.get("minItems", 0), max_size=schema.get("maxItems", 2) + 1))
    elif kind == "object":
        found.append(_objects(schema))
    else:
        found.append(_WILD)
    return st.one_of(found)


def _texts(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    found = [_TEXTS]
    if "pattern" in schema:
        found.append(st.from_regex(schema["pattern"]))
    if "beyond its prefix" in str(schema.get("x-kubernetes-validations")):
        addresses = st.ip_addresses()
        found.append(st.builds("{}/{}".format, addresses, st.integers(0, 128)))
        found.append(st.builds(_network, addresses, st.integers(0, 32)).map(str))
    if "format" in schema:
        found.append(_FORMATS[schema["format"]])
    if "maxLength" in schema:
        found.append(st.text(min_size=schema.get("minLength", 0), max_size=schema["maxLength"]))
    return st.one_of(found)


def _network(address: ipaddress.IPv4Address | ipaddress.IPv6Address, prefix: int) -> Any:
    return ipaddress.ip_network(f"{address}/{prefix}", strict=False)


def _objects(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    if "properties" not in schema:
        inner = schema.get("additionalProperties", {})
        return st.dictionaries(st.text(min_size=1, max_size=3), values(inner), max_size=3)
    members = {name: values(each) for name, each in schema["properties"].items()}
    required = {name: each for name, each in members.items() if name in schema.get("required", ())}
    optional = {name: each for name, each in members.items() if name not in required} | {"unknown": _WILD}
    return st.one_of(st.fixed_dictionaries(required, optional=optional), st.fixed_dictionaries({}, optional=members))


#: Why a class refuses what the server accepts.
SERVER_ACCEPTS = frozenset({"null", "integral", "array", "pruned"})


def differences(schema: dict[str, Any], value: Any, of_api: bool = False) -> set[str]:
    """Return the documented reasons for which class and server may judge a value differently, by their short names.

    Args:
        of_api: whether there is a type of the API, whose required fields and bytes are checked by servers only.
    """
    found = {"rule"} if "x-kubernetes-validations" in schema else set()
    if value is None:
        return found | (set() if schema.get("nullable") else {"null"})
    numeric = schema.get("type") in ("integer", "number") or "x-kubernetes-int-or-string" in schema
    if isinstance(value, (int, float)) and schema.get("type") == "string" and "pattern" in schema:
        return found | {"text"}  # a class accepts a number as a decimal
    if of_api and isinstance(value, (int, float)) and schema.get("type") == "string":
        return found | {"api-map"}
    if isinstance(value, (int, float)) and numeric and not isinstance(value, bool):
        limit = 2**31 if schema.get("format") == "int32" else 2**63
        if schema.get("type") != "number" and not -limit <= value < limit:
            found.add("range")
        if isinstance(value, float) and schema.get("type") != "number":
            found.add("integral" if value.is_integer() else "api-map")
    elif isinstance(value, str):
        if "pattern" in schema and (value.endswith("\n") or not value.isascii()):
            found.add("pattern")
        if "pattern" in schema and schema.get("type") == "string":
            found.add("text")
        if "pattern" in schema and "x-kubernetes-int-or-string" in schema:
            found.add("quantity")
        if of_api and schema.get("format") == "byte":
            found.add("api-bytes")
    elif isinstance(value, list) and schema.get("type") == "string" and "format" in schema:
        found.add("array")
    elif isinstance(value, list) and schema.get("type") == "array":
        if "x-kubernetes-list-type" in schema:
            found.add("list")
        for item in value:
            found |= differences(schema["items"], item, of_api)
    elif isinstance(value, dict):
        if "x-kubernetes-embedded-resource" in schema:
            found.add("embedded")
        if "oneOf" in schema:
            found.add("union")
            if value.keys() - schema.get("properties", {}).keys():
                found.add("pruned")  # a class of the union has forbid_unknown_fields
        if of_api and set(schema.get("required", ())) - value.keys():
            found.add("required")
        for name, item in value.items():
            inner = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
            if inner is not None:
                found |= differences(inner, item, of_api)
    return found
