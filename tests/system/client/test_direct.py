"""Requests without an informer: `get_or_none`, `watch` and raw requests."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

import pytest

from aioinformer import (
    ApiNotFound,
    Client,
    DecodeError,
    Expired,
    Forbidden,
    HttpTransport,
    OptionError,
    Resource,
    TransportError,
    UnknownOption,
    UsageError,
    WriteOutcomeUnknown,
)
from tests.support.scripted_transport import OBJECT, Answer, Scripted, refusal, unreachable

if TYPE_CHECKING:
    from aioinformer.testing import ApiServer


def named(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


def of(transport: Scripted, **options: Any) -> Client:
    return Client(cast("Any", transport), namespace="shop", **options)


# get_or_none


async def test_object_that_does_not_exist_is_none(client: Client) -> None:
    config_maps = client.core.v1.configmaps
    assert await config_maps.get_or_none("a") is None
    made = await config_maps.create(named("a"))
    assert await config_maps.get_or_none("shop/a") == made
    assert await config_maps.get_or_none(made) == made
    assert await client.apps.v1.deployments.scale.get_or_none("a") is None


async def test_404_that_does_not_name_the_object_is_raised(client: Client) -> None:
    widgets: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget")
    with pytest.raises(ApiNotFound):
        await client.resource(widgets).get_or_none("a")  # the server does not serve the resource
    with pytest.raises(ApiNotFound):
        await of(Scripted(refusal(404, "NotFound", name="other"))).core.v1.configmaps.get_or_none("a")


async def test_other_errors_of_get_or_none_are_raised() -> None:
    with pytest.raises(Forbidden):
        await of(Scripted(refusal(403, "Forbidden"))).core.v1.configmaps.get_or_none("a")
    with pytest.raises(UnknownOption, match="no option 'timout'"):
        await of(Scripted()).core.v1.configmaps.get_or_none("a", timout=3)  # type: ignore[call-arg]


# watch


async def test_watch_begins_with_the_objects_that_exist(client: Client) -> None:
    config_maps = client.core.v1.configmaps
    await config_maps.create(named("a", x="1"))
    seen: list[tuple[str, str, Any]] = []
    async with asyncio.timeout(10), aclosing(config_maps.watch()) as events:
        async for event in events:
            seen.append((event.type, event.object.metadata.name, event.object.data))
            if len(seen) == 1:
                await config_maps.patch("a", {"data": {"x": "2"}})
                await config_maps.delete("a")
            if event.type == "DELETED":
                break
    assert seen == [("ADDED", "a", {"x": "1"}), ("MODIFIED", "a", {"x": "2"}), ("DELETED", "a", {"x": "2"})]


async def test_watch_from_a_version_has_only_later_changes(client: Client) -> None:
    config_maps = client.core.v1.configmaps
    first = await config_maps.create(named("a"))
    await config_maps.create(named("b"))
    events = config_maps.watch(resource_version=first.metadata.resource_version or "", seconds=1)
    assert [event.object.metadata.name async for event in events] == ["b"]  # and then the server ends the watch


async def test_watch_selects_and_sends_one_request(client: Client) -> None:
    config_maps = client.core.v1.configmaps
    for name in ("a", "b"):
        await config_maps.create({"metadata": {"name": name, "labels": {"app": name}}})
    events = config_maps.watch({"app": "b"}, "metadata.name!=c", seconds=1)
    assert [event.object.metadata.name async for event in events] == ["b"]
    transport = Scripted(Answer(200, b""))
    assert [event async for event in of(transport).core.v1.configmaps.watch("app=b", seconds=7)] == []
    (request,) = transport.requests
    assert request.query == (("labelSelector", "app=b"), ("watch", "true"), ("timeoutSeconds", "7"))
    assert (request.stream, request.late_head, request.total_timeout) == (True, True, None)


async def test_watch_closes_its_response_when_you_stop() -> None:
    event = json.dumps({"type": "ADDED", "object": OBJECT}).encode() + b"\n"
    answer = Answer(200, event, event)
    async with aclosing(of(Scripted(answer)).core.v1.configmaps.watch()) as events:
        async for _ in events:
            break
    assert answer.closed


async def test_errors_of_a_watch_are_raised() -> None:
    gone = json.dumps({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}).encode()
    nameless = b'{"type":"ADDED","object":{"kind":"ConfigMap","metadata":{"name":"a"}}}\n'
    for answer, error in (
        (Answer(200, gone + b"\n"), Expired),
        (refusal(410, "Expired"), Expired),
        (Answer(200, nameless), DecodeError),
        (Answer(200, b'{"type":"LATER","object":{}}\n'), DecodeError),
        (Answer(200, b'{"type":'), TransportError),
    ):
        with pytest.raises(error):
            async for _ in of(Scripted(answer)).core.v1.configmaps.watch(resource_version="1"):
                pass


async def test_head_of_a_watch_is_repeated_and_limited() -> None:
    transport = Scripted(unreachable(), Answer(200, b""))
    assert [event async for event in of(transport).core.v1.configmaps.watch()] == []
    assert len(transport.requests) == 2
    with pytest.raises(TransportError, match=r"no answer within 0\.01 s"):
        await anext(of(Scripted(None)).core.v1.configmaps.watch(timeout=0.01))


# Raw requests


async def test_raw_request_has_the_credentials_and_errors_of_all_others(client: Client, own_server: ApiServer) -> None:
    answer = await client.request("GET", "/version")
    assert answer.status == 200
    assert "gitVersion" in answer.json()
    assert "gitVersion" not in repr(answer)
    path = "/api/v1/namespaces/shop/configmaps"
    made = await client.request("POST", path, body=named("a", x="1"))
    assert (made.status, made.json()["data"]) == (201, {"x": "1"})
    patched = await client.request(
        "PATCH", f"{path}/a", body=b'{"data":{}}', content_type="application/merge-patch+json"
    )
    assert patched.status == 200
    found = await client.request("GET", path, query={"labelSelector": "a in (b, c)"})
    assert found.json()["items"] == []
    with pytest.raises(ApiNotFound):
        await client.request("DELETE", f"{path}/other")
    async with HttpTransport(own_server.url) as anonymous:
        with pytest.raises(Forbidden):
            await Client(anonymous).request("GET", path)


async def test_raw_request_is_repeated_as_others_are() -> None:
    transport = Scripted(unreachable(unsent=False), Answer(200, b"ok"))
    answer = await of(transport).request("GET", "/healthz/")
    assert (answer.status, answer.body, len(transport.requests)) == (200, b"ok", 2)
    with pytest.raises(DecodeError):
        answer.json()
    transport = Scripted(unreachable(unsent=False))
    with pytest.raises(WriteOutcomeUnknown):
        await of(transport).request("POST", "/apis/x/v1/y")
    assert len(transport.requests) == 1


async def test_options_of_raw_requests_are_sent() -> None:
    transport = Scripted()
    client = of(transport, dry_run=True, field_manager="me", impersonate="ann")
    await client.request("POST", "/api/v1/a b", query={"x": "1 2"}, body={"a": 1}, accept="text/plain")
    await client.request("GET", "/")
    written, read = transport.requests
    assert (written.path, written.body) == ("/api/v1/a%20b", b'{"a":1}')
    assert written.query == (("x", "1 2"), ("dryRun", "All"), ("fieldManager", "me"))
    assert (written.headers["Impersonate-User"], written.headers["Accept"]) == ("ann", "text/plain")
    assert (read.path, read.query, read.body) == ("/", (), None)
    with pytest.raises(OptionError, match="method must be one of GET"):
        await client.request("get", "/version")
    with pytest.raises(UsageError, match=r"metadata\.name"):
        await client.request("POST", "/api/v1/pods", body={"metadata": {"name": ".."}})
    assert len(transport.requests) == 2
