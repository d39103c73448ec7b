"""How the API server for tests calls webhooks: which, when, with what, and what their answers do."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from aioinformer import ApiError, Client, HttpTransport, Resource, evolve
from aioinformer.controller import Manager
from aioinformer.errors import Invalid as Refused
from aioinformer.models import core_v1
from aioinformer.testing import ApiServer
from aioinformer.webhooks import AdmissionRequest, Invalid, WebhookServer
from tests.system.webhooks.conftest import configuration, webhook
from tests.unit.webhooks.reviews import WIDGETS, Widget

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PLAIN: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget", subresources=("status",))
OLD: Resource[Any] = Resource("example.com", "v1beta1", "widgets", "Widget")


def definition() -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"served": True, "schema": schema, "subresources": {"status": {}}}
    versions = [{"name": "v1", "storage": True, **version}, {"name": "v1beta1", "storage": False, **version}]
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    return {"metadata": {"name": "widgets.example.com"}, "spec": spec}


def widget(name: str = "a", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


class Hooks:
    """A server of webhooks: notes each review, and answers it as `answers` says for its path.

    Attributes:
        seen: path and request of each review.
        answers: members of the response, by path; an int is a status without a decision.
    """

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, Any] = {}
        self.url = ""

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.seen]

    async def answer(self, request: web.Request) -> web.Response:
        sent = (await request.json())["request"]
        self.seen.append((request.path, sent))
        found = self.answers.get(request.path, {})
        if callable(found):
            found = await found(sent)
        if isinstance(found, int):
            return web.Response(status=found, text="no decision")
        response = {"uid": sent["uid"], "allowed": True, **found}
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})

    def webhook(self, path: str, **others: Any) -> dict[str, Any]:
        return webhook(path, {"url": f"{self.url}/{path}"}, **others)


@pytest.fixture
async def hooks() -> AsyncIterator[Hooks]:
    made, app = Hooks(), web.Application()
    app.router.add_post("/{path:.*}", made.answer)
    async with TestServer(app) as server:
        made.url = str(server.make_url("")).rstrip("/")
        yield made


@pytest.fixture(autouse=True)
def _defined(api_server: ApiServer) -> None:
    api_server.create("customresourcedefinitions", definition())


def register(server: ApiServer, kind: str, *webhooks: dict[str, Any], name: str = "widgets") -> None:
    server.create(
        f"{kind.lower()}webhookconfigurations", configuration(f"{kind}WebhookConfiguration", *webhooks, name=name)
    )


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"patch": base64.b64encode(json.dumps(operations).encode()).decode(), "patchType": "JSONPatch"}


async def test_mutating_webhooks_run_in_order_before_validating_ones(
    api_server: ApiServer, client: Client, hooks: Hooks
) -> None:
    register(api_server, "Validating", hooks.webhook("check"), name="a")
    register(api_server, "Mutating", hooks.webhook("third"), name="c")
    register(api_server, "Mutating", hooks.webhook("first"), hooks.webhook("second"), name="b")
    hooks.answers["/first"] = patch({"op": "add", "path": "/spec/order", "value": ["first"]})
    hooks.answers["/second"] = patch({"op": "add", "path": "/spec/order/-", "value": "second"})
    made = await client.resource(PLAIN).create(widget())
    assert hooks.paths == ["/first", "/second", "/third", "/check"]
    assert hooks.seen[3][1]["object"]["spec"] == {"order": ["first", "second"]}
    assert made["spec"]["order"] == ("first", "second")
    assert "uid" not in hooks.seen[0][1]["object"]["metadata"]
    assert (hooks.seen[0][1]["operation"], hooks.seen[0][1]["userInfo"]["username"]) == ("CREATE", "admin")
    # No manager owns what a webhook has set, as in kube-apiserver.
    assert "f:order" not in str(made["metadata"]["managedFields"])


async def test_refusal_has_status_and_causes_of_the_webhook(
    api_server: ApiServer, client: Client, hooks: Hooks
) -> None:
    register(api_server, "Validating", hooks.webhook("check"))
    hooks.answers["/check"] = {"allowed": False, "status": {"code": 422, "reason": "Invalid", "message": "too big"}}
    with pytest.raises(Refused, match=r'admission webhook "check\.example\.com" denied the request: too big'):
        await client.resource(PLAIN).create(widget())
    hooks.answers["/check"] = {"allowed": False}
    with pytest.raises(ApiError, match="denied the request without explanation") as caught:
        await client.resource(PLAIN).create(widget())
    assert caught.value.status == 400
    assert api_server.list("widgets.example.com") == []


async def test_updates_patches_status_and_deletions_are_reviewed(
    api_server: ApiServer, client: Client, hooks: Hooks
) -> None:
    widgets = client.resource(PLAIN)
    made = await widgets.create(widget(size=1))
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["widgets/*"], "operations": ["*"]}
    register(api_server, "Validating", hooks.webhook("check", rules=[rule]))
    await widgets.edit(made, lambda each: evolve(each, "spec.size", 2))
    await widgets.status.patch(made, {"status": {"ready": True}})
    await widgets.delete("a", namespace="default")
    assert [(each["operation"], each.get("subResource", "")) for _, each in hooks.seen] == [
        ("UPDATE", ""),
        ("UPDATE", "status"),
        ("DELETE", ""),
    ]
    assert (hooks.seen[0][1]["oldObject"]["spec"], hooks.seen[0][1]["object"]["spec"]) == ({"size": 1}, {"size": 2})
    assert hooks.seen[2][1]["object"] is None
    hooks.answers["/check"] = {"allowed": False}
    api_server.create("widgets.example.com", widget("b"), "default")
    with pytest.raises(ApiError, match="denied the request"):
        await widgets.delete("b", namespace="default")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True),
        ({"resources": ["*"]}, True),
        ({"resources": ["*/*"]}, True),
        ({"resources": ["widgets/status"]}, False),
        ({"resources": ["gadgets"]}, False),
        ({"operations": ["UPDATE"]}, False),
        ({"apiGroups": ["apps"]}, False),
        ({"apiVersions": ["v1beta1"]}, True),
        ({"apiVersions": ["v2"]}, False),
        ({"scope": "Cluster"}, False),
        ({"scope": "Namespaced"}, True),
    ],
)
async def test_rules_select_requests(
    api_server: ApiServer, client: Client, hooks: Hooks, change: dict[str, Any], expected: bool
) -> None:
    found = hooks.webhook("check")
    found["rules"][0] |= change
    register(api_server, "Validating", found)
    await client.resource(PLAIN).create(widget())
    assert bool(hooks.seen) is expected


async def test_webhook_gets_the_version_of_its_rule(api_server: ApiServer, client: Client, hooks: Hooks) -> None:
    register(api_server, "Mutating", hooks.webhook("default"))
    register(api_server, "Validating", hooks.webhook("exact", matchPolicy="Exact"))
    hooks.answers["/default"] = patch({"op": "add", "path": "/spec/size", "value": 3})
    made = await client.resource(OLD).create(widget())
    assert hooks.paths == ["/default"]
    sent = hooks.seen[0][1]
    assert (sent["object"]["apiVersion"], sent["resource"]["version"]) == ("example.com/v1", "v1")
    assert sent["requestResource"]["version"] == "v1beta1"
    assert made["spec"] == {"size": 3}


async def test_selectors_select_objects_and_namespaces(api_server: ApiServer, client: Client, hooks: Hooks) -> None:
    api_server.create("namespaces", {"metadata": {"name": "shop", "labels": {"checked": "yes"}}})
    wanted = {"matchLabels": {"checked": "yes"}}
    register(
        api_server,
        "Validating",
        hooks.webhook("namespaces", namespaceSelector=wanted),
        hooks.webhook("objects", objectSelector=wanted),
    )
    await client.resource(PLAIN).create(widget())
    assert hooks.paths == []
    await client.resource(PLAIN).create({"metadata": {"name": "a", "namespace": "shop"}})
    labelled = await client.resource(PLAIN).create({"metadata": {"name": "b", "namespace": "default", **_LABELS}})
    assert hooks.paths == ["/namespaces", "/objects"]
    await client.resource(PLAIN).edit(labelled, lambda each: evolve(each, "metadata.labels", None))
    assert hooks.paths == ["/namespaces", "/objects", "/objects"]


_LABELS = {"labels": {"checked": "yes"}}


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
@pytest.mark.parametrize("failure", [500, {"uid": "another"}, {"allowed": "yes"}, {"patch": "W10="}])
async def test_failure_policy_decides_about_failures(
    api_server: ApiServer, client: Client, hooks: Hooks, policy: str, failure: Any
) -> None:
    register(api_server, "Validating", hooks.webhook("check", failurePolicy=policy))
    hooks.answers["/check"] = failure
    if policy == "Ignore":
        await client.resource(PLAIN).create(widget())
        return
    with pytest.raises(ApiError, match=r'failed calling webhook "check\.example\.com"') as caught:
        await client.with_options(retry=False).resource(PLAIN).create(widget())
    assert (caught.value.status, caught.value.reason) == (500, "InternalError")


async def test_server_waits_as_long_as_the_webhook_says(api_server: ApiServer, client: Client, hooks: Hooks) -> None:
    async def hang(sent: Any) -> int:
        await asyncio.sleep(30)
        return 500

    register(api_server, "Validating", hooks.webhook("check", timeoutSeconds=1))
    hooks.answers["/check"] = hang
    with pytest.raises(ApiError, match=r"no answer from .* within 1 s"):
        await client.with_options(retry=False).resource(PLAIN).create(widget())


async def test_dry_run_needs_webhooks_without_side_effects(api_server: ApiServer, client: Client, hooks: Hooks) -> None:
    register(api_server, "Validating", hooks.webhook("none"), name="a")
    dry = client.with_options(dry_run=True).resource(PLAIN)
    await dry.create(widget())
    assert hooks.seen[0][1]["dryRun"] is True
    assert api_server.list("widgets.example.com") == []
    register(api_server, "Validating", hooks.webhook("some", sideEffects="Some"), name="b")
    with pytest.raises(ApiError, match=r'webhook "some\.example\.com" does not support dry run'):
        await dry.create(widget())
    await client.resource(PLAIN).create(widget())


async def test_update_is_reviewed_again_if_the_object_changed(
    api_server: ApiServer, client: Client, hooks: Hooks
) -> None:
    made = await client.resource(PLAIN).create(widget(size=1))
    register(api_server, "Validating", hooks.webhook("check"))

    async def change(sent: Any) -> dict[str, Any]:
        if len(hooks.seen) == 1:
            live = api_server.get("widgets.example.com", "a", "default")
            api_server.update("widgets.example.com", {**live, "spec": {"size": 7}}, "default")
        return {}

    hooks.answers["/check"] = change
    await client.resource(PLAIN).patch("a", {"spec": {"colour": "red"}}, namespace="default")
    assert [each["object"]["spec"] for _, each in hooks.seen] == [
        {"size": 1, "colour": "red"},
        {"size": 7, "colour": "red"},
    ]
    assert made["spec"]["size"] == 1


async def test_match_conditions_are_not_evaluated(api_server: ApiServer, client: Client, hooks: Hooks) -> None:
    conditions = [{"name": "it", "expression": "true"}]
    register(api_server, "Validating", hooks.webhook("check", matchConditions=conditions))
    with pytest.raises(ApiError, match="does not evaluate matchConditions, which webhook check") as caught:
        await client.with_options(retry=False).resource(PLAIN).create(widget())
    assert caught.value.status == 501


async def test_manager_and_server_need_no_cluster() -> None:
    services: dict[str, str] = {}
    async with ApiServer(webhook_services=services) as server:
        server.create("customresourcedefinitions", definition())
        manager = Manager("it", client=server.url, webhooks=WebhookServer("it", port=0, host="127.0.0.1"))

        @manager.default(WIDGETS)
        async def fill(request: AdmissionRequest[Widget]) -> Widget:
            return evolve(request.object, "spec.owner", request.user.name)

        @manager.validate(WIDGETS, reads=[core_v1.CONFIG_MAPS])
        async def check(request: AdmissionRequest[Widget]) -> None:
            request.warn("this is an example")
            limit = len(request.lister(core_v1.CONFIG_MAPS).list())
            if request.object.spec.size > limit:
                raise Invalid({"spec.size": f"must not exceed {limit}"})

        for purpose, kind in (("default", "Mutating"), ("validate", "Validating")):
            path = f"/{purpose}/widgets.example.com"
            config = {"service": {"name": "it", "namespace": "default", "path": path}}
            server.create(
                f"{kind.lower()}webhookconfigurations",
                configuration(f"{kind}WebhookConfiguration", webhook(purpose, config), name="it.default"),
            )
        async with manager, asyncio.timeout(20):
            while not manager.ready():  # noqa: ASYNC110 - there is no event
                await asyncio.sleep(0.01)
            services["default/it"] = f"https://127.0.0.1:{manager.admission.port}"
            async with HttpTransport(server.url) as transport:
                client = Client(transport)
                with pytest.raises(Refused, match=r"spec\.size: must not exceed 0") as caught:
                    await client.resource(PLAIN).create(widget(size=1))
                assert list(caught.value.fields) == ["spec.size"]
                made = await client.resource(PLAIN).create(widget(size=0))
                assert made["spec"] == {"size": 0, "owner": "admin"}
