"""What an admission function gets of a request, and what the server reads of the answer."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from aioinformer import Resource, UsageError, evolve
from aioinformer.controller import Manager
from aioinformer.models import core_v1
from aioinformer.webhooks import AdmissionRequest, Denied
from tests.support.managers import Server
from tests.support.reviews import WIDGETS, Widget, patched, response, review, widget

VALIDATE, DEFAULT = "/validate/widgets.example.com", "/default/widgets.example.com"
WITH_STATUS: Resource[dict[str, Any]] = Resource(
    "example.com", "v1", "widgets", "Widget", subresources=("status",), decoder=dict
)
WITHOUT_STATUS: Resource[dict[str, Any]] = Resource("example.com", "v1", "widgets", "Widget", decoder=dict)


@pytest.fixture
def manager() -> Manager:
    return Manager("test", client=Server())


@pytest.mark.parametrize(
    ("others", "seen"),
    [
        ({}, ("create", "", "shop", "a", "ann", False)),
        ({"dryRun": None, "options": None}, ("create", "", "shop", "a", "ann", False)),
        ({"dryRun": True, "name": ""}, ("create", "", "shop", "", "ann", True)),
        ({"namespace": "", "userInfo": {}}, ("create", "", "", "a", "", False)),
        ({"subResource": "status", "operation": "UPDATE"}, ("update", "status", "shop", "a", "ann", False)),
        ({"options": {"fieldManager": "kubectl"}}, ("create", "", "shop", "a", "ann", False)),
    ],
)
async def test_function_gets_the_request(manager: Manager, others: dict[str, Any], seen: tuple[Any, ...]) -> None:
    requests: list[AdmissionRequest[Widget]] = []

    @manager.validate(WIDGETS, subresources=["", "status"])
    async def check(request: AdmissionRequest[Widget]) -> None:
        requests.append(request)

    async with manager:
        assert (await response(manager.admission, VALIDATE, review(widget(), **others)))["allowed"]
    [got] = requests
    assert (got.operation, got.subresource, got.namespace, got.name, got.user.name, got.dry_run) == seen
    assert got.resource is WIDGETS


@pytest.mark.parametrize(
    ("namespace", "name", "key"),
    [("shop", "a", "shop/a"), ("shop", "", "shop/<generated name>"), ("", "a", "a"), ("", "", "<generated name>")],
)
async def test_failure_names_the_object(
    manager: Manager, namespace: str, name: str, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    @manager.validate(WIDGETS)
    async def check(request: AdmissionRequest[Widget]) -> None:
        raise RuntimeError("no luck")

    async with manager:
        sent = review(widget(), namespace=namespace, name=name)
        status, text = await manager.admission.answer(VALIDATE, json.dumps(sent).encode())
    assert (status, text.decode()) == (500, f"validate of widgets.example.com {key} has failed: no luck\n")
    assert f"has failed for CREATE {key}: no luck" in caplog.text


async def test_default_may_warn_and_change(manager: Manager) -> None:
    @manager.default(WIDGETS)
    async def fill(request: AdmissionRequest[Widget]) -> Widget:
        request.warn("has no owner")
        return evolve(request.object, {"spec": {"owner": "ann"}})

    async with manager:
        sent = review(widget())
        found = await response(manager.admission, DEFAULT, sent)
    assert found["warnings"] == ["has no owner"]
    assert patched(sent, found)["spec"]["owner"] == "ann"


@pytest.mark.parametrize("refused", [True, False])
async def test_warnings_are_sent_with_each_decision(manager: Manager, refused: bool) -> None:
    @manager.validate(WIDGETS)
    async def check(request: AdmissionRequest[Widget]) -> None:
        request.warn("careful")
        if refused:
            raise Denied("is too large")

    async with manager:
        found = await response(manager.admission, VALIDATE, review(widget()))
    assert (found["allowed"], found["warnings"]) == (not refused, ["careful"])


@pytest.mark.parametrize(
    ("resource", "change", "reason"),
    [
        (WITHOUT_STATUS, {"status": {"phase": "New"}}, ""),
        (WITH_STATUS, {"status": {"phase": "New"}}, "another status"),
        (WITHOUT_STATUS, {"status": {"phase": "New"}, "kind": "Door"}, "another kind"),
        (WITHOUT_STATUS, {"metadata": {"namespace": "other"}}, "another metadata.namespace"),
        (WITHOUT_STATUS, {"metadata": {"uid": "2"}}, "another metadata.uid"),
        (WITHOUT_STATUS, {"metadata": {"generateName": "a-"}}, "another metadata.generateName"),
        (WITH_STATUS, {"metadata": {"labels": {"app": "web"}}}, ""),
    ],
)
async def test_default_changes_what_a_webhook_can_change(
    manager: Manager, resource: Resource[Any], change: dict[str, Any], reason: str
) -> None:
    @manager.default(resource)
    async def fill(request: AdmissionRequest[dict[str, Any]]) -> Any:
        return evolve(request.object, change)

    async with manager:
        sent = review(widget())
        status, body = await manager.admission.answer(DEFAULT, json.dumps(sent).encode())
    assert status == (500 if reason else 200)
    assert f"returned an object with {reason}, which a webhook cannot change" in body.decode() or not reason
    if not reason:
        given = sent["request"]["object"]
        expected = {**given, **change, "metadata": given["metadata"] | change.get("metadata", {})}
        assert patched(sent, json.loads(body)["response"]) == expected


@pytest.mark.parametrize(
    ("reason", "text", "causes"),
    [
        ("is too large", "is too large", [("", "is too large")]),
        ({"spec.size": "must not shrink"}, "spec.size: must not shrink", [("spec.size", "must not shrink")]),
        ({"spec.a": "x", "": "y"}, "spec.a: x, y", [("spec.a", "x"), ("", "y")]),
    ],
)
async def test_refusal_names_kind_fields_and_messages(
    manager: Manager, reason: Any, text: str, causes: list[tuple[str, str]]
) -> None:
    @manager.validate(core_v1.CONFIG_MAPS)
    async def check(request: AdmissionRequest[Any]) -> None:
        raise Denied(reason)

    async with manager:
        sent = review(widget(), resource={"group": "", "version": "v1", "resource": "configmaps"})
        found = (await response(manager.admission, "/validate/configmaps", sent))["status"]
    assert (found["code"], found["reason"]) == (422, "Invalid")
    assert found["message"] == f'ConfigMap "a" is invalid: {text}'
    assert (found["details"]["kind"], found["details"]["group"]) == ("ConfigMap", "")
    assert [(each["field"], each["message"]) for each in found["details"]["causes"]] == causes


@pytest.mark.parametrize("reason", ["", {}, {"spec.size": ""}, {"spec.size": "x", "": ""}])
def test_refusal_needs_a_message(reason: Any) -> None:
    with pytest.raises(UsageError, match="pass a text, or a message for each field"):
        Denied(reason)


@pytest.mark.parametrize(
    ("path", "version", "kind"),
    [
        (VALIDATE, "admission.k8s.io/v1", "an AdmissionReview"),
        ("/convert", "apiextensions.k8s.io/v1", "a ConversionReview"),
    ],
)
async def test_body_of_another_type_names_what_it_lacks(manager: Manager, path: str, version: str, kind: str) -> None:
    @manager.validate(WIDGETS)
    async def check(request: AdmissionRequest[Widget]) -> None: ...

    for given, said in (
        ({}, "no apiVersion and no kind"),
        ({"kind": kind.split()[1]}, f"no apiVersion {kind.split()[1]}"),
        ({"apiVersion": version}, f"{version} and no kind"),
        ({"apiVersion": version, "kind": "Pod"}, f"{version} Pod"),
    ):
        status, text = await manager.admission.answer(path, json.dumps(given).encode())
        assert (status, text.decode()) == (400, f"expected {kind} of {version}, not {said}\n")


async def test_review_that_is_cancelled_is_no_longer_under_way(manager: Manager) -> None:
    @manager.validate(WIDGETS)
    async def check(request: AdmissionRequest[Widget]) -> None:
        await asyncio.sleep(3600)

    async with manager:
        body = json.dumps(review(widget())).encode()
        asking = asyncio.create_task(manager.admission.answer(VALIDATE, body), name="review")
        await asyncio.sleep(1)
        [counters] = manager.admission.counters()
        assert counters.statistics().in_flight == 1
        asking.cancel()
        await asyncio.wait({asking})
        assert asking.cancelled()
        assert counters.statistics().in_flight == 0
