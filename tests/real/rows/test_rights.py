"""Who may see what: users and rights of the API server decide about streams and metrics, ours as kube-apiserver."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Annotated, Any

import aiohttp
import msgspec
import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from aioinformer.authorization import Rbac
from aioinformer.models import core_v1, rbac_v1
from aioinformer.prometheus import PrometheusMetrics
from aioinformer.web import Informers
from aioinformer.web.fastapi import router, stream
from tests.support.web_servers import on_uvicorn, reading, refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer import Client

TTL = 4.0
GROUP = "rbac.authorization.k8s.io"


class Row(msgspec.Struct):
    node: Annotated[str | None, "spec.nodeName"] = None


class Users:
    """Service accounts of one namespace, their rights, and their tokens."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.namespace = client.namespace
        self._made: list[tuple[Any, Any]] = []

    async def add(self, name: str) -> None:
        await self.client.core.v1.serviceaccounts.create({"metadata": {"name": name}})

    async def token(self, name: str, audience: str = "dashboard") -> dict[str, str]:
        """Return the header with a new token of an account."""
        accounts = self.client.core.v1.serviceaccounts
        found = await accounts.create_token(name, audiences=[audience])
        assert found.status is not None
        return {"Authorization": f"Bearer {found.status.token}"}

    async def grant(self, name: str, rule: dict[str, Any], *, everywhere: bool = False) -> None:
        role = f"{self.namespace}-{name}"
        await self._create(rbac_v1.CLUSTER_ROLES, {"metadata": {"name": role}, "rules": [rule]})
        subject = {"kind": "ServiceAccount", "name": name, "namespace": self.namespace}
        binding = {
            "metadata": {"name": role},
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
            "subjects": [subject],
        }
        await self._create(rbac_v1.CLUSTER_ROLE_BINDINGS if everywhere else rbac_v1.ROLE_BINDINGS, binding)

    async def _create(self, resource: Any, body: dict[str, Any]) -> None:
        self._made.append((resource, await self.client.resource(resource).create(body)))

    async def revoke_all(self) -> None:
        while self._made:
            resource, made = self._made.pop()
            await self.client.resource(resource).delete(made)


READERS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
PATHS = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}


@pytest.fixture
async def users(client: Client) -> AsyncIterator[Users]:
    users = Users(client)
    for name in ("jane", "joe", "nobody", "prometheus"):
        await users.add(name)
    yield users
    await users.revoke_all()


@pytest.fixture
async def service(client: Client) -> AsyncIterator[str]:
    who = Rbac(audiences=["dashboard"], ttl=TTL)
    informers = Informers(core_v1.PODS, client=client.transport, metrics=PrometheusMetrics(CollectorRegistry()))
    app = FastAPI(lifespan=informers.lifespan)
    app.include_router(router(informers, metrics_check=who))
    app.get("/live")(stream(informers, {core_v1.PODS: Row}, who=who))
    async with on_uvicorn(app) as url:
        await informers.informer(core_v1.PODS).wait_for_sync()
        yield url


async def create_pod(client: Client, name: str) -> str:
    spec = {"nodeName": "node-1", "containers": [{"name": "main", "image": "example.com/web"}]}
    await client.core.v1.pods.create({"metadata": {"name": name}, "spec": spec})
    return f"{client.namespace}/{name}"


async def test_three_users_see_what_the_cluster_lets_them_see(client: Client, users: Users, service: str) -> None:
    live = f"{service}/live"
    first = await create_pod(client, "web-0")
    await users.grant("jane", READERS, everywhere=True)
    await users.grant("joe", READERS)
    jane, joe, nobody = [await users.token(name) for name in ("jane", "joe", "nobody")]
    here = f"?namespace={users.namespace}"
    async with asyncio.timeout(200), reading(live, **jane) as of_jane, reading(live, here, **joe) as of_joe:
        await of_jane.until("synced")
        await of_joe.until("synced", keys={first})
        assert first in of_jane.objects
        for user in (joe, nobody):
            assert "may not list pods in all namespaces" in await refusal(live, 403, **user)
        assert f"in namespace '{users.namespace}'" in await refusal(live, 403, here, **nobody)
        # What is taken away is gone within ttl, and what follows is not seen.
        await users.revoke_all()
        began = time.monotonic()
        await of_joe.until("delete", keys=set())
        assert time.monotonic() - began < TTL + 10
        await of_jane.until("delete", keys=set())
        assert time.monotonic() - began < TTL + 10
        assert "may not list" in await refusal(live, 403, f"{here}&after={of_joe.cursor}", **joe)


async def test_tokens_for_others_and_of_deleted_accounts_are_refused(users: Users, service: str) -> None:
    live = f"{service}/live"
    await users.grant("jane", READERS, everywhere=True)
    issuer = "https://kubernetes.default.svc.cluster.local"
    for audience in ("another", issuer):
        other = await users.token("jane", audience)
        assert "does not accept this token for the audience 'dashboard'" in await refusal(live, 401, **other)
    jane = await users.token("jane")
    async with reading(live, **jane) as of_jane:
        await of_jane.until("synced")
    await users.client.core.v1.serviceaccounts.delete("jane")
    # kube-apiserver itself accepts a token for 10 s after it has accepted it.
    async with asyncio.timeout(200), aiohttp.ClientSession() as session:
        while True:
            async with session.get(live, headers=jane) as response:
                if response.status != 200:
                    break
            await asyncio.sleep(0.2)
    assert "may have expired" in await refusal(live, 401, **jane)


async def test_metrics_are_a_path_without_a_resource(users: Users, service: str) -> None:
    metrics = f"{service}/metrics"
    await users.grant("prometheus", PATHS, everywhere=True)
    assert "nonResourceURLs" in await refusal(metrics, 403, **await users.token("nobody"))
    async with reading(metrics, **await users.token("prometheus")) as found:
        assert "informer_store_items" in await found.response.text()
