"""`/openapi/v3` of the test server: an index, and one document for each group and version.

The built-in documents are those that the catalog has recorded from a real server. Those of custom resources are made
from a recorded template, with names replaced, and from the structural schemas of the definitions, to which the server
adds the fields of all objects.

There is no protobuf form: a request that accepts only that is answered with 406. kubectl requests JSON. The `hash` in
the URLs of the index identifies the content: an answer to a current URL may be cached forever, an outdated URL is
redirected.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from aioinformer.resources.catalog.openapi import REFERENCE, recorded_documents, schemas_of
from aioinformer.testing.patches.strategic import PatchSchema

_GVK = "x-kubernetes-group-version-kind"
# Kinds of subresources, which are described in the document of another group.
_SUBRESOURCE_KINDS = {"Eviction": "api/v1", "Scale": "apis/apps/v1", "TokenRequest": "api/v1"}
_TEMPLATE_GROUP = "standingroup.io"
_TEMPLATE_VERSION = "v7"


@dataclass(frozen=True, slots=True)
class Document:
    """An OpenAPI v3 document as it is sent.

    Attributes:
        path: "api/v1", "apis/apps/v1" …, as in the index.
        hash: of the body, for the URL in the index and the entity tag.
    """

    path: str
    body: bytes
    hash: str

    @classmethod
    def of(cls, path: str, body: bytes) -> Document:
        """Make a document and compute its hash."""
        return cls(path, body, hashlib.sha512(body).hexdigest().upper())

    @property
    def url(self) -> str:
        """Return the URL in the index."""
        return f"/openapi/v3/{self.path}?hash={self.hash}"


def index(documents: Iterable[Document]) -> dict[str, Any]:
    """Return the answer to `/openapi/v3` for these documents."""
    ordered = sorted(documents, key=lambda document: document.path)
    return {"paths": {document.path: {"serverRelativeURL": document.url} for document in ordered}}


@cache
def builtin_documents() -> Mapping[str, Document]:
    """Return the documents of built-in kinds by path. The first call takes 50 ms."""
    bodies = recorded_documents().items()
    return {path: Document.of(path, body) for path, body in bodies if not path.startswith("crd/")}


def custom_documents(definitions: Iterable[Mapping[str, Any]]) -> Mapping[str, Document]:
    """Return the documents of custom resources by path: one for each group and served version.

    The documents of the latest sets of definitions are cached.
    """
    return _custom_documents(tuple(json.dumps(definition["spec"]) for definition in definitions))


@lru_cache(maxsize=4)
def _custom_documents(specs: tuple[str, ...]) -> Mapping[str, Document]:
    merged: dict[str, dict[str, Any]] = {}
    for spec in map(json.loads, specs):
        for version in spec["versions"]:
            if version.get("served"):
                path = f"apis/{spec['group']}/{version['name']}"
                part = _custom_document(spec, version)
                whole = merged.setdefault(path, part)
                whole["paths"] |= part["paths"]
                whole["components"]["schemas"] |= part["components"]["schemas"]
    for document in merged.values():
        document["paths"] = dict(sorted(document["paths"].items()))
        document["components"]["schemas"] = dict(sorted(document["components"]["schemas"].items()))
    return {path: Document.of(path, _encode(document)) for path, document in merged.items()}


@cache
def patch_schema(api_version: str, kind: str) -> PatchSchema | None:
    """Return what a strategic merge patch needs to know of a built-in kind; None for all others."""
    group, _, version = api_version.rpartition("/")
    wanted = {"group": group, "version": version, "kind": kind}
    schemas = schemas_of(f"apis/{api_version}" if group else f"api/{api_version}")
    if kind in _SUBRESOURCE_KINDS:
        schemas = schemas_of(_SUBRESOURCE_KINDS[kind])
    for name, node in schemas.items():
        if wanted in node.get(_GVK, ()):
            return PatchSchema.of(schemas, {"$ref": REFERENCE + name})
    return None


def custom_schema(schema: Mapping[str, Any]) -> PatchSchema:
    """Return the schema of a custom resource with the fields of all objects."""
    schemas = json.loads(recorded_documents()["crd/namespaced"])["components"]["schemas"]
    common_fields = schemas[f"{_reversed(_TEMPLATE_GROUP, _TEMPLATE_VERSION)}.Standinnamespacedkind"]["properties"]
    node = _published(schema, common_fields)
    return PatchSchema(schemas, node | {"properties": node.get("properties", {}) | common_fields}, "")


def _custom_document(spec: Mapping[str, Any], version: Mapping[str, Any]) -> dict[str, Any]:
    group = spec["group"]
    names = spec["names"]
    scope = spec["scope"]
    kind = names["kind"]
    plural = names["plural"]
    list_kind = names.get("listKind", f"{kind}List")
    template_kind = f"Standin{scope.lower()}kind"
    text = recorded_documents()[f"crd/{scope.lower()}"].decode()
    # From the longest to the shortest name, as the version occurs inside of longer names.
    for old, new in (
        (f"{template_kind}List", list_kind),
        (f"{template_kind.lower()}s", plural),
        (template_kind, kind),
        (_reversed(_TEMPLATE_GROUP, _TEMPLATE_VERSION), _reversed(group, version["name"])),
        (_camel(_TEMPLATE_GROUP), _camel(group)),
        (_camel(_TEMPLATE_GROUP, upper=True), _camel(group, upper=True)),
        (_TEMPLATE_GROUP, group),
        (_TEMPLATE_VERSION.upper(), version["name"][:1].upper() + version["name"][1:]),
        (_TEMPLATE_VERSION, version["name"]),
    ):
        text = text.replace(old, new)
    document: dict[str, Any] = json.loads(text)
    for subresource in ("status", "scale"):
        if subresource not in (version.get("subresources") or {}):
            paths = document["paths"]
            document["paths"] = {path: item for path, item in paths.items() if not path.endswith(f"/{subresource}")}
    prefix = _reversed(group, version["name"])
    schemas = document["components"]["schemas"]
    if not any(path.endswith("/scale") for path in document["paths"]):
        for name in [name for name in schemas if name.startswith("io.k8s.api.autoscaling.")]:
            del schemas[name]
    template = schemas[f"{prefix}.{kind}"]
    schema = _published(version.get("schema", {}).get("openAPIV3Schema", {}), template["properties"])
    schema["properties"] = schema.get("properties", {}) | template["properties"]
    schemas[f"{prefix}.{kind}"] = schema | {_GVK: template[_GVK]}
    return document


def _published(node: Mapping[str, Any], common: Mapping[str, Any]) -> dict[str, Any]:
    """Return a structural schema as the server publishes it: its extensions are also expressed in OpenAPI."""
    schema = dict(node)
    for keyword in ("properties", "patternProperties"):
        if keyword in schema:
            schema[keyword] = {name: _published(item, common) for name, item in schema[keyword].items()}
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), Mapping):
            schema[keyword] = _published(schema[keyword], common)
    if schema.get("x-kubernetes-int-or-string") and "anyOf" not in schema:
        schema["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if schema.get("x-kubernetes-embedded-resource"):
        schema["required"] = list(dict.fromkeys([*schema.get("required", ()), "kind", "apiVersion"]))
        schema["properties"] = {**schema.get("properties", {}), **common}
    return schema


def _reversed(group: str, version: str) -> str:
    return ".".join([*reversed(group.split(".")), version])


def _camel(group: str, *, upper: bool = False) -> str:
    first, *rest = group.replace("-", ".").split(".")
    return (first.capitalize() if upper else first) + "".join(part.capitalize() for part in rest)


def _encode(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
