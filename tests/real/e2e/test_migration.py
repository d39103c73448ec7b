"""The stored version of a resource moves, and its objects with it, on a real API server."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from aioinformer import Client, UsageError, connect
from aioinformer.client import StorageMigration
from aioinformer.crds import CustomResource, custom_resource
from aioinformer.errors import Invalid
from aioinformer.models import ObjectMeta, admissionregistration_v1, apiextensions_v1

if TYPE_CHECKING:
    from tests.support.real_cluster import RealCluster

DEFINITIONS = apiextensions_v1.CUSTOM_RESOURCE_DEFINITIONS
COUNT = 1200


class Spec(msgspec.Struct, frozen=True):
    size: int = 0


class Box(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: Spec


def boxes(group: str, stored: str, *, old_served: bool = True) -> CustomResource[Box]:
    """Return the resource in two versions, of which one is stored."""
    versions = {
        name: custom_resource(
            Box, group, name, plural="boxes", storage=name == stored, served=name == "v1" or old_served
        )
        for name in ("v1", "v1beta1")
    }
    first = versions.pop(stored)
    return custom_resource(Box, group, stored, plural="boxes", served=first.served, others=list(versions.values()))


async def applied(client: Client, resource: CustomResource[Box]) -> Any:
    """Apply the definition, and wait until it is served."""
    await client.apply_all([resource.crd()], field_manager="tests", force=True)
    return client.resource(resource)


async def test_objects_move_and_the_former_version_can_go(cluster: RealCluster) -> None:
    group = "migrated.example.com"
    async with await connect(kubeconfig=cluster.kubeconfig) as connection:
        client = Client(connection.transport, namespace="default", field_manager="tests")
        objects = await applied(client, boxes(group, "v1beta1"))
        async with asyncio.TaskGroup() as tasks:
            for part in range(10):
                tasks.create_task(created(objects, range(part, COUNT, 10)))
        resource = boxes(group, "v1", old_served=False)
        with pytest.raises(UsageError, match="stores v1beta1, and the class is of v1: apply the new definition"):
            await StorageMigration(client, resource).run()
        await applied(client, resource)
        migration = StorageMigration(client, resource, settled=0.1)
        assert (await migration.plan())[2:] == [
            f"{COUNT} objects would be written here",
            f"{COUNT} of them would lose managed fields of versions that are not served",
            "storedVersions would become v1",
        ]
        report = await migration.run()
        assert (report.objects, report.written, report.cleaned, report.refused) == (COUNT, COUNT, COUNT, {})
        assert report.stored_versions == ("v1",)
        new = client.resource(resource)
        found = await new.list()
        assert {each.spec.size for each in found} == set(range(COUNT))
        # Applies go on, and the former version leaves the definition.
        await new.apply({"metadata": {"name": "box-0001"}, "spec": {"size": 7}}, field_manager="late", force=True)
        await applied(client, custom_resource(Box, group, "v1", plural="boxes"))
        definition = await client.resource(DEFINITIONS).get(f"boxes.{group}")
        assert [each.name for each in definition.spec.versions] == ["v1"]


async def created(objects: Any, numbers: range) -> None:
    for each in numbers:
        await objects.create({"metadata": {"name": f"box-{each:04}"}, "spec": {"size": each}})


async def test_refused_object_keeps_the_former_version(cluster: RealCluster, tmp_path: Path) -> None:
    group = "refused.example.com"
    async with await connect(kubeconfig=cluster.kubeconfig) as connection:
        client = Client(connection.transport, namespace="default", field_manager="tests")
        objects = await applied(client, boxes(group, "v1beta1"))
        await created(objects, range(3))
        policies = client.resource(admissionregistration_v1.VALIDATING_ADMISSION_POLICIES)
        bindings = client.resource(admissionregistration_v1.VALIDATING_ADMISSION_POLICY_BINDINGS)
        rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["boxes"]}
        validation = {"expression": "object.spec.size != 1", "message": "no box of 1"}
        spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [validation]}
        await policies.create({"metadata": {"name": "refuse"}, "spec": spec})
        await bindings.create(
            {"metadata": {"name": "refuse"}, "spec": {"policyName": "refuse", "validationActions": ["Deny"]}}
        )
        resource = boxes(group, "v1")
        await applied(client, resource)
        new = client.resource(resource)
        for _ in range(200):  # until the policy is known
            try:
                await new.patch("box-0001", {"metadata": {"labels": {"a": "b"}}}, dry_run=True)
            except Invalid:
                break
            await asyncio.sleep(0.1)
        report = await StorageMigration(client, resource, settled=0.1).run()
        assert (report.written, list(report.refused)) == (2, ["default/box-0001"])
        assert "no box of 1" in report.refused["default/box-0001"]
        assert report.stored_versions == ("v1beta1", "v1")
        await bindings.delete("refuse")
        await policies.delete("refuse")
        (tmp_path / "kept.py").write_text(
            f"from tests.real.e2e.test_migration import boxes\nBOXES = boxes({group!r}, 'v1')\n"
        )
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "aioinformer", "migrate", "kept:BOXES", "--dry-run"),
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "KUBECONFIG": str(cluster.kubeconfig)},
            stdout=asyncio.subprocess.PIPE,
        )
        told, _ = await process.communicate()
        assert process.returncode == 0
        assert told.decode().splitlines()[-1] == "storedVersions would become v1"
