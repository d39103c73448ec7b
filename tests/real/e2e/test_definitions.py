"""Definitions that are made from classes, on a real API server."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import shutil
import ssl
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from aioinformer import Client, connect, load_manifests
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.encoding import encoded
from aioinformer.cli.controllers.manifest import to_yaml
from aioinformer.client import ApplyFailed
from aioinformer.crds import Column, CustomResource, Scale, custom_resource
from aioinformer.errors import DecodeError, Invalid
from aioinformer.models import (
    Model,
    ObjectMeta,
    apiregistration_v1,
    apps_v1,
    autoscaling_v2,
    batch_v1,
    core_v1,
    meta_v1,
    networking_v1,
    policy_v1,
    rbac_v1,
)
from tests.support.declared_classes import (
    API_FIELDS,
    FIELDS,
    MODEL_FIELDS,
    OldWebsite,
    Pet,
    Tenant,
    Website,
    class_with,
    model_with,
)
from tests.support.schema_values import SERVER_ACCEPTS, differences, values

if TYPE_CHECKING:
    from tests.support.real_cluster import Operator, RealCluster

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ROOT = Path(__file__).parents[3]
KUBECTL = os.environ.get("AIOINFORMER_KUBECTL") or shutil.which("kubectl")
GROUP = "classes.example.com"

WHOLE_CLASSES: tuple[type[Any], ...] = (Pet, Tenant, Website)
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


JUDGED: list[CustomResource[Any]] = [custom_resource(class_with(name), f"judged.{GROUP}", "v1") for name in FIELDS]
MODELS: list[CustomResource[Any]] = [
    custom_resource(model_with(name), f"models.{GROUP}", "v1") for name in MODEL_FIELDS
]
JUDGED += [custom_resource(each, f"judged.{GROUP}", "v1") for each in WHOLE_CLASSES]


@pytest.mark.parametrize(
    "resource", [*JUDGED, *MODELS], ids=lambda each: f"{each.group.partition('.')[0]}-{each.plural}"
)
async def test_class_and_server_judge_objects_alike(
    cluster: RealCluster, operator: Operator, resource: CustomResource[Any]
) -> None:
    await established(operator, resource)
    await asyncio.to_thread(judge_objects, cluster, resource)


def judge_objects(cluster: RealCluster, resource: CustomResource[Any]) -> None:
    schema = resource.schema()
    objects = ObjectType[Any](resource)
    of_api = resource.kind in {class_with(name).__name__ for name in API_FIELDS}
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
            for is_last in (False, True):
                try:
                    connection.request("POST", path, raw, headers)
                    answer = connection.getresponse()
                    return answer.status, answer.read()
                except (http.client.HTTPException, OSError):  # the server has closed the connection
                    connection.close()
                    if is_last:
                        raise
            raise AssertionError

        for _ in range(500):  # established, and not yet served
            if create(b"{}")[0] != 404:
                break

        @settings(
            max_examples=60 if len(json.dumps(schema)) < 20_000 else 10,  # pod templates are large
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
            if by_class is not (status == 201) and not (by_class and resource in MODELS):  # pydantic converts
                reasons = differences(schema, value, of_api)
                assert reasons & SERVER_ACCEPTS if status == 201 else reasons - SERVER_ACCEPTS, (value, answer)
            is_rounded = isinstance(value.get("spec"), dict) and is_beyond_multiples(schema, value["spec"].get("value"))
            # Of types of the API, the server accepts an array for a text with a format.
            accepts_array = "array" in differences(schema, value, of_api)
            assert status != 201 or accepts_array or is_accepted(answer) or is_rounded, (value, answer)
            if status == 201 and resource in MODELS and not accepts_array:
                # What the class makes of it is what the server stores.
                stored = objects.to_view(objects.on_arrival(objects.decode(answer)))
                written = {**msgspec.json.decode(encoded(stored)), "apiVersion": resource.api_version}
                again = {**written, "kind": resource.kind, "metadata": {"name": "judged"}}
                assert create(json.dumps(again).encode())[0] == 201, (value, again)

        judge()


def is_beyond_multiples(schema: Any, value: Any) -> bool:
    """Return whether the server may round when it looks for multiples, as it does with large quotients."""
    step = schema["properties"]["spec"].get("properties", {}).get("value", {}).get("multipleOf")
    return step is not None and isinstance(value, (int, float)) and abs(value) / step > 1e8


MANAGED = """
from aioinformer.controller import LeaderElection, Manager
from aioinformer.crds import custom_resource
from aioinformer.models import core_v1
from tests.support.declared_classes import Website

