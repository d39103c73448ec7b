"""Which webhooks the API server calls, with what, and how often: ours as kube-apiserver."""

from __future__ import annotations

import asyncio
import base64
import ssl
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from aioinformer import ApiError, Client, Resource
from aioinformer.errors import Forbidden, Invalid
from aioinformer.models import core_v1
from tests.support.webhooks import Hooks, configuration, patch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MAPS = core_v1.CONFIG_MAPS
PLAIN: Resource[Any] = Resource("", "v1", "configmaps", "ConfigMap")


class Registered:
    """Webhooks of one namespace, which the API server calls by URL."""

    def __init__(self, client: Client, hooks: Hooks, trusted: str) -> None:
        self.client = client
        self.hooks = hooks
        self._trusted = trusted
        self._made: list[Any] = []

    def webhook(self, path: str, **others: Any) -> dict[str, Any]:
        labels = {"matchLabels": {"kubernetes.io/metadata.name": self.client.namespace}}
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}
        found = self.hooks.webhook(path, **{"rules": [rule], "namespaceSelector": labels, **others})
        found["clientConfig"]["caBundle"] = self._trusted
        return found

    async def add(self, kind: str, *webhooks: dict[str, Any]) -> None:
        """Register webhooks, the last of which is called for a new ConfigMap."""
        body = configuration(f"{kind}WebhookConfiguration", *webhooks, name=f"{self.client.namespace}-{kind.lower()}")
        resource = await self.client.resource_for(body)
        self._made.append((resource, await resource.create(body)))
        dry = self.client.with_options(dry_run=True).resource(MAPS)
        while f"/{webhooks[-1]['name'].partition('.')[0]}" not in self.hooks.paths:
            await dry.create({"metadata": {"name": "probe"}})
            await asyncio.sleep(0.1)
        self.hooks.seen.clear()

    async def remove(self) -> None:
        for resource, made in self._made:
            await resource.delete(made)


@pytest.fixture
async def registered(client: Client) -> AsyncIterator[Registered]:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    trusted = base64.b64encode(authority.cert_pem.bytes()).decode()
    async with Hooks(context) as hooks, asyncio.timeout(200):
        made = Registered(client, hooks, trusted)
        try:
            yield made
        finally:
            await made.remove()


async def test_match_conditions(registered: Registered) -> None:
    maps = registered.client.with_options(retry=False).resource(MAPS)
    named = {"name": "named", "expression": "object == null || object.metadata.name != 'free'"}
    broken = {"name": "colour", "expression": "object == null || object.data.colour == 'red'"}
    user = {"name": "user", "expression": "'system:masters' in request.userInfo.groups && request.kind.kind != ''"}
    await registered.add(
        "Validating",
        registered.webhook("named", matchConditions=[named, user]),
        registered.webhook("ignored", matchConditions=[broken], failurePolicy="Ignore"),
        registered.webhook("all"),
    )
    await maps.create({"metadata": {"name": "free"}})
    assert registered.hooks.paths == ["/all"]
    made = await maps.create({"metadata": {"name": "b"}, "data": {"colour": "red"}})
    assert sorted(registered.hooks.paths[1:]) == ["/all", "/ignored", "/named"]
    await maps.delete(made)
    assert sorted(registered.hooks.paths[4:]) == ["/all", "/ignored", "/named"]


async def test_failing_match_condition(registered: Registered) -> None:
    maps = registered.client.with_options(retry=False).resource(MAPS)
    broken = {"name": "colour", "expression": "object.metadata.name == 'probe' || object.data.colour == 'red'"}
    await registered.add("Validating", registered.webhook("strict", matchConditions=[broken]))
    with pytest.raises(Forbidden) as caught:
        await maps.create({"metadata": {"name": "b"}})
    why = f"expression '{broken['expression']}' resulted in error: no such key: data"
    assert caught.value.message == f'configmaps "b" is forbidden: {why}'


@pytest.mark.parametrize("expression", ["object.spec.size", "object.", "request.color == ''", "self.data == null"])
async def test_match_condition_that_does_not_compile(registered: Registered, expression: str) -> None:
    found = registered.webhook("check", matchConditions=[{"name": "it", "expression": expression}])
    body = configuration("ValidatingWebhookConfiguration", found, name=f"{registered.client.namespace}-it")
    resource = await registered.client.resource_for(body)
    with pytest.raises(Invalid) as caught:
        await resource.create(body)
    assert list(caught.value.fields) == ["webhooks[0].matchConditions[0].expression"]


async def test_reinvocation(registered: Registered) -> None:
    again = {"reinvocationPolicy": "IfNeeded"}
    hooks = registered.hooks
    names: Any = (("first", again), ("second", {}), ("third", again), ("fourth", again), ("fifth", {}))
    await registered.add("Mutating", *(registered.webhook(name, **others) for name, others in names))
    hooks.answers["/second"] = patch({"op": "add", "path": "/data", "value": {"count": ""}})

    async def count(sent: dict[str, Any]) -> dict[str, Any]:
        known = (sent["object"].get("data") or {}).get("count", "")
        return patch({"op": "add", "path": "/data", "value": {"count": f"{known}I"}})

    maps = registered.client.resource(PLAIN)
    await maps.create({"metadata": {"name": "a"}})
    assert hooks.paths == ["/first", "/second", "/third", "/fourth", "/fifth", "/first"]
    hooks.seen.clear()
    hooks.answers |= {"/first": count, "/second": {}, "/third": count}
    made = await maps.create({"metadata": {"name": "b"}})
    assert hooks.paths == ["/first", "/second", "/third", "/fourth", "/fifth", "/first", "/third", "/fourth"]
    assert made["data"] == {"count": "IIII"}


async def test_scale_and_status(registered: Registered) -> None:
    hooks, deployments = registered.hooks, registered.client.apps.v1.deployments
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"]}
    rules = [{**rule, "resources": ["deployments/scale", "deployments/status"]}]
    await registered.add("Mutating", registered.webhook("change", rules=rules), registered.webhook("probe"))
    containers = [{"name": "a", "image": "a"}]
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": containers}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    made = await deployments.create({"metadata": {"name": "a"}, "spec": spec})
    await deployments.patch(made, {"spec": {"replicas": 2}})
    assert hooks.seen == []
    hooks.answers["/change"] = patch({"op": "replace", "path": "/spec/replicas", "value": 5})
    scaled = await deployments.scale.patch("a", {"spec": {"replicas": 3}})
    assert scaled.to_dict()["spec"]["replicas"] == 5
    assert (await deployments.get("a")).to_dict()["spec"]["replicas"] == 5
    sent = next(each for _, each in hooks.seen if each["subResource"] == "scale")
    assert sent["kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert sent["resource"] == {"group": "apps", "version": "v1", "resource": "deployments"}
    assert [sent[part]["spec"] for part in ("oldObject", "object")] == [{"replicas": 2}, {"replicas": 3}]
    hooks.answers["/change"] = {"allowed": False, "status": {"message": "no more"}}
    with pytest.raises(ApiError, match="denied the request: no more"):
        await deployments.scale.patch("a", {"spec": {"replicas": 7}})
    with pytest.raises(ApiError, match="denied the request: no more"):
        await deployments.status.patch("a", {"status": {"observedGeneration": 9}})
    assert [each["kind"]["kind"] for _, each in hooks.seen][-2:] == ["Scale", "Deployment"]
