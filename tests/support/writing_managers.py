"""Managers that write all that managers write into a cluster, and the objects that they need."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from aioinformer import Client, Condition, LeaderElectionOptions
from aioinformer.backoff import BackoffOptions
from aioinformer.controller import LeaderElection, Manager, QueueOptions, Request, apply_set, finalizing, set_status
from aioinformer.errors import AioinformerError
from aioinformer.models import apiextensions_v1, core_v1
from aioinformer.ring import ControllerRing
from aioinformer.webhooks import WebhookServer
from tests.support.converted_classes import gates
from tests.support.reviews import WIDGETS, Widget
from tests.support.webhooks import configuration, webhook

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.webhooks import AdmissionRequest

KINDS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


class WritingManagers:
    """A manager with an election, webhooks and controllers, and one that shares in a ring.

    Args:
        client: of the namespace, for the managers and for the user who makes the objects.
        group: of the resource that the manager converts.

    Attributes:
        manager, sharing: the managers.
        child: what the manager applies; change it before the parent to have it applied again.
    """

    def __init__(self, client: Client, group: str) -> None:
        namespace = client.namespace
        self._user = client.with_options(field_manager="user")
        self._stored, self._old = gates(group)
        webhooks = WebhookServer("widgets", namespace, port=0, host="127.0.0.1", hosts=("127.0.0.1",))
        self.manager = Manager(
            "widgets",
            client=client.transport,
            namespaces=[namespace],
            leader_election=LeaderElection("widgets", namespace),
            webhooks=webhooks,
            failure_condition="Reconciled",
        )
        self.manager.convert(self._stored)
        metadata = {"name": "child", "namespace": namespace}
        self.child: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
        self._declare()
        times = LeaderElectionOptions(lease_duration=3, renew_deadline=2, retry_period=0.5)
        ring = ControllerRing("widgets", namespace=namespace, slots=2, member="a", options=times)
        self.sharing = Manager("sharing", client=client.transport, namespaces=[namespace], ring=ring)

        @self.sharing.controller(core_v1.ENDPOINTS, name="endpoints")
        async def endpoints(request: Request[Any]) -> None: ...

    def _declare(self) -> None:
        quick = QueueOptions(backoff=BackoffOptions(initial=0.02, factor=1.0, jitter=0.0))

        @self.manager.validate(WIDGETS)
        async def check(request: AdmissionRequest[Widget]) -> None: ...

        @self.manager.controller(core_v1.CONFIG_MAPS, name="maps", owns=[core_v1.SECRETS])
        async def maps(request: Request[Any]) -> None:
            if request.name == "parent":
                async with finalizing(request, "example.com/cleanup"):
                    await apply_set(request, [self.child], resources=[core_v1.SECRETS])

        @self.manager.controller(core_v1.SERVICES, name="services", queue=quick)
        async def services(request: Request[Any]) -> None:
            await set_status(request, [Condition("Ready", "True", "AllThere", "")])
            raise RuntimeError("it always fails")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Create the objects, and run the managers."""
        namespace = self._user.namespace
        service = {"service": {"name": "widgets", "namespace": namespace, "path": "/validate/widgets.example.com"}}
        async with AsyncExitStack() as stack:
            for kind in KINDS:
                hooks = configuration(kind, webhook("a", service), name=f"widgets.{namespace}")
                await (await self._user.resource_for(hooks)).create(hooks)
            await stack.enter_async_context(self.manager)
            await stack.enter_async_context(self.sharing)
            definition = self._stored.crd({"url": f"https://127.0.0.1:{self.manager.admission.port}/convert"})
            await self._user.resource(apiextensions_v1.CUSTOM_RESOURCE_DEFINITIONS).create(definition)
            await self._user.core.v1.configmaps.create({"metadata": {"name": "parent"}, "data": {"a": "b"}})
            await self._user.core.v1.services.create({"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}})
            await self._create_gate()
            yield

    async def _create_gate(self) -> None:
        gate = {"metadata": {"name": "a"}, "spec": {"size": 3, "legacy": "kept"}}
        old = self._user.with_options(retry=False).resource(self._old)
        while True:
            try:
                await old.create(gate)
            except AioinformerError:  # the definition is not served yet, or the CA is not in it
                await asyncio.sleep(0.1)
            else:
                return

    async def change_parent(self) -> None:
        """Let the child be applied again."""
        await self._user.core.v1.configmaps.patch("parent", {"data": {"changed": "yes"}})

    async def remove(self) -> None:
        """Remove what is in no namespace."""
        namespace = self._user.namespace
        for kind in KINDS:
            body = configuration(kind, name=f"widgets.{namespace}")
            await (await self._user.resource_for(body)).delete(body)
        definitions = self._user.resource(apiextensions_v1.CUSTOM_RESOURCE_DEFINITIONS)
        await definitions.delete(self._stored.group_resource)
