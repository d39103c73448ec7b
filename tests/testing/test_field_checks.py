from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from aioinformer.testing import ApiServer
from tests.kubectl.objects import WIDGETS, pod, widget

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PODS = "/api/v1/namespaces/default/pods"
PATCH_TYPES = {"Content-Type": "application/merge-patch+json"}


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as running:
        running.create("customresourcedefinitions", WIDGETS)
        yield running


async def send(
    server: ApiServer, method: str, path: str, body: Any, **headers: str
) -> tuple[dict[str, Any], list[str]]:
    async with (
        aiohttp.ClientSession(server.url) as session,
        session.request(method, path, json=body, headers=headers) as answer,
    ):
        return await answer.json(), answer.headers.getall("Warning", [])


def mistaken() -> dict[str, Any]:
    obj = pod("p", foo=1)
    obj["spec"]["containers"][0]["env"] = [{"name": "E", "valu": "1"}]
    obj["spec"]["nodeSelector"] = {"any": "key"}
    return obj


async def test_a_client_that_does_not_say_is_warned_of_each_field(server: ApiServer) -> None:
    stored, warnings = await send(server, "POST", PODS, mistaken())

    assert warnings == [
        '299 - "unknown field \\"metadata.foo\\""',
        '299 - "unknown field \\"spec.containers[0].env[0].valu\\""',
    ]
    assert stored["spec"]["containers"][0]["env"] == [{"name": "E"}]
    assert stored["spec"]["nodeSelector"] == {"any": "key"}


async def test_a_strict_client_is_refused_with_all_fields_at_once(server: ApiServer) -> None:
    status, _ = await send(server, "POST", f"{PODS}?fieldValidation=Strict", mistaken())

    assert (status["code"], status["reason"]) == (400, "BadRequest")
    assert status["message"] == (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '
        'unknown field "metadata.foo", unknown field "spec.containers[0].env[0].valu"'
    )


async def test_a_client_that_does_not_care_hears_nothing(server: ApiServer) -> None:
    stored, warnings = await send(server, "POST", f"{PODS}?fieldValidation=Ignore", mistaken())

    assert warnings == []
    assert "foo" not in stored["metadata"]


async def test_another_directive_is_refused(server: ApiServer) -> None:
    status, _ = await send(server, "POST", f"{PODS}?fieldValidation=Loud", mistaken())

    assert status["message"] == (
        'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Loud": '
        'supported values: "", "Ignore", "Strict", "Warn"'
    )


async def test_a_patch_is_shown_with_what_is_unknown_in_it(server: ApiServer) -> None:
    server.create("pods", pod("p"))
    strategic = {"Content-Type": "application/strategic-merge-patch+json"}

    status, _ = await send(server, "PATCH", f"{PODS}/p?fieldValidation=Strict", {"spec": {"zoo": 1}}, **strategic)

    assert status["code"] == 422
    assert status["message"] == (
        ' "" is invalid: patch: Invalid value: "map[spec:map[zoo:1]]": strict decoding error: unknown field "spec.zoo"'
    )


async def test_custom_resources_are_pruned_to_their_schema(server: ApiServer) -> None:
    obj = widget("w", size=1, sise=2) | {"extra": {}, "status": {"kept": {"as": "it is"}}}

    path = "/apis/example.com/v1/namespaces/default/widgets"
    stored, warnings = await send(server, "POST", path, obj)

    assert stored["spec"] == {"size": 1}
    assert warnings == ['299 - "unknown field \\"extra\\""', '299 - "unknown field \\"spec.sise\\""']


async def test_what_a_schema_preserves_is_kept(server: ApiServer) -> None:
    server.create("widgets", widget("w"))
    path = "/apis/example.com/v1/namespaces/default/widgets/w/status"

    stored, warnings = await send(server, "PATCH", path, {"status": {"deep": {"down": [1]}}}, **PATCH_TYPES)

    assert (stored["status"], warnings) == ({"deep": {"down": [1]}}, [])


async def test_a_custom_resource_is_held_against_its_schema(server: ApiServer) -> None:
    path = "/apis/example.com/v1/namespaces/default/widgets"

    status, _ = await send(server, "POST", path, widget("w", size="big"))

    assert (status["code"], status["message"]) == (
        422,
        'Widget.example.com "w" is invalid: spec.size: Invalid value: "string": '
        'spec.size in body must be of type integer: "string"',
    )


async def test_what_was_wrong_before_does_not_stand_in_the_way_of_a_change(server: ApiServer) -> None:
    server.create("widgets", widget("w", size=1))
    narrower = server.get("customresourcedefinitions", "widgets.example.com")
    schema = narrower["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["size"]["minimum"] = 5
    server.update("customresourcedefinitions", narrower)

    changed = server.patch("widgets", "w", {"spec": {"colour": "red"}})

    assert changed["spec"] == {"size": 1, "colour": "red"}


async def test_from_python_the_same_fields_are_dropped(server: ApiServer) -> None:
    stored = server.create("widgets", widget("w", size=1, sise=2))

    assert stored["spec"] == {"size": 1}
