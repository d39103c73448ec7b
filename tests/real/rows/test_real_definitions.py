"""Definitions from classes beside real ones: the server accepts and refuses the same objects by both."""

from __future__ import annotations

import asyncio
import re
import uuid
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from aioinformer import ApiError, Client, Resource
from aioinformer.crds import custom_resource
from aioinformer.models import ObjectMeta, apiextensions_v1
from tests.support.real_definitions import DEFINITIONS, RealDefinition
from tests.support.schema_values import values

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Values that replace those of a valid object, one at a time.
REPLACEMENTS: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.0,
    1.5,
    2**31,
    2**63,
    "",
    "a",
    "A b",
    "10Gi",
    "x" * 400,
    [],
    ["a", "a"],
    {},
    {"a": "b"},
)


def mutations(value: Any) -> Iterator[Any]:
    """Yield copies of a value with one difference each: a member is missing, more, twice, or something else."""
    if isinstance(value, dict):
        yield {**value, "unknown": 1}
        for name, item in value.items():
            yield {key: each for key, each in value.items() if key != name}
            for changed in (*REPLACEMENTS, *mutations(item)):
                yield {**value, name: changed}
    elif isinstance(value, list):
        yield [*value, *value]
        for place, item in enumerate(value):
            yield value[:place] + value[place + 1 :]
            for changed in (*REPLACEMENTS, *mutations(item)):
                yield [*value[:place], changed, *value[place + 1 :]]


#: So many mutations of each sample are judged; the whole has several hundred.
MOST = 80

#: Where a class differs on purpose: what the definition says that refuses an object.
DIFFERENCES = {
    # A field of `Any` is any JSON, and null is JSON.
    "cluster-api Cluster": r"real\.\S+ .*variables\[\d\]\.value: Required value",
    # kube-apiserver accepts arrays for texts with a format; a class excludes them.
    "external-snapshotter VolumeSnapshot": r"class\.\S+ .*taken: (Invalid value: .* should have at least|Too many)",
    # It says `nullable`, and its enumeration has no null. The class says that null is fine.
    "rook CephBlockPool": r"real\.\S+ .*compressionMode: Unsupported value",
}


def samples(definition: RealDefinition) -> list[dict[str, Any]]:
    """Return a valid spec, some of its mutations, and random ones by the real schema."""
    mutated = [each for each in mutations(definition.sample) if isinstance(each, dict)]
    found = [definition.sample, *mutated[:: max(1, len(mutated) // MOST)]]

    @settings(
        max_examples=20,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(values(definition.schema))
    def draw(value: Any) -> None:
        if isinstance(value, dict):
            found.append(value)

    draw()
    return found


def real_definition(group: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the definition with a schema of its spec, as controller-gen writes it."""
    properties = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    whole = {"type": "object", "required": ["spec"], "properties": {**properties, "spec": schema}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": whole}}
    names = {"kind": "Whole", "listKind": "WholeList", "plural": "wholes", "singular": "whole"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"wholes.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


class Judge:
    """A definition on the server, which judges specs."""

    def __init__(self, client: Client, group: str) -> None:
        self._objects = client.with_options(retry=False).resource(Resource(group, "v1", "wholes", "Whole"))

    async def __call__(self, spec: Any) -> Any:
        """Return what the server would store; a text says why it refuses the spec."""
        try:
            made = await self._objects.create({"metadata": {"name": "judged"}, "spec": spec}, dry_run=True)
        except ApiError as error:
            if error.status not in (400, 422):
                raise
            return str(error)
        return made["spec"]

    async def served(self, sample: Any) -> None:
        """Wait until the definition is served."""
        async with asyncio.timeout(60):
            while True:
                try:
                    await self(sample)
                except ApiError:
                    await asyncio.sleep(0.1)
                else:
                    return


async def test_bound_beyond_the_format_refuses_every_number(client: Client) -> None:
    """A class with such a bound is refused when it is declared."""
    group = f"bounds.{uuid.uuid4().hex[:12]}.example.com"
    number = {"type": "integer", "format": "int32", "minimum": 0, "maximum": 2**32 - 1}
    body = real_definition(group, {"type": "object", "properties": {"asn": number}})
    definitions = client.resource(apiextensions_v1.CUSTOM_RESOURCE_DEFINITIONS)
    judge = Judge(client, group)
    await definitions.create(body)
    try:
        await judge.served({})
        assert await judge({}) == {}
        assert "Maximum boundary value must be of type integer with format int32 in spec.asn" in await judge({"asn": 1})
    finally:
        await definitions.delete(body["metadata"]["name"])


@pytest.mark.parametrize("name", DEFINITIONS)
async def test_class_and_real_definition_judge_alike(client: Client, name: str) -> None:
    definition = DEFINITIONS[name]
    suffix = f"{uuid.uuid4().hex[:12]}.example.com"
    cls = msgspec.defstruct("Whole", [("metadata", ObjectMeta), ("spec", definition.cls)], frozen=True)
    bodies = (
        custom_resource(cls, f"class.{suffix}", "v1", plural="wholes").crd(),
        real_definition(f"real.{suffix}", definition.schema),
    )
    definitions = client.resource(apiextensions_v1.CUSTOM_RESOURCE_DEFINITIONS)
    by_class, by_schema = (Judge(client, f"{each}.{suffix}") for each in ("class", "real"))
    accepted = refused = 0
    try:
        for body in bodies:
            await definitions.create(body)
        for each in (by_class, by_schema):
            await each.served(definition.sample)
        for spec in samples(definition):
            made, expected = await by_class(spec), await by_schema(spec)
            is_refused = isinstance(expected, str)
            if isinstance(made, str) is not is_refused:
                told = expected if is_refused else made
                assert re.search(DIFFERENCES.get(name, "$^"), told), (spec, told)
            elif not is_refused:
                assert made == expected, spec
            refused += is_refused
            accepted += not is_refused
    finally:
        for body in bodies:
            await definitions.delete(body["metadata"]["name"])
    assert accepted > 10, made
    assert refused > 10
