"""The schemas of types of `aioinformer.models`: those that kube-apiserver publishes for its own kinds.

They are a part of the intermediate form that `structural` reads. As controller-gen, this module leaves out the values
that a text may have, since later versions of Kubernetes add some, and defaults of required fields, which only state the
zero value of Go.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from aioinformer.crds.markers import INT_OR_STRING, LIST_TYPE
from aioinformer.resources.catalog.openapi import REFERENCE, paths_of_schemas, schemas_of
from aioinformer.resources.quantities import json_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aioinformer.cache.objects.models.model import Model

#: Marks a text of an API type: its schema is that of the API, to which nothing is added.
OF_API: Final = "ofApi"
#: The description that the API has; a definition has it on request only.
API_DESCRIPTION: Final = "apiDescription"

_META: Final = "io.k8s.apimachinery.pkg"
#: Types that are written in more than one form.
_SPECIAL: Final[Mapping[str, dict[str, Any]]] = {
    f"{_META}.api.resource.Quantity": json_schema(),
    f"{_META}.util.intstr.IntOrString": {INT_OR_STRING: True},
}
#: For strategic merge patches, discovery and unions, which a structural schema has not.
_LEFT_OUT: Final = (
    "description",
    "enum",
    "x-kubernetes-group-version-kind",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-unions",
)


def schema_name(cls: type[Model]) -> str:
    """Return the name of the schema of a type, "io.k8s.api.core.v1.PodSpec"; "" if the documents have none.

    Types of APIs that a cluster does not serve by default have none.
    """
    return _names().get(cls.__qualname__, "")


def api_definitions(name: str) -> dict[str, dict[str, Any]]:
    """Return the schema of this name and all that it refers to, by name."""
    found: dict[str, dict[str, Any]] = {}
    waiting = [name]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found[each] = _definition(each)
            waiting.extend(_references(found[each]))
    return found


@cache
def _names() -> Mapping[str, str]:
    """Return the names of schemas by kubernetes_asyncio's names of their models."""
    found = {}
    for name in paths_of_schemas():
        group, version, kind = name.split(".")[-3:]
        # The second one is that of kinds that several groups have.
        found[f"{version.capitalize()}{kind}"] = name
        found[f"{group.capitalize()}{version.capitalize()}{kind}"] = name
    return found


@cache
def _definition(name: str) -> dict[str, Any]:
    if name in _SPECIAL:
        return _SPECIAL[name]
    recorded = schemas_of(paths_of_schemas()[name])[name]
    return {**_converted(recorded), "title": name.rpartition(".")[2]}


def _converted(schema: Mapping[str, Any]) -> dict[str, Any]:
    found = {keyword: value for keyword, value in schema.items() if keyword not in _LEFT_OUT}
    found[OF_API] = True
    if schema.get("type") == "string":  # the bytes of a certificate are a list in Go
        found.pop(LIST_TYPE, None)
    if "description" in schema:
        found[API_DESCRIPTION] = schema["description"]
    if "$ref" in schema:
        found["$ref"] = schema["$ref"].removeprefix(REFERENCE)
    if "allOf" in schema:
        found["allOf"] = [_converted(each) for each in schema["allOf"]]
    if "properties" in schema:
        required = schema.get("required", ())
        found["properties"] = {name: _property(each, name in required) for name, each in schema["properties"].items()}
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            found[keyword] = _property(schema[keyword], required=True)
    return found


def _property(schema: Mapping[str, Any], required: bool) -> dict[str, Any]:
    found = _converted(schema)
    if required:
        found.pop("default", None)
    return found


def _references(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the schemas that a schema refers to."""
    if "$ref" in schema:
        yield schema["$ref"]
    for each in (*schema.get("allOf", ()), *schema.get("properties", {}).values()):
        yield from _references(each)
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield from _references(schema[keyword])
