"""What `aioinformer uninstall` lists of all that managers write: ours as kube-apiserver."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from aioinformer.cli.controllers.uninstall import left_by
from tests.support.writing_managers import WritingManagers

if TYPE_CHECKING:
    from aioinformer import Client
    from aioinformer.controller import Manager


async def left(manager: Manager, client: Client) -> list[str]:
    """Return what a manager has left, without the random parts of names."""
    found = [str(each) async for each in left_by(manager, client.transport)]
    assert len(found) == len({*found})
    return sorted(each.replace(f" -n {client.namespace}", "") for each in found)


async def until_written(client: Client, ring: str) -> None:
    """Wait until the child, the failure condition, its Event and the ring are there."""
    while True:
        child = await client.core.v1.secrets.get_or_none("child")
        service = await client.core.v1.services.get("web")
        events = [each.involved_object.name async for each in client.core.v1.events.list()]
        conditions = {each.type for each in (service.status and service.status.conditions) or ()}
        ring_object = await client.core.v1.configmaps.get_or_none(ring)
        if child is not None and "Reconciled" in conditions and "web" in events and ring_object is not None:
            return
        await asyncio.sleep(0.1)


async def make_foreign_objects(client: Client) -> None:
    """Create objects of others that resemble those of the managers."""
    others = client.with_options(field_manager="others")
    foreign = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "foreign", "finalizers": ["example.com/x"]},
    }
    await others.core.v1.configmaps.apply(foreign)
    await others.core.v1.configmaps.create(
        {"metadata": {"name": "other-ring", "labels": {"aioinformer/ring": "other"}}}
    )
    await others.core.v1.secrets.create({"metadata": {"name": "others-webhook-ca"}})
    await others.coordination.v1.leases.create({"metadata": {"name": "others"}})
    about = {"kind": "ConfigMap", "namespace": client.namespace, "name": "foreign"}
    event = {"metadata": {"name": "foreign.1"}, "involvedObject": about, "reportingComponent": "others"}
    await others.core.v1.events.create({**event, "reportingInstance": "host"})


async def test_everything_that_managers_write_is_listed_and_nothing_else(client: Client) -> None:
    group = f"g{uuid.uuid4().hex[:12]}.example.com"
    managers = WritingManagers(client, group)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(asyncio.timeout(60))
        stack.push_async_callback(managers.remove)
        async with managers.running():
            await until_written(client, "widgets-ring")
        await make_foreign_objects(client)
        events = [each async for each in client.core.v1.events.list() if each.reporting_component == "widgets"]
        registered = f"configurations.admissionregistration.k8s.io/widgets.{client.namespace}"
        calls = "calls the webhooks: delete it before the manager"
        definition = f"customresourcedefinitions.apiextensions.k8s.io/gates.{group}"
        converted = "its versions are converted by the manager: retire them, or delete it, before the manager"
        assert await left(managers.manager, client) == sorted(
            [
                "configmaps/parent: controller maps has set its finalizer example.com/cleanup",
                "secrets/child: controller maps has set fields",
                "services/web: controller services has set fields",
                f"gates.{group}/a: its annotation aioinformer/lost-v1alpha1 keeps what another version does not have",
                "leases.coordination.k8s.io/widgets: the Lease of the leader election",
                "secrets/widgets-webhook-ca: the CA of the webhooks",
                f"validatingwebhook{registered}: {calls}",
                f"mutatingwebhook{registered}: {calls}",
                f"{definition}: {converted}",
                *(f"events/{each.metadata.name}: recorded by the manager; it expires by itself" for each in events),
            ]
        )
        # The replica has taken its Lease away when it stopped.
        found: list[Any] = await left(managers.sharing, client)
        assert [each for each in found if "events/" not in each] == [
            "configmaps/widgets-ring: ring widgets: which replica owns which slot"
        ]
