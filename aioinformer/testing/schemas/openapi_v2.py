"""`/openapi/v2` of the test server: the definitions of all kinds, in the protobuf form of gnostic's `Document`.

kubectl uses it for kinds that version 3 does not have: it looks there before it reports that a kind is unknown, and
`explain --output=plaintext-openapiv2` reads it. The document has no paths, and no JSON form.

The definitions are those of version 3, converted to version 2: with other references, one type where version 3 has two,
and without the schema that wraps a reference.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import yaml

from aioinformer.testing.schemas.openapi_v3 import builtin_documents, custom_documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
ACCEPTED = (MEDIA_TYPE, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")

_V3_REF, _V2_REF = "#/components/schemas/", "#/definitions/"
# Field numbers of Document, Definitions, NamedSchema, Schema and its parts.
_SWAGGER, _INFO, _DEFINITIONS = 1, 2, 9
_NAME, _VALUE, _YAML = 1, 2, 2
_REF, _FORMAT, _DESCRIPTION, _REQUIRED = 1, 2, 4, 19
_ADDITIONAL, _TYPE, _ITEMS, _PROPERTIES, _EXTENSION = 21, 22, 23, 25, 31
_CHUNK = 2


def document(definitions: Iterable[Mapping[str, Any]]) -> bytes:
    """Return the document.

    Args:
        definitions: the current CustomResourceDefinitions.
    """
    custom = {
        name: _named(name, node)
        for each in custom_documents(definitions).values()
        for name, node in _schemas(each.body)
        if name not in _builtin()
    }
    schemas = sorted([*_builtin().items(), *custom.items()])
    info = _field(1, "Kubernetes") + _field(2, "unversioned")
    return (
        _field(_SWAGGER, "2.0")
        + _field(_INFO, info)
        + _field(_DEFINITIONS, b"".join(_field(1, schema) for _, schema in schemas))
    )


@cache
def _builtin() -> Mapping[str, bytes]:
    return {name: _named(name, node) for each in builtin_documents().values() for name, node in _schemas(each.body)}


def _schemas(body: bytes) -> Iterator[tuple[str, Mapping[str, Any]]]:
    schemas: Mapping[str, Mapping[str, Any]] = json.loads(body)["components"].get("schemas", {})
    yield from schemas.items()


def _named(name: str, node: Mapping[str, Any]) -> bytes:
    return _field(_NAME, name) + _field(_VALUE, _schema(node))


def _schema(node: Mapping[str, Any]) -> bytes:
    parts = []
    inner = (node.get("allOf") or [{}])[0]
    reference = node.get("$ref") or inner.get("$ref")
    if reference:
        parts.append(_field(_REF, _V2_REF + reference.removeprefix(_V3_REF)))
    type_, format_ = node.get("type", ""), node.get("format", "")
    if "oneOf" in node or node.get("x-kubernetes-int-or-string"):
        type_ = "string"
        format_ = format_ or "int-or-string"
    if format_:
        parts.append(_field(_FORMAT, format_))
    if description := node.get("description"):
        parts.append(_field(_DESCRIPTION, description))
    parts += [_field(_REQUIRED, name) for name in node.get("required", ())]
    if isinstance(additional := node.get("additionalProperties"), dict):
        parts.append(_field(_ADDITIONAL, _field(1, _schema(additional))))
    if type_:
        parts.append(_field(_TYPE, _field(1, type_)))
    if items := node.get("items"):
        parts.append(_field(_ITEMS, _field(1, _schema(items))))
    if properties := node.get("properties"):
        named = b"".join(_field(1, _named(name, below)) for name, below in properties.items())
        parts.append(_field(_PROPERTIES, named))
    parts += [
        _field(_EXTENSION, _field(_NAME, name) + _field(_VALUE, _field(_YAML, yaml.safe_dump(value))))
        for name, value in node.items()
        if name.startswith("x-")
    ]
    return b"".join(parts)


def _field(number: int, value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | _CHUNK) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
