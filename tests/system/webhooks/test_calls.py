"""How the API server for tests calls webhooks: which, when, with what, and what their answers do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import ApiError, Client, HttpTransport, Resource, evolve
from aioinformer.controller import Manager
from aioinformer.errors import Forbidden, Invalid
from aioinformer.models import core_v1
from aioinformer.testing import ApiServer
from aioinformer.webhooks import AdmissionRequest, Denied, WebhookServer
from tests.support.reviews import WIDGETS, Widget
from tests.support.webhooks import Hooks, configuration, patch, webhook

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


@pytest.fixture
async def hooks() -> AsyncIterator[Hooks]:
    async with Hooks() as made:
        yield made


@pytest.fixture(autouse=True)
def _defined(api_server: ApiServer) -> None:
    api_server.create("customresourcedefinitions", definition())


def register(server: ApiServer, kind: str, *webhooks: dict[str, Any], name: str = "widgets") -> None:
    server.create(
        f"{kind.lower()}webhookconfigurations", configuration(f"{kind}WebhookConfiguration", *webhooks, name=name)
    )


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
    with pytest.raises(Invalid, match=r'admission webhook "check\.example\.com" denied the request: too big'):
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


SMALL = {"name": "small", "expression": "object.spec.size < 3"}
NO_STATUS = {"name": "whole", "expression": "!has(request.subResource)"}
DELETED = {"name": "deleted", "expression": "object == null && oldObject.spec.size == 1"}


@pytest.mark.parametrize(
    ("conditions", "size", "called"),
    [
        ([SMALL], 1, True),
        ([SMALL], 3, False),
        ([SMALL, NO_STATUS], 1, True),
        ([DELETED], 1, False),
        ([{"name": "missing", "expression": "object.spec.colour == 'red'"}, SMALL], 3, False),
        ([{"name": "user", "expression": "'system:masters' in request.userInfo.groups"}], 1, True),
        ([{"name": "kind", "expression": "request.kind.kind == 'Gadget' || request.dryRun"}], 1, False),
    ],
)
async def test_match_conditions_select_requests(
    api_server: ApiServer, client: Client, hooks: Hooks, conditions: Any, size: int, called: bool
) -> None:
    register(api_server, "Validating", hooks.webhook("check", matchConditions=conditions))
    await client.resource(PLAIN).create(widget(size=size))
    assert bool(hooks.seen) is called


async def test_match_conditions_see_deletions(api_server: ApiServer, client: Client, hooks: Hooks) -> None:
    await client.resource(PLAIN).create(widget(size=1))
    found = hooks.webhook("check", matchConditions=[DELETED])
    found["rules"][0]["operations"] = ["*"]
    register(api_server, "Validating", found)
    await client.resource(PLAIN).delete("a", namespace="default")
    assert hooks.paths == ["/check"]


async def test_failing_match_condition_obeys_failure_policy(
    api_server: ApiServer, client: Client, hooks: Hooks
) -> None:
    missing = [{"name": "missing", "expression": "object.spec.colour == 'red'"}]
    register(api_server, "Mutating", hooks.webhook("ignored", matchConditions=missing, failurePolicy="Ignore"))
    await client.resource(PLAIN).create(widget())
    register(api_server, "Validating", hooks.webhook("check", matchConditions=missing))
    with pytest.raises(Forbidden) as caught:
        await client.resource(PLAIN).create(widget("b"))
    expected = "expression 'object.spec.colour == 'red'' resulted in error: no such key: colour"
    assert caught.value.message == f'widgets.example.com "b" is forbidden: {expected}'
    assert hooks.seen == []


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("object.spec.size", "must evaluate to bool"),
        ("object.", "Syntax error"),
        ("request.color == ''", "undefined field 'color'"),
        ("self.spec.size > 1", "undeclared reference to 'self'"),
    ],
)
async def test_match_condition_that_does_not_compile_is_refused(
    client: Client, hooks: Hooks, expression: str, reason: str
) -> None:
    found = hooks.webhook("check", matchConditions=[{"name": "it", "expression": expression}])
    body = configuration("ValidatingWebhookConfiguration", found)
    with pytest.raises(Invalid, match=reason) as caught:
        await (await client.resource_for(body)).create(body)
    assert list(caught.value.fields) == ["webhooks[0].matchConditions[0].expression"]


async def test_unsupported_match_condition_is_named(api_server: ApiServer, client: Client, hooks: Hooks) -> None:
    conditions = [{"name": "it", "expression": "authorizer.group('').resource('pods').check('get').allowed()"}]
    register(api_server, "Validating", hooks.webhook("check", matchConditions=conditions))
    with pytest.raises(ApiError, match=r"cannot evaluate the condition .* of webhook check\.example\.com: authorizer"):
        await client.with_options(retry=False).resource(PLAIN).create(widget())


async def test_webhooks_are_invoked_again_if_needed(api_server: ApiServer, client: Client, hooks: Hooks) -> None:
    again = {"reinvocationPolicy": "IfNeeded"}
    for path, others in (("first", again), ("second", {}), ("third", again), ("fourth", again), ("fifth", {})):
        register(api_server, "Mutating", hooks.webhook(path, **others), name=f"{len(api_server.list(_MUTATING))}")
    hooks.answers["/second"] = patch({"op": "add", "path": "/spec/size", "value": 2})
    await client.resource(PLAIN).create(widget())
    assert hooks.paths == ["/first", "/second", "/third", "/fourth", "/fifth", "/first"]
    assert [each["object"]["spec"].get("size") for _, each in hooks.seen] == [None, None, 2, 2, 2, 2]

    async def count(sent: dict[str, Any]) -> dict[str, Any]:
        value = sent["object"]["spec"].get("count", 0) + 1
        return patch({"op": "add", "path": "/spec/count", "value": value})

    hooks.seen.clear()
    hooks.answers |= {"/first": count, "/second": {}, "/third": count}
    made = await client.resource(PLAIN).create(widget("b"))
    # The second call of the first one concerns those behind it, and no webhook is called three times.
    assert hooks.paths == ["/first", "/second", "/third", "/fourth", "/fifth", "/first", "/third", "/fourth"]
    assert made["spec"]["count"] == 4


_MUTATING = "mutatingwebhookconfigurations"


async def test_scale_is_reviewed(api_server: ApiServer, client: Client, hooks: Hooks) -> None:
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments/scale"], "operations": ["UPDATE"]}
    register(api_server, "Mutating", hooks.webhook("change", rules=[rule]))
    register(api_server, "Validating", hooks.webhook("check", rules=[rule]))
    body = {"metadata": {"name": "a", "namespace": "default"}, "spec": {"replicas": 1, **_DEPLOYED}}
    deployments = client.apps.v1.deployments
    made = await deployments.create(body)
    await deployments.patch(made, {"spec": {"replicas": 2}})
    assert hooks.seen == []
    hooks.answers["/change"] = patch({"op": "replace", "path": "/spec/replicas", "value": 5})
    scaled = await deployments.scale.patch("a", {"spec": {"replicas": 3}}, namespace="default")
    assert scaled.to_dict()["spec"]["replicas"] == 5
    assert api_server.get("deployments", "a", "default")["spec"]["replicas"] == 5
    first, second = (sent for _, sent in hooks.seen)
    assert (first["kind"]["kind"], first["resource"]["resource"], first["subResource"]) == (
        "Scale",
        "deployments",
        "scale",
    )
    assert [each[part]["spec"] for each in (first, second) for part in ("oldObject", "object")] == [
        {"replicas": 2},
        {"replicas": 3},
        {"replicas": 2},
        {"replicas": 5},
    ]
    hooks.answers["/check"] = {"allowed": False, "status": {"message": "no more"}}
    with pytest.raises(ApiError, match="denied the request: no more"):
        await deployments.scale.patch("a", {"spec": {"replicas": 7}}, namespace="default")
    assert api_server.get("deployments", "a", "default")["spec"]["replicas"] == 5


_DEPLOYED = {
    "selector": {"matchLabels": {"app": "a"}},
    "template": {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "a", "image": "a"}]},
    },
}


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
                raise Denied({"spec.size": f"must not exceed {limit}"})

        for purpose, kind in (("default", "Mutating"), ("validate", "Validating")):
            path = f"/{purpose}/widgets.example.com"
            config = {"service": {"name": "it", "namespace": "default", "path": path}}
            server.create(
                f"{kind.lower()}webhookconfigurations",
                configuration(f"{kind}WebhookConfiguration", webhook(purpose, config), name="it.default"),
            )
        async with manager, asyncio.timeout(50):
            while not manager.ready():  # noqa: ASYNC110 - there is no event
                await asyncio.sleep(0.01)
            services["default/it"] = f"https://127.0.0.1:{manager.admission.port}"
            async with HttpTransport(server.url) as transport:
                client = Client(transport)
                with pytest.raises(Invalid, match=r"spec\.size: must not exceed 0") as caught:
                    await client.resource(PLAIN).create(widget(size=1))
                assert list(caught.value.fields) == ["spec.size"]
                made = await client.resource(PLAIN).create(widget(size=0))
                assert made["spec"] == {"size": 0, "owner": "admin"}
