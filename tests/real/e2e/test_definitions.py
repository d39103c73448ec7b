"""Definitions that are made from classes, on a real API server."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from aioinformer import DecodeError
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.crds import Column, CustomResource, Scale, custom_resource
from tests.support.declared_classes import FIELDS, OldWebsite, Pet, Tenant, Website, class_with
from tests.support.schema_values import SERVER_ACCEPTS, differences, values

if TYPE_CHECKING:
    from tests.support.real_cluster import Operator, RealCluster

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


JUDGED = [custom_resource(class_with(name), f"judged.{GROUP}", "v1") for name in FIELDS]
JUDGED += [custom_resource(each, f"judged.{GROUP}", "v1") for each in (Pet, Tenant, Website)]


@pytest.mark.parametrize("resource", JUDGED, ids=lambda each: each.plural)
async def test_class_and_server_judge_objects_alike(
    cluster: RealCluster, operator: Operator, resource: CustomResource[Any]
) -> None:
    await established(operator, resource)
    await asyncio.to_thread(judge_objects, cluster, resource)


def judge_objects(cluster: RealCluster, resource: CustomResource[Any]) -> None:
    schema, objects = resource.schema(), ObjectType[Any](resource)
    authority = ssl.create_default_context(cafile=str(cluster.directory / "pki" / "ca.crt"))
    address = urlsplit(cluster.address("server"))
    headers = {"Authorization": f"Bearer {cluster.address('adminToken')}", "Content-Type": "application/json"}
    path = resource.path("default" if resource.namespaced else "") + "?dryRun=All&fieldValidation=Ignore"

    def is_accepted(raw: bytes) -> bool:
        try:
            objects.to_view(objects.on_arrival(objects.decode(raw)))
        except DecodeError:
            return False
        return True

    with closing(http.client.HTTPSConnection(str(address.hostname), address.port, context=authority)) as connection:

        def create(raw: bytes) -> tuple[int, bytes]:
            connection.request("POST", path, raw, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()

        for _ in range(500):  # established, and not yet served
            if create(b"{}")[0] != 404:
                break

        @settings(
            max_examples=60,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        @given(values(schema))
        def judge(value: Any) -> None:
            if not isinstance(value, dict):
                return
            value = {name: each for name, each in value.items() if name not in resource.subresources}
            metadata = {"name": "judged", "uid": "1", "resourceVersion": "1"}
            body = {**value, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
            by_class = is_accepted(json.dumps(body).encode())
            status, answer = create(json.dumps({**body, "metadata": {"name": "judged"}}).encode())
            if by_class is not (status == 201):
                reasons = differences(schema, value)
                assert reasons & SERVER_ACCEPTS if status == 201 else reasons - SERVER_ACCEPTS, (value, answer)
            assert status != 201 or is_accepted(answer), (value, answer)

        judge()
