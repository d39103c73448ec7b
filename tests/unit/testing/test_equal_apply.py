"""The same apply twice changes nothing, for objects of every built-in kind."""

from __future__ import annotations

import json
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.testing import ApiServer, StatusError
from aioinformer.testing.api.served import Registry
from aioinformer.testing.schemas.openapi_v3 import patch_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer import Resource

APPLY = "application/apply-patch+yaml"
_REF = "#/components/schemas/"
_SEEDS = range(12)
_DEPTH = 7
_QUANTITIES = ("1000m", "1", ".5Gi", 2, 0.5, "0", "1e3")
_INTEGERS = (0, 1, 80, 3.0)
#: By the last part of a reference to a schema, and by the format of a string.
_TEXTS: Mapping[str, tuple[Any, ...]] = {
    "Quantity": _QUANTITIES,
    "IntOrString": (1, "http", "50%"),
    "Time": ("2020-01-02T03:04:05Z", "2020-01-02T03:04:05+02:00"),
    "MicroTime": ("2020-01-02T03:04:05.123456Z",),
    "byte": ("", "eQ=="),
    "date-time": ("2020-01-02T03:04:05Z",),
}


#: Where kube-apiserver changes an object, too, or refuses it.
_EXCEPTIONS = {
    "v1/nodes": "the first apply adds a taint to an atomic list, which the second one takes away",
    "flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations": "an empty `limited` is refused",
    "apiextensions.k8s.io/v1/customresourcedefinitions": "random definitions are refused",
    "batch/v1/jobs": "a selector is refused",
    "certificates.k8s.io/v1/certificatesigningrequests": "an empty request is refused",
}


class Values:
    """Random values that fit a schema, with the zero values and other spellings that a manifest may have."""

    def __init__(self, schemas: Mapping[str, Any], random: Random) -> None:
        self._schemas = schemas
        self._random = random

    def of(self, node: Mapping[str, Any], depth: int) -> Any:
        node = (node.get("allOf") or [node])[0]
        if name := node.get("$ref", "").removeprefix(_REF):
            node = self._schemas[name]
        known = _TEXTS.get(name.rpartition(".")[2]) or _TEXTS.get(node.get("format", ""))
        if known is not None:
            return self._random.choice(known)
        match node.get("type"):
            case "string":
                return self._random.choice(node.get("enum") or ("", "a", "b"))
            case "boolean":
                return self._random.choice((True, False))
            case "integer" | "number":
                return self._random.choice(_INTEGERS)
            case "array":
                count = self._random.choice((0, 1, 1, 2)) if depth else 0
                elements = (self.of(node["items"], depth - 1) for _ in range(count))
                return self._distinct([each for each in elements if each is not None], node)
            case "object" if "additionalProperties" in node:
                keys = self._random.sample(("a", "b", "c.d/e"), self._random.choice((0, 1, 2)))
                return {key: self.of(node["additionalProperties"], depth - 1) for key in keys} if depth else {}
        return self.members(node, depth)

    def members(self, node: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """Return an object with the required fields, and some others."""
        required = node.get("required") or ()
        share = 0.35 if depth > 2 else 0.1
        found: dict[str, Any] = {}
        for name, below in (node.get("properties") or {}).items():
            if name not in required and self._random.random() > share:
                continue
            is_null = name not in required and self._random.random() < 0.15
            found[name] = None if is_null else self.of(below, max(depth - 1, 0))
        return found

    def _distinct(self, elements: list[Any], node: Mapping[str, Any]) -> list[Any]:
        """Number the elements of a list with keys, or leave out those that occur twice."""
        for index, element in enumerate(elements):
            for key in node.get("x-kubernetes-list-map-keys") or ():
                element[key] = index + 1 if isinstance(element.get(key), int | float) else f"k{index}"
        by_text = {json.dumps(element, sort_keys=True): element for element in elements}
        return list(by_text.values())


def kinds() -> list[Resource[Any]]:
    """Return the built-in resources that the server stores."""
    resources = [served.resource for served in Registry()]
    return [each for each in resources if each.gvr not in _EXCEPTIONS and patch_schema(each.api_version, each.kind)]


@pytest.mark.parametrize("resource", kinds(), ids=lambda resource: resource.gvr.replace("/", "-"))
def test_same_apply_twice_makes_no_version(resource: Resource[Any]) -> None:
    schema = patch_schema(resource.api_version, resource.kind)
    assert schema is not None
    time = [1e9]
    accepted = 0
    for seed in _SEEDS:
        random = Random(f"{resource.gvr} {seed}")
        server = ApiServer(clock=lambda: time[0])
        config = Values(schema.schemas, random).members(schema.node, _DEPTH)
        labels = random.choice((None, {}, {"a": "b"}))
        config["metadata"] = {"name": "a", "creationTimestamp": None, "labels": labels}
        config |= {"apiVersion": resource.api_version, "kind": resource.kind}
        with suppress(StatusError):
            first = server.patch(resource, "a", config, content_type=APPLY)
            accepted += 1
            time[0] += 100
            version = server.resource_version
            assert server.patch(resource, "a", config, content_type=APPLY) == first
            assert server.resource_version == version
    assert accepted > len(_SEEDS) // 2