WEBSITES = custom_resource(Website, "managed.example.com", "v1")
manager = Manager("websites", leader_election=LeaderElection("websites"))


@manager.controller(WEBSITES, owns=[core_v1.CONFIG_MAPS], writes={core_v1.CONFIG_MAPS: ("create",)})
async def websites(request): ...
"""


@pytest.mark.skipif(KUBECTL is None, reason="needs kubectl, on PATH or named in AIOINFORMER_KUBECTL")
async def test_server_accepts_the_base_of_a_manager(cluster: RealCluster, tmp_path: Path) -> None:
    (tmp_path / "managed.py").write_text(MANAGED)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "KUBECONFIG": str(cluster.kubeconfig)}

    async def run(*command: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        output, _ = await process.communicate()
        assert process.returncode == 0, output.decode()
        return output.decode()

    await run(sys.executable, "-m", "aioinformer", "manifests", "managed:manager", "-o", "base", "--network-policy")
    await run(str(KUBECTL), "apply", "--server-side", "-f", "base/crd-websites.managed.example.com.yaml")
    told = await run(str(KUBECTL), "apply", "--server-side", "--dry-run=server", "-k", "base")
    assert "deployment.apps/websites serverside-applied (server dry run)" in told
    assert "networkpolicy.networking.k8s.io/websites serverside-applied (server dry run)" in told
    await run(sys.executable, "-m", "aioinformer", "check", "managed:manager")


async def test_all_manifests_are_applied_in_one_call(cluster: RealCluster) -> None:
    body = {"apiVersion": "all.example.com/v1", "kind": "Website", "spec": {"image": "nginx"}}
    website = {**body, "metadata": {"name": "web", "namespace": "applied"}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "applied", "labels": {"team": "web"}}}
    definition = custom_resource(Website, "all.example.com", "v1").crd()
    async with await connect(kubeconfig=cluster.kubeconfig) as connection:
        client = Client(connection, field_manager="test")
        report = await client.apply_all([website, definition, namespace])
        assert [each.change for each in report.objects] == ["created"] * 3
        again = await client.apply_all(load_manifests(to_yaml(website, definition, namespace)))
        assert [each.change for each in again.objects] == ["unchanged"] * 3
        with pytest.raises(ApplyFailed) as caught:
            await client.apply_all([{**website, "spec": {"replicas": -1}}])
        assert isinstance(caught.value.report.failed[0].error, Invalid)


MODULES = (
    apiregistration_v1,
    apps_v1,
    autoscaling_v2,
    batch_v1,
    core_v1,
    meta_v1,
    networking_v1,
    policy_v1,
    rbac_v1,
)


async def test_server_accepts_a_definition_with_each_type_of_the_api(operator: Operator) -> None:
    accepted = 0
    for module in MODULES:
        fields = [(name, each) for name in dir(module) if is_part(each := getattr(module, name))]
        spec = msgspec.defstruct("Spec", fields)
        resource = custom_resource(msgspec.defstruct("All", [("spec", spec)]), GROUP, "v1", plural="all")
        status, answer = await operator.request("POST", f"{CRDS}?dryRun=All", resource.crd())
        assert status == 201, (module, answer.get("message"))
        accepted += len(fields)
    assert accepted > 300


def is_part(value: Any) -> bool:
    """Return whether it is a type of attributes that a definition can have."""
    is_unserved = value is meta_v1.GroupResource
    return isinstance(value, type) and issubclass(value, Model) and not is_unserved


class CronSpec(msgspec.Struct, frozen=True):
    template: core_v1.PodTemplateSpec
    resources: core_v1.ResourceRequirements | None = None
    cache: core_v1.EmptyDirVolumeSource | None = None


class Cron(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: CronSpec


CRONS = custom_resource(Cron, f"pods.{GROUP}", "v1")
CONTAINER = {"name": "main", "image": "nginx"}


def cron(name: str, *, containers: list[dict[str, Any]] | None = None, **spec: Any) -> dict[str, Any]:
    """Return an object of `CRONS`."""
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers or [CONTAINER]}}
    return {
        "apiVersion": CRONS.api_version,
        "kind": CRONS.kind,
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("spec.template.spec.containers[0].name", cron("nameless", containers=[{"image": "nginx"}])),
        ("spec.template.spec.containers[1]", cron("twice", containers=[CONTAINER, CONTAINER])),
        (
            "spec.template.spec.containers[0].livenessProbe.httpGet.port",
            cron("probed", containers=[CONTAINER | {"livenessProbe": {"httpGet": {"port": True}}}]),
        ),
        ("spec.resources.limits.cpu", cron("limited", resources={"limits": {"cpu": "many"}})),
        ("spec.cache.sizeLimit", cron("sized", cache={"sizeLimit": "large"})),
        (
            "spec.template.spec.containers[0].ports[0].containerPort",
            cron("ported", containers=[CONTAINER | {"ports": [{"containerPort": 2**31}]}]),
        ),
    ],
)
async def test_fields_of_the_api_are_checked_as_the_api_does(
    operator: Operator, field: str, body: dict[str, Any]
) -> None:
    await served_crons(operator)
    status, answer = await operator.request("POST", f"{CRONS.path('default')}?dryRun=All", body)
    if field.endswith(".containerPort") and not await knows_formats_of_numbers(operator):
        assert status == 201
        return
    assert status == 422
    assert field in answer["message"]


async def knows_formats_of_numbers(operator: Operator) -> bool:
    """Return whether the server checks `int32` and `int64` of custom resources, as 1.36 and later versions do."""
    _, version = await operator.request("GET", "/version")
    return int(version["minor"]) >= 36


async def test_quantities_and_ports_may_be_numbers(operator: Operator, cluster: RealCluster) -> None:
    await served_crons(operator)
    ports = [{"containerPort": 80, "protocol": each} for each in ("TCP", "UDP")]
    probe = {"httpGet": {"port": "http"}}
    container = CONTAINER | {"ports": ports, "livenessProbe": probe, "readinessProbe": {"tcpSocket": {"port": 80}}}
    body = cron("numbers", containers=[container], resources={"limits": {"cpu": 2}}, cache={"sizeLimit": 1024})
    status, answer = await operator.request("POST", CRONS.path("default"), body)
    assert status == 201, answer
    assert answer["spec"]["template"]["metadata"] == {"labels": {"app": "numbers"}}
    async with await connect(kubeconfig=cluster.kubeconfig) as connection:
        crons = Client(connection).resource(CRONS)
        found = await crons.get("default/numbers")
    assert found.spec.cache is not None
    assert found.spec.cache.size_limit == "1024"


async def test_two_managers_apply_two_containers_of_a_template(operator: Operator, cluster: RealCluster) -> None:
    await served_crons(operator)
    async with await connect(kubeconfig=cluster.kubeconfig) as connection:
        crons = Client(connection).resource(CRONS)
        first = cron("shared", containers=[CONTAINER])
        second = cron("shared", containers=[{"name": "sidecar", "image": "proxy"}])
        for manager, body in (("first", first), ("second", second), ("first", first)):
            body["metadata"]["namespace"] = "default"
            body["spec"]["template"].pop("metadata", None)
            await crons.apply(body, field_manager=manager)
        found = await crons.get("default/shared")
    assert found.spec.template.spec is not None
    images = {each.name: each.image for each in found.spec.template.spec.containers}
    assert images == {"main": "nginx", "sidecar": "proxy"}


async def served_crons(operator: Operator) -> None:
    """Create the definition of `CRONS` if it is not there, and wait until it is served."""
    status, _ = await operator.request("GET", f"{CRDS}/{CRONS.group_resource}")
    if status == 404:
        await established(operator, CRONS)
    for _ in range(600):
        if (await operator.request("GET", CRONS.path("default")))[0] == 200:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the server does not serve it")
