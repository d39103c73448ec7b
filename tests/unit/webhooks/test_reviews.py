"""Admission functions: what they get, and what becomes of what they return and raise."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from aioinformer import Resource, UsageError, evolve
from aioinformer.authorization import User
from aioinformer.controller import Manager, Request
from aioinformer.errors import OptionError, Stale
from aioinformer.models import apps_v1, core_v1
from aioinformer.prometheus import PrometheusMetrics
from aioinformer.serving import WebRequest
from aioinformer.webhooks import AdmissionRequest, Denied
from tests.support.limits import measure_ages
from tests.support.managers import CONFIG_MAPS, Server, config_map
from tests.support.reviews import WIDGETS, Spec, Widget, patched, response, review, widget


class Required(msgspec.Struct):
    spec: Spec


VALIDATE, DEFAULT = "/validate/widgets.example.com", "/default/widgets.example.com"


@pytest.fixture
async def manager() -> Any:
    """Return a manager; `running` starts it."""
    server = Server()
    server.put("configmaps", config_map("limits", "shop", most="5"))
    return Manager("test", client=server)


async def test_function_gets_typed_objects_user_and_operation(manager: Manager) -> None:
    seen: list[AdmissionRequest[Widget]] = []

    @manager.validate(WIDGETS)
    async def check(request: AdmissionRequest[Widget]) -> None:
        seen.append(request)

    async with manager:
        sent = review(widget(size=2), widget(size=1), dryRun=True)
        assert await response(manager.admission, VALIDATE, sent) == {"uid": "705ab4f5", "allowed": True}
    [request] = seen
    assert (request.object.spec, request.old and request.old.spec) == (Spec(size=2), Spec(size=1))
    assert request.user == User("ann", "7", ("dev",), {"scopes": ("a",)})
    assert (request.operation, request.namespace, request.name, request.dry_run) == ("update", "shop", "a", True)


async def test_invalid_refuses_with_status_422_and_causes(manager: Manager) -> None:
    @manager.validate(WIDGETS)
    async def check(request: AdmissionRequest[Widget]) -> None:
        request.warn("sizes will be limited")
        raise Denied({"spec.size": "must not shrink", "spec.owner": "is missing"})

    async with manager:
        found = await response(manager.admission, VALIDATE, review(widget(size=2)))
    assert found["allowed"] is False
    assert found["warnings"] == ["sizes will be limited"]
    assert (found["status"]["code"], found["status"]["reason"]) == (422, "Invalid")
    expected = 'Widget.example.com "a" is invalid: spec.size: must not shrink, spec.owner: is missing'
    assert found["status"]["message"] == expected
    cause = {"reason": "FieldValueInvalid", "message": "must not shrink", "field": "spec.size"}
    assert found["status"]["details"]["causes"][0] == cause


@pytest.mark.behaviour("C-130")
async def test_default_becomes_a_patch_that_keeps_what_the_class_lacks(manager: Manager) -> None:
    @manager.default(WIDGETS)
    async def fill(request: AdmissionRequest[Widget]) -> Widget:
        return evolve(request.object, {"spec": {"owner": request.user.name}, "metadata": {"labels": {"a/b": "~"}}})

    async with manager:
        sent = review(widget(colour="red"))
        found = await response(manager.admission, DEFAULT, sent)
        bare = review(widget())
        del bare["request"]["object"]["spec"]
        whole = patched(bare, await response(manager.admission, DEFAULT, bare))
    expected = widget(colour="red", owner="ann")
    expected["metadata"]["labels"] = {"a/b": "~"}
    assert patched(sent, found) == expected
    assert whole["spec"] == {"size": 1, "owner": "ann"}


@pytest.mark.behaviour("C-130")
async def test_default_changes_an_object_whose_name_the_server_generates(manager: Manager) -> None:
    @manager.default(core_v1.CONFIG_MAPS)
    async def fill(request: AdmissionRequest[core_v1.ConfigMap]) -> core_v1.ConfigMap:
        return evolve(request.object, "data.owner", request.user.name)

    nameless = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-", "namespace": "shop"}}
    async with manager:
        sent = review(nameless, resource={"group": "", "version": "v1", "resource": "configmaps"})
        found = await response(manager.admission, "default/configmaps", sent)
    assert patched(sent, found) == {**nameless, "data": {"owner": "ann"}}


async def test_unchanged_object_has_no_patch(manager: Manager) -> None:
    @manager.default(WIDGETS)
    async def fill(request: AdmissionRequest[Widget]) -> Widget:
        return request.object

    async with manager:
        found = await response(manager.admission, DEFAULT, review(widget()))
    assert found == {"uid": "705ab4f5", "allowed": True}


@pytest.mark.behaviour("C-130")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"metadata": {"name": "b"}}, "metadata.name"),
        ({"apiVersion": "example.com/v2"}, "apiVersion"),
        (None, "returned None"),
    ],
)
async def test_default_must_return_the_same_object(manager: Manager, change: Any, reason: str) -> None:
    @manager.default(WIDGETS)
    async def fill(request: AdmissionRequest[Widget]) -> Any:
        return change and evolve(request.object, change)

    async with manager:
        status, body = await manager.admission.answer(DEFAULT, json.dumps(review(widget())).encode())
    assert status == 500
    assert reason in body.decode()


async def test_functions_run_for_their_operations_only(manager: Manager) -> None:
    names: list[str] = []

    @manager.validate(WIDGETS, operations=["delete"])
    async def on_delete(request: AdmissionRequest[Widget]) -> None:
        names.append(f"{request.operation} {request.object.spec.size}")

    @manager.validate(WIDGETS, operations=["create"])
    async def on_create(request: AdmissionRequest[Widget]) -> None:
        names.append(f"{request.operation} {request.old}")

    async with manager:
        for sent in (review(None, widget(size=3)), review(widget()), review(widget(), widget())):
            assert (await response(manager.admission, VALIDATE, sent))["allowed"]
    assert names == ["delete 3", "create None"]


@pytest.mark.behaviour("C-131")
async def test_two_functions_for_one_operation_are_named(manager: Manager) -> None:
    async def first(request: AdmissionRequest[Widget]) -> None: ...
    async def second(request: AdmissionRequest[Widget]) -> None: ...

    manager.validate(WIDGETS)(first)
    with pytest.raises(UsageError, match=r"update has two functions: .*first at .*second at"):
        manager.validate(WIDGETS, operations=["update", "delete"])(second)


@pytest.mark.behaviour("C-131")
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "no AdmissionReview"),
        (b"[]", "no AdmissionReview"),
        (b"\xff\xfe", "no AdmissionReview"),
        (b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}', "no AdmissionReview"),
        (b'{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"}', "not admission.k8s.io/v1beta1"),
        (b'{"apiVersion": "v1", "kind": "Pod"}', "not v1 Pod"),
    ],
)
async def test_review_that_cannot_be_read_is_a_bad_request(manager: Manager, body: bytes, reason: str) -> None:
    async def check(request: AdmissionRequest[Widget]) -> None: ...

    manager.validate(WIDGETS)(check)
    status, text = await manager.admission.answer(VALIDATE, body)
    assert status == 400
    assert reason in text.decode()


@pytest.mark.behaviour("C-131")
async def test_review_of_another_resource_is_a_bad_request(manager: Manager) -> None:
    async def check(request: AdmissionRequest[Widget]) -> None: ...

    manager.validate(WIDGETS)(check)
    sent = review(widget(), resource={"group": "example.com", "version": "v2", "resource": "widgets"})
    status, text = await manager.admission.answer(VALIDATE, json.dumps(sent).encode())
    assert (status, b"expects example.com/v1/widgets" in text) == (400, True)
    assert (await manager.admission.answer("/validate/others", b""))[0] == 404


@pytest.mark.behaviour("C-128")
async def test_error_in_a_function_is_logged_with_the_key(manager: Manager, caplog: pytest.LogCaptureFixture) -> None:
    @manager.validate(WIDGETS)
    async def check(request: AdmissionRequest[Widget]) -> None:
        raise RuntimeError("no luck")

    async with manager:
        status, text = await manager.admission.answer(VALIDATE, json.dumps(review(widget())).encode())
    assert (status, b"no luck" in text) == (500, True)
    assert "has failed for CREATE shop/a: no luck" in caplog.text


@pytest.mark.behaviour("C-128")
async def test_function_ends_before_the_server_stops_to_wait(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    @manager.validate(WIDGETS)
    async def check(request: AdmissionRequest[Widget]) -> None:
        await asyncio.sleep(3600)

    clock = asyncio.get_running_loop().time
    async with manager:
        for timeout, limit in (("2s", 1.5), ("0.5s", 0.25), ("", 9.5)):
            began = clock()
            answer = await manager.admission.answer(VALIDATE, json.dumps(review(widget())).encode(), timeout)
            assert answer[0] == 500
            assert clock() - began == pytest.approx(limit)
    assert "no answer in 2 s" in caplog.text


@pytest.mark.behaviour("C-131")
async def test_object_that_the_class_refuses_is_invalid(manager: Manager) -> None:
    async def check(request: AdmissionRequest[Widget]) -> None:
        assert request.operation == "update"
        assert request.object.spec.size == 1  # the stored one may be what the update repairs

    manager.validate(WIDGETS)(check)
    async with manager:
        found = await response(manager.admission, VALIDATE, review(widget(size="big")))
        assert (found["allowed"], found["status"]["code"]) == (False, 422)
        reason = "the class refuses it: Expected `int`, got `str`"
        assert found["status"]["message"] == f'Widget.example.com "a" is invalid: spec.size: {reason}'
        cause = {"reason": "FieldValueInvalid", "message": reason, "field": "spec.size"}
        assert found["status"]["details"]["causes"] == [cause]
        assert (await response(manager.admission, VALIDATE, review(widget(), widget(size="big"))))["allowed"]


@pytest.mark.behaviour("C-131")
@pytest.mark.parametrize(("reads", "allowed"), [(False, True), (True, False)])
async def test_delete_of_an_object_that_the_class_refuses(manager: Manager, reads: bool, allowed: bool) -> None:
    @manager.validate(WIDGETS, operations=["delete"])
    async def check(request: AdmissionRequest[Widget]) -> None:
        assert not reads or request.old is request.object

    async with manager:
        found = await response(manager.admission, VALIDATE, review(None, widget(size="big")))
    assert found["allowed"] is allowed
    if not allowed:
        assert found["status"]["details"]["causes"][0]["field"] == "spec.size"


async def test_warning_is_one_line(manager: Manager) -> None:
    @manager.validate(WIDGETS)
    async def check(request: AdmissionRequest[Widget]) -> None:
        request.warn("two\r\nlines\tand a bell \x07")

    async with manager:
        found = await response(manager.admission, VALIDATE, review(widget()))
    assert found["warnings"] == ["two lines and a bell  "]


async def test_own_writes_get_no_warnings(manager: Manager) -> None:
    @manager.controller(CONFIG_MAPS)
    async def maps(request: Request[Any]) -> None: ...

    @manager.validate(WIDGETS)
    async def check(request: AdmissionRequest[Widget]) -> None:
        request.warn("careful")

    async with manager:
        own: list[tuple[str, list[str]]] = [("maps", []), ("maps:created-0123", [])]
        others = [("kubectl", ["careful"]), ("maps-2", ["careful"]), ("maps-2:created-0123", ["careful"])]
        for name, expected in [*own, *others]:
            sent = review(widget(), options={"kind": "CreateOptions", "fieldManager": name})
            assert (await response(manager.admission, VALIDATE, sent)).get("warnings", []) == expected


@pytest.mark.behaviour("C-129")
async def test_functions_read_synced_caches_of_the_manager(manager: Manager) -> None:
    @manager.validate(WIDGETS, reads=[CONFIG_MAPS])
    async def check(request: AdmissionRequest[Widget]) -> None:
        limits = request.lister(CONFIG_MAPS).namespaced("shop").get("limits")
        if request.object.spec.size > int((limits.data or {})["most"]):
            raise Denied({"spec.size": "is too large"})

    status, text = await manager.admission.answer(VALIDATE, json.dumps(review(widget())).encode())
    assert (status, b"manager test does not run" in text) == (500, True)
    async with manager:
        assert not manager.ready()
        assert "webhooks: not ready" in str(manager.ready())
        assert not (await response(manager.admission, VALIDATE, review(widget(size=6))))["allowed"]
        assert (await response(manager.admission, VALIDATE, review(widget(size=5))))["allowed"]
        assert manager.ready()
    assert (await manager.admission.answer(VALIDATE, json.dumps(review(widget())).encode()))[0] == 500


@pytest.mark.behaviour("C-129")
async def test_objects_and_caches_of_controllers_do_not_decide_about_reviews(manager: Manager) -> None:
    small: Resource[Any] = Resource("", "v1", "configmaps", "ConfigMap", decoder=Required)

    @manager.controller(small)
    async def maps(request: Request[Any]) -> None: ...

    @manager.validate(WIDGETS)
    async def check(request: AdmissionRequest[Widget]) -> None: ...

    async with manager:
        await asyncio.sleep(5)
        ready = manager.ready()
        assert ready
        assert "cannot be decoded" in str(ready)
    assert not manager.ready()


@pytest.mark.behaviour("C-129")
async def test_function_asks_how_fresh_a_cache_is(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    measure_ages(monkeypatch, asyncio.get_running_loop().time)

    @manager.validate(WIDGETS, reads=[CONFIG_MAPS])
    async def check(request: AdmissionRequest[Widget]) -> None:
        try:
            request.lister(CONFIG_MAPS).fresh(within=30)
        except Stale as error:
            raise Denied(f"the limits are {error.age:.0f} s old; try again later") from error

    async with manager:
        assert (await response(manager.admission, VALIDATE, review(widget())))["allowed"]
        server: Any = manager.client
        server.refuse_reads = 503
        await asyncio.sleep(170)
        found = await response(manager.admission, VALIDATE, review(widget()))
        assert "s old; try again later" in found["status"]["message"]
        assert manager.ready()
        assert "cache v1/configmaps: not fresh" in str(manager.ready())


async def test_function_reads_only_what_it_declares(manager: Manager) -> None:
    @manager.validate(WIDGETS)
    async def check(request: AdmissionRequest[Widget]) -> None:
        request.lister(CONFIG_MAPS)

    async with manager:
        _, text = await manager.admission.answer(VALIDATE, json.dumps(review(widget())).encode())
        with pytest.raises(UsageError, match="before the start"):
            manager.validate(WIDGETS, operations=["delete"])(check)
    assert b"add v1/configmaps to reads" in text


def test_bad_declarations_name_the_argument() -> None:
    manager = Manager("test")

    async def check(request: AdmissionRequest[Widget]) -> None: ...

    with pytest.raises(OptionError, match="operations must be a list of create, update, not"):
        manager.default(WIDGETS, operations=["delete"])(check)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match='failure_policy must be "Fail" or "Ignore", not \'fail\''):
        manager.validate(WIDGETS, failure_policy="fail")(check)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="timeout must be a number of seconds from 1 to 30, not 31"):
        manager.validate(WIDGETS, timeout=31)(check)
    with pytest.raises(OptionError, match="colour is no option of validate"):
        manager.validate(WIDGETS, colour="red")(check)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="is not async"):
        manager.validate(WIDGETS)(lambda request: None)  # type: ignore[arg-type,return-value]
    with pytest.raises(UsageError, match="reads must be a list"):
        manager.validate(WIDGETS, reads="configmaps")(check)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="Denied: pass a text"):
        Denied({})
    assert isinstance(WIDGETS, Resource)


async def test_admission_is_an_asgi_application(manager: Manager) -> None:
    async def check(request: AdmissionRequest[Widget]) -> None: ...

    manager.validate(WIDGETS)(check)
    body = json.dumps(review(widget())).encode()
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": body[:10], "more_body": True},
        {"type": "http.request", "body": body[10:]},
    ]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async with manager:
        scope: dict[str, Any] = {"type": "http", "method": "POST", "headers": [], "query_string": b"timeout=5s"}
        scope |= {"path": "/mounted/validate/widgets.example.com", "root_path": "/mounted"}
        await manager.admission(scope, receive, send)
    assert (sent[0]["status"], sent[0]["headers"]) == (200, [(b"content-type", b"application/json")])
    assert json.loads(sent[1]["body"])["response"] == {"uid": "705ab4f5", "allowed": True}


async def test_scale_is_decoded_as_a_scale(manager: Manager) -> None:
    seen: list[Any] = []
    deployments = apps_v1.DEPLOYMENTS

    @manager.validate(deployments, subresources=["scale"], operations=["update"])
    async def check(request: AdmissionRequest[Any]) -> None:
        old: Any = request.old
        seen.append((request.subresource, request.object.spec.replicas, old.spec.replicas))
        if request.object.spec.replicas > 5:
            raise Denied({"spec.replicas": "must not exceed 5"})

    def scale(replicas: int) -> dict[str, Any]:
        metadata = {"name": "a", "namespace": "shop"}
        return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": {"replicas": replicas}}

    resource = {"group": "apps", "version": "v1", "resource": "deployments"}
    path = "/validate/deployments.apps"
    async with manager:
        for replicas, allowed in ((5, True), (6, False)):
            sent = review(scale(replicas), scale(2), resource=resource, subResource="scale")
            assert (await response(manager.admission, path, sent))["allowed"] is allowed
        status, text = await manager.admission.answer(
            path, json.dumps(review(widget(), widget(), resource=resource)).encode()
        )
    assert (status, b"decides about objects: declare subresources" in text) == (400, True)
    assert seen == [("scale", 5, 2), ("scale", 6, 2)]


@pytest.mark.behaviour("C-131")
def test_object_and_subresource_may_have_two_functions(manager: Manager) -> None:
    async def check(request: AdmissionRequest[Any]) -> None: ...

    manager.validate(apps_v1.DEPLOYMENTS)(check)
    manager.validate(apps_v1.DEPLOYMENTS, subresources=["scale", "status"])(check)
    with pytest.raises(UsageError, match=r"create of status has two functions"):
        manager.validate(apps_v1.DEPLOYMENTS, subresources=["status"])(check)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"subresources": "scale"}, "subresources must be a list of texts, not 'scale'"),
        ({"subresources": [1]}, "subresources must be a list of texts"),
        ({"subresources": []}, "subresources must be a list of texts"),
        ({"subresources": ["Scale"]}, "subresources must be a list of names such as"),
        ({"subresources": ["log"]}, "subresources must be of .*scale.*, which apps/v1/deployments has"),
        ({"match_policy": "exact"}, 'match_policy must be "Equivalent" or "Exact"'),
        ({"side_effects": "Some"}, 'side_effects must be "None" or "NoneOnDryRun"'),
        ({"namespace_selector": "team=a"}, "namespace_selector must be a label selector with matchLabels"),
        ({"object_selector": {"team": "a"}}, "object_selector must be a label selector with matchLabels"),
        ({"object_selector": {"matchLabels": {"a b": "c"}}}, "object_selector: label name 'a b'"),
        ({"namespace_selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "needs at least one value"),
        ({"match_conditions": ["true"]}, "match_conditions must be a mapping of names to CEL expressions"),
        ({"match_conditions": {"a": 1}}, "match_conditions must be a mapping of names to CEL expressions"),
        ({"match_conditions": {"a": " "}}, "match_conditions must be a mapping of names to CEL expressions"),
        ({"match_conditions": {"a b": "true"}}, "match_conditions: the name 'a b' must consist of"),
        ({"match_conditions": {f"n{at}": "true" for at in range(64)}}, "has 64 conditions; there may be 63"),
    ],
)
def test_options_that_the_api_refuses(options: Any, reason: str) -> None:
    async def check(request: AdmissionRequest[Any]) -> None: ...

    with pytest.raises(OptionError, match=reason):
        Manager("test").validate(apps_v1.DEPLOYMENTS, **options)(check)


async def test_reviews_are_counted_and_failures_shown() -> None:
    metrics = PrometheusMetrics(CollectorRegistry())
    manager = Manager("test", client=Server(), metrics=metrics)

    @manager.validate(WIDGETS)
    async def check(request: AdmissionRequest[Widget]) -> None:
        if request.object.spec.size == 2:
            raise Denied("no")
        if request.object.spec.size == 3:
            raise RuntimeError("no luck")
        if request.object.spec.size == 4:
            await asyncio.sleep(3600)

    def value(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(
            f"controller_runtime_webhook_{name}", {"manager": "test", "webhook": VALIDATE, **labels}
        )

    def problems() -> list[str]:
        return [each["text"] for each in manager.report()["problems"] if each["see"] == "webhook-fails"]

    async def ask(size: int) -> int:
        async def body() -> bytes:
            return json.dumps(review(widget(size=size))).encode()

        sent = WebRequest("POST", VALIDATE, query={"timeout": "2s"}, read=body)
        return (await manager.admission.respond(sent)).status

    async with manager:
        assert [value("requests_total", code=code) for code in ("200", "500")] == [0, 0]
        assert (value("panics_total"), value("requests_in_flight"), value("latency_seconds_count")) == (0, 0, 0)
        assert [await ask(size) for size in (1, 2, 3)] == [200, 200, 500]
        [text] = problems()
        assert text == f"The webhook {VALIDATE} failed its last review, 0 s ago; shop/a: no luck."
        slow = asyncio.create_task(ask(4))
        await asyncio.sleep(1)
        assert value("requests_in_flight") == 1
        assert await slow == 500
        assert [value("requests_total", code=code) for code in ("200", "500")] == [2, 2]
        assert (value("panics_total"), value("requests_in_flight"), value("latency_seconds_count")) == (1, 0, 4)
        assert "failed 2 times since its last decision" in problems()[0]
        assert await ask(1) == 200
        assert problems() == []
