"""Values of custom resources that do not match the type, size or format of their schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.contract.tables import variants
from tests.contract.test_custom_resources import define, path, version, widget

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

FIELDS: dict[str, dict[str, Any]] = {
    "integer": {"type": "integer"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "number": {"type": "number"},
    "float": {"type": "number", "format": "float"},
    "string": {"type": "string"},
    "boolean": {"type": "boolean"},
    "object": {"type": "object", "properties": {"x": {"type": "integer"}}},
    "array": {"type": "array", "items": {"type": "integer"}},
    "map": {"type": "object", "additionalProperties": {"type": "string"}},
    "nullable-map": {"type": "object", "additionalProperties": {"type": "string", "nullable": True}},
    "int-or-string": {"x-kubernetes-int-or-string": True},
    "nullable": {"type": "integer", "nullable": True},
    "enum-of-integers": {"type": "integer", "enum": [1, 2]},
    "enum-of-texts": {"type": "string", "enum": ["a"], "minLength": 2, "pattern": "^b"},
    "bounded": {"type": "integer", "minimum": 1, "maximum": 10, "multipleOf": 2},
    "bounded-number": {"type": "number", "minimum": 1, "exclusiveMinimum": True, "maximum": 3, "multipleOf": 0.5},
    "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
# In JSON notation: a number may be written in many ways.
VALUES = (
    *("1", "0", "-1", "11", "1.5", "2.5", "1e-1", "2147483648", "9223372036854775807"),
    *('"x"', '"1"', '""', '"2.5"', "true", "false", "null"),
    *("{}", "[]", "[1]", '["x"]', "[1.5]", "[null]", '{"x":1}', '{"x":"1"}', '{"x":null}', '{"x":2.5}'),
)
# Integers written with a point or an exponent.
WHOLE = ("1.0", "-0.0", "1e3", "1E2", "1.0e0", "0.1e1", "1e9")

FORMATS: dict[str, tuple[str, ...]] = {
    "bsonobjectid": ("507f1f77bcf86cd799439011", "507f1f77bcf86cd79943901", ""),
    "byte": ("YQ==", "YWI=", "YWJj", "YW", "YQ=", "a-_b", ""),
    "cidr": ("10.0.0.0/8", "10.0.0.1/8", "010.0.0.0/8", "::/0", "10.0.0.0/33", "10.0.0.0", "x"),
    "creditcard": ("4111111111111111", "4111-1111-1111-1111", "4111111111111112", "1234"),
    "date": ("2020-01-02", "2020-1-2", "2020-02-30", "2020-01-02T03:04:05Z"),
    "date-time": (
        *("2020-01-02T03:04:05Z", "2020-01-02t03:04:05.123456789z", "2020-01-02T03:04:05+01:00"),
        *("2020-01-02T03:04:05", "2020-01-02 03:04:05Z", "2020-01-02T03:04Z", "2020-01-02T24:00:00Z"),
        *("2020-02-30T00:00:00Z", "2020-01-02T03:04:60Z", "2020-01-02T03:04:05+0100"),
    ),
    "datetime": ("2020-01-02T03:04:05Z", "2020-01-02"),
    "duration": ("1s", "1h30m", "-1.5h", "3 days", "1 week", "5 minutes", "P1D", "1", "x", ""),
    "email": ("a@b.c", "a@b", "Ann <a@b.c>", "@b", "a@", "a", "mailto:a@b.c", ""),
    "hexcolor": ("#fff", "#ffffff", "fff", "#ffff", "red"),
    "hostname": ("a", "a.bc", "a.b-c.d", "-a.bc", "a_b.cd", "1.2.3.4", "a.bc.", "A.BC", "é.fr", "a b", "", "a" * 64),
    "ipv4": ("1.2.3.4", "01.2.3.4", "1.2.3", "256.1.1.1", "::1", "::ffff:1.2.3.4", ""),
    "ipv6": ("::1", "2001:db8::1", "fe80::1%eth0", "::ffff:1.2.3.4", "1.2.3.4", "x"),
    "isbn": ("0-306-40615-2", "978-0-306-40615-7", "0-306-40615-3", "x"),
    "isbn10": ("0306406152", "0306406153", "978-0-306-40615-7"),
    "isbn13": ("9780306406157", "9780306406158", "0306406152"),
    "k8s-long-name": ("a.b-c", "A.b", "a..b", "-a", ""),
    "k8s-short-name": ("a-b", "a.b", "A", "-a", "", "a" * 64),
    "mac": ("01:02:03:04:05:ab", "01-02-03-04-05-AB", "0102.0304.05ab", "01:02", "01:02-03:04:05:06", ""),
    "password": ("secret", ""),
    "rgbcolor": ("rgb(1,2,3)", "rgb( 1 , 2 , 3 )", "rgb(256,2,3)", "rgb(1,2)"),
    "ssn": ("123-45-6789", "123 45 6789", "123456789"),
    "unknown": ("x", ""),
    "uri": ("http://a.b/c", "/x", "a:b", "urn:a:b", "x/y", "x", "http://a b", ""),
    "uuid": ("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6BA7B8109DAD11D180B400C04FD430C8", "6ba7b810", ""),
    "uuid3": ("6ba7b810-9dad-31d1-80b4-00c04fd430c8", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
    "uuid4": ("6ba7b810-9dad-41d1-80b4-00c04fd430c8", "6ba7b810-9dad-41d1-00b4-00c04fd430c8"),
    "uuid5": ("6ba7b810-9dad-51d1-80b4-00c04fd430c8", "6ba7b810-9dad-41d1-80b4-00c04fd430c8"),
}


async def create_with_values(api: Conversation, node: dict[str, Any], values: tuple[str, ...]) -> list[int]:
    """Create an object for each value, given in JSON notation, and return the statuses."""
    schema = {"type": "object", "properties": {"f": node}}
    where = await define(api, version("v1", schema))
    text = json.dumps(widget(api, f="here"))
    said = []
    for value in values:
        body = text.replace('"here"', value)
        said.append((await api("POST", f"{path(api)}?dryRun=All", body)).status)
    await api("DELETE", where, recorded=False)
    return said


@variants("node", FIELDS)
async def test_value_must_have_the_schema_type(api: Conversation, node: dict[str, Any]) -> None:
    said = await create_with_values(api, node, VALUES)
    assert set(said) <= {201, 422}


@variants("node", {name: FIELDS[name] for name in ("integer", "int32", "int64", "int-or-string", "nullable", "number")})
async def test_integer_accepts_a_decimal_point(api: Conversation, node: dict[str, Any]) -> None:
    said = await create_with_values(api, node, WHOLE)
    assert set(said) == {201}


# Messages show a number without a fraction as an integer, up to the largest int64.
UNLIKE_NUMBERS = ("1.0", "1e3", "1e16", "1e18", "1e19", "9223372036854775807", "9223372036854775808", "1e400", "-1e19")


@variants("node", {name: node for name, node in FIELDS.items() if name not in ("anything", "enum-of-texts")})
async def test_large_numbers_are_checked_by_type(api: Conversation, node: dict[str, Any]) -> None:
    said = await create_with_values(api, node, UNLIKE_NUMBERS)
    assert set(said) <= {201, 400, 422}


@variants("format_", {name: name for name in FORMATS})
async def test_string_formats_are_validated(api: Conversation, format_: str) -> None:
    values = tuple(json.dumps(text) for text in FORMATS[format_])
    said = await create_with_values(api, {"type": "string", "format": format_}, values)
    assert said[0] == 201
