"""Definitions that are made from classes, on a real API server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.crds import Column, CustomResource, Scale, custom_resource
from tests.support.declared_classes import FIELDS, OldWebsite, Pet, Tenant, Website, class_with

if TYPE_CHECKING:
    from tests.support.real_cluster import Operator

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "classes.example.com"

OLD = custom_resource(OldWebsite, GROUP, "v1beta1", kind="Website", storage=False, deprecated="use v1")
WHOLE = [
    custom_resource(
        Website,
        GROUP,
        "v1",
        short_names=["web"],
        categories=["all"],
        scale=Scale(selector=".status.selector"),
        columns=[
            Column("Image", ".spec.image", "what it runs"),
            Column("Ready", '.status.conditions[?(@.type=="Ready")].status', priority=1),
            Column("Age", ".metadata.creationTimestamp"),
        ],
        selectable=[".spec.image"],
        others=[OLD],
    ),
    custom_resource(Pet, GROUP, "v1", scale=Scale(".spec.size", ".status.replicas")),
    custom_resource(Tenant, GROUP, "v1alpha1", namespaced=False),
]


async def established(operator: Operator, resource: CustomResource[Any]) -> None:
    """Create the definition, and wait until the server serves it."""
    body = resource.crd()
    status, answer = await operator.request("POST", CRDS, body)
    assert status == 201, (body, answer.get("message"))
    for _ in range(600):
        _, found = await operator.request("GET", f"{CRDS}/{body['metadata']['name']}")
        conditions = {each["type"]: each for each in found.get("status", {}).get("conditions") or ()}
        if conditions.get("Established", {}).get("status") == "True":
            assert "NonStructuralSchema" not in conditions
            assert found["spec"]["versions"][0]["schema"] == body["spec"]["versions"][0]["schema"]
            return
        await asyncio.sleep(0.05)
    raise AssertionError(found)


@pytest.mark.parametrize("name", FIELDS)
async def test_server_accepts_the_definition_of_each_type(operator: Operator, name: str) -> None:
    await established(operator, custom_resource(class_with(name), GROUP, "v1", plural=f"{name}-list"))


@pytest.mark.parametrize("resource", WHOLE, ids=str)
async def test_server_accepts_whole_definitions(operator: Operator, resource: CustomResource[Any]) -> None:
    await established(operator, resource)
