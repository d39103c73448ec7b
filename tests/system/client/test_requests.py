"""Requests, their options and errors, lists, logs, watches and raw requests, mostly with scripted answers."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import re
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import pytest
from aiohttp import web

from aioinformer import AlreadyExists, ApiNotFound, Client, Conflict, HttpTransport, NotFound, UsageError
from aioinformer.client import Impersonation, Status
from aioinformer.errors import (
    DecodeError,
    Expired,
    Forbidden,
    Gone,
    OptionError,
    TransportError,
    UnknownOption,
    WriteOutcomeUnknown,
)
from tests.support.scripted_transport import OBJECT, Answer, Scripted, refusal, unreachable

if TYPE_CHECKING:
    from aioinformer.testing import ApiServer
    from tests.support.loopback import Server


def listed(*items: Any, **metadata: Any) -> Answer:
    return Answer(200, json.dumps({"kind": "ConfigMapList", "metadata": metadata, "items": items}).encode())


async def test_options_become_parameters_and_headers() -> None:
    transport = Scripted()
    who = Impersonation("ann", ("a", "b"), uid="7", extra={"Example.com/Why": ("x",)})
    client = Client(transport, field_manager="me", dry_run=True, field_validation="Strict", impersonate=who, timeout=9)
    await client.core.v1.configmaps.patch("shop/a", {"data": {}})
    (request,) = transport.requests
    assert (request.method, request.path) == ("PATCH", "/api/v1/namespaces/shop/configmaps/a")
    assert request.query == (("dryRun", "All"), ("fieldManager", "me"), ("fieldValidation", "Strict"))
    assert (request.body, request.total_timeout) == (b'{"data":{}}', 9)
    headers: Any = request.headers
    assert headers["Content-Type"] == "application/merge-patch+json"
    assert headers.getall("Impersonate-Group") == ["a", "b"]
    assert (headers["Impersonate-User"], headers["Impersonate-Uid"]) == ("ann", "7")
    assert headers["Impersonate-Extra-Example.com%2FWhy"] == "x"


async def test_option_of_a_call_replaces_that_of_the_client() -> None:
    transport = Scripted()
    config_maps = Client(transport, dry_run=True, impersonate="ann").core.v1.configmaps
    await config_maps.create(OBJECT, dry_run=False, impersonate=None)
    (request,) = transport.requests
    assert request.query == ()
    assert "Impersonate-User" not in request.headers


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"timeout": 0}, "timeout must be"),
        ({"field_validation": "strict"}, "field_validation must be"),
        ({"impersonate": Impersonation("")}, "must name a user"),
        ({"impersonate": 7}, "impersonate must be"),
        ({"namespace": "A b"}, "cannot be a namespace"),
    ],
)
def test_invalid_option_is_named(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        Client(Scripted(), **options)


async def test_delete_options_are_the_body() -> None:
    transport = Scripted()
    config_maps = Client(transport).core.v1.configmaps
    await config_maps.delete("shop/a")
    await config_maps.delete("shop/a", propagation="Orphan", grace=0, uid="u", resource_version="7", dry_run=True)
    plain, full = transport.requests
    assert (plain.method, plain.body) == ("DELETE", None)
    assert full.body is not None
    assert json.loads(full.body) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Orphan",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "dryRun": ["All"],
    }


async def test_list_continues_with_the_token() -> None:
    transport = Scripted(listed(OBJECT, resourceVersion="9", **{"continue": "next"}), listed(OBJECT))
    whole = await Client(transport).core.v1.configmaps.list("a=b", "x=y", page_size=1, resource_version="5")
    assert (len(whole), whole.resource_version) == (2, "9")
    selectors = (("labelSelector", "a=b"), ("fieldSelector", "x=y"))
    assert transport.requests[0].query == (*selectors, ("resourceVersion", "5"), ("limit", "1"))
    assert transport.requests[1].query == (*selectors, ("limit", "1"), ("continue", "next"))


async def test_whole_list_begins_again_when_its_token_expires() -> None:
    first = listed(OBJECT, resourceVersion="9", **{"continue": "next"})
    transport = Scripted(first, refusal(410, "Expired"), listed(OBJECT, OBJECT, resourceVersion="12"))
    whole = await Client(transport).core.v1.configmaps.list(page_size=1)
    assert (len(whole), whole.resource_version) == (2, "12")
    assert transport.requests[2].query == ()


async def test_limit_holds_for_a_server_that_ignores_it() -> None:
    transport = Scripted(listed(OBJECT, OBJECT, OBJECT, resourceVersion="9", **{"continue": "next"}))
    assert len(await Client(transport).core.v1.configmaps.list(limit=2, resource_version="0")) == 2
    assert len(transport.requests) == 1


async def test_expired_token_ends_an_iteration() -> None:
    first = listed(OBJECT, resourceVersion="9", **{"continue": "next"})
    listing = Client(Scripted(first, refusal(410, "Expired"))).core.v1.configmaps.list(page_size=1)
    with pytest.raises(Expired) as caught:
        [each async for each in listing]
    assert isinstance(caught.value, Gone)


async def test_left_loop_leaves_no_response_open() -> None:
    answer = listed(OBJECT, OBJECT, resourceVersion="9")
    async for _ in Client(Scripted(answer)).core.v1.configmaps.list():
        break
    assert answer.closed


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"metadata":7}', b""])
async def test_answer_that_is_no_object_is_a_decode_error(body: bytes) -> None:
    with pytest.raises(DecodeError):
        await Client(Scripted(Answer(200, body))).core.v1.configmaps.get("shop/a")


async def test_status_instead_of_deleted_objects_is_an_empty_list() -> None:
    status = Answer(200, b'{"kind":"Status","apiVersion":"v1","status":"Success"}')
    assert await Client(Scripted(status)).core.v1.configmaps.delete_collection(namespace="shop") == []


async def test_deleted_object_of_the_kind_status_is_no_status() -> None:
    custom = b'{"kind":"Status","apiVersion":"example.com/v1","metadata":{"name":"a"}}'
    answer = await Client(Scripted(Answer(200, custom))).core.v1.namespaces.delete("a")
    assert not isinstance(answer, Status)


async def test_each_warning_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    warning = {"Warning": r'299 - "unknown field \"spec.x\""'}
    client = Client(Scripted(Answer(headers=warning), Answer(headers=warning)))
    with caplog.at_level(logging.WARNING, "aioinformer.client"):
        await client.core.v1.configmaps.create(OBJECT)
        await client.core.v1.configmaps.create(OBJECT)
    assert [record.getMessage() for record in caplog.records] == ['the server warns: unknown field "spec.x"']


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("", "does not name an object"),
        ("a/b/c", "does not name an object"),
        ("/a", "does not name an object"),
        ({"metadata": {}}, "no metadata.name"),
        (7, "has no metadata"),
    ],
)
async def test_invalid_target_is_refused(target: Any, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        await Client(Scripted()).core.v1.configmaps.get(target)


@pytest.mark.parametrize("body", [7, "a", [OBJECT], object(), None])
async def test_body_that_is_no_object_is_refused(body: Any) -> None:
    transport = Scripted()
    with pytest.raises(UsageError):
        await Client(transport, namespace="shop").core.v1.configmaps.create(body)
    assert transport.requests == []


def test_errors_survive_pickling() -> None:
    error = Conflict(409, "Conflict", "changed")
    error.details = {"name": "a"}
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.status, again.details) == (Conflict, str(error), 409, {"name": "a"})
    absent = pickle.loads(pickle.dumps(ApiNotFound(404, "NotFound", "gone")))
    assert isinstance(absent, NotFound)


# Logs.


def pods(*script: Answer) -> tuple[Any, Scripted]:
    transport = Scripted(*script)
    return Client(transport, namespace="shop").core.v1.pods, transport


async def test_log_is_cut_into_lines() -> None:
    client, _ = pods(Answer(200, b"one\ntw", b"o\n\nthr", b"ee \xc3", b"\xa4 \xff"))
    assert [line async for line in client.logs("a")] == ["one", "two", "", "three ä \ufffd"]


async def test_long_line_comes_in_pieces() -> None:
    client, _ = pods(Answer(200, *[b"x" * 2**19] * 5, b"\nend\n"))
    assert [len(line) async for line in client.logs("a")] == [2**20, 2**20, 2**19, 3]


async def test_options_of_a_log_become_parameters() -> None:
    client, transport = pods(Answer(200, b""), Answer(200, b""))
    options: dict[str, Any] = {"previous": True, "tail": 0, "timestamps": True, "limit_bytes": 9}
    assert [line async for line in client.logs("a", "main", since=90.4, **options)] == []
    assert [line async for line in client.logs("a", since=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))] == []
    first, second = transport.requests
    assert (first.path, dict(first.query)) == (
        "/api/v1/namespaces/shop/pods/a/log",
        {
            "container": "main",
            "previous": "true",
            "tailLines": "0",
            "timestamps": "true",
            "limitBytes": "9",
            "sinceSeconds": "90",
        },
    )
    assert second.query == (("sinceTime", "2026-01-02T03:04:05Z"),)


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"tail": -1}, "tail"), ({"since": 0}, "since"), ({"since": datetime(2026, 1, 2)}, "time zone")],
)
async def test_invalid_option_of_a_log_is_named(options: dict[str, Any], reason: str) -> None:
    client, _ = pods()
    with pytest.raises(OptionError, match=reason):
        [line async for line in client.logs("a", **options)]


async def test_only_pods_have_logs() -> None:
    with pytest.raises(UsageError, match=re.escape("v1/configmaps has no subresource 'log'")):
        [line async for line in Client(Scripted()).core.v1.configmaps.logs("shop/a")]  # type: ignore[misc]


async def test_cut_log_raises_after_its_lines() -> None:
    client, _ = pods(Answer(200, b"one\ntw", TransportError("cut")))
    logs = client.logs("a")
    assert await anext(logs) == "one"
    with pytest.raises(TransportError):
        await anext(logs)


class Following:
    """Sends the head of a log only with its first line, and then a line for each request of the reader."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.gone = asyncio.Event()

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await self.go_on.wait()
        await response.prepare(request)
        try:
            for line in (b"one\n", b"two\n"):
                await response.write(line)
            await asyncio.Event().wait()
        finally:
            self.gone.set()
        return response


async def test_followed_log_yields_lines_as_they_come_until_it_is_closed(server: Server) -> None:
    following = Following()
    server.answer = following
    async with HttpTransport(server.url, header_timeout=0.05) as transport:
        logs = Client(transport, timeout=0.05).core.v1.pods.logs("shop/a", follow=True)
        async with aclosing(logs):
            first = asyncio.ensure_future(anext(logs))
            await asyncio.sleep(0.2)  # longer than all timeouts
            assert not first.done()
            following.go_on.set()
            assert [await first, await anext(logs)] == ["one", "two"]
        await following.gone.wait()
    assert server.requests[0].query_string == "follow=true"


@pytest.mark.parametrize("match", ["Exact", "NotOlderThan"])
async def test_list_whose_token_expired_keeps_its_version(match: str) -> None:
    transport = Scripted(listed(OBJECT, **{"continue": "t"}), refusal(410, "Expired"), listed(OBJECT))
    config_maps = Client(transport).core.v1.configmaps
    await config_maps.list(resource_version="7", resource_version_match=match, page_size=1)
    asked = {("resourceVersion", "7"), ("resourceVersionMatch", match)}
    assert set(transport.requests[2].query) == asked
    transport = Scripted(listed(OBJECT, **{"continue": "t"}), refusal(410, "Expired"), refusal(410, "Expired"))
    with pytest.raises(Expired):
        await Client(transport).core.v1.configmaps.list(resource_version="7", resource_version_match=match, page_size=1)


async def test_list_whose_token_expired_keeps_its_selectors_and_limit() -> None:
    whole = listed(OBJECT, OBJECT, OBJECT, resourceVersion="12")
    transport = Scripted(listed(OBJECT, **{"continue": "t"}), refusal(410, "Expired"), whole)
    found = await Client(transport).core.v1.configmaps.list("a=b", "x=y", page_size=1, limit=2)
    assert (len(found), found.resource_version) == (2, "12")
    assert transport.requests[2].query == (("labelSelector", "a=b"), ("fieldSelector", "x=y"))


@pytest.mark.parametrize("reason", ["", "Conflict", "SomethingNew"])
async def test_409_with_any_other_reason_is_a_conflict(reason: str) -> None:
    with pytest.raises(Conflict) as caught:
        await Client(Scripted(refusal(409, reason))).core.v1.configmaps.create(OBJECT)
    assert caught.value.conflicts == ()
    with pytest.raises(AlreadyExists):
        await Client(Scripted(refusal(409, "AlreadyExists"))).core.v1.configmaps.create(OBJECT)


async def test_conflict_has_fields_and_managers() -> None:
    causes = [
        {"reason": "FieldManagerConflict", "message": text, "field": field}
        for text, field in (
            ('conflict with "kubectl" using apps/v1 at 2026-01-01T00:00:00Z', ".spec.replicas"),
            ('conflict with "a \\"b\\"" with subresource "status" using v1', ".status"),
            ("another text", ""),
        )
    ]
    with pytest.raises(Conflict) as caught:
        await Client(Scripted(refusal(409, "Conflict", causes=causes))).core.v1.configmaps.create(OBJECT)
    found = [(each.field, each.manager) for each in caught.value.conflicts]
    assert found == [(".spec.replicas", "kubectl"), (".status", 'a "b"'), ("", "")]
    assert caught.value.conflicts[2].message == "another text"


def of(transport: Scripted, **options: Any) -> Client:
    return Client(cast("Any", transport), namespace="shop", **options)


# get_or_none


async def test_404_that_does_not_name_the_object_is_raised() -> None:
    with pytest.raises(ApiNotFound):
        await of(Scripted(refusal(404, "NotFound", name="other"))).core.v1.configmaps.get_or_none("a")


async def test_other_errors_of_get_or_none_are_raised() -> None:
    with pytest.raises(Forbidden):
        await of(Scripted(refusal(403, "Forbidden"))).core.v1.configmaps.get_or_none("a")
    with pytest.raises(UnknownOption, match="no option 'timout'"):
        await of(Scripted()).core.v1.configmaps.get_or_none("a", timout=3)  # type: ignore[call-arg]


# watch


async def test_watch_sends_one_request() -> None:
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


@pytest.mark.parametrize("body", [None, {"propagationPolicy": "Background"}, b"{}"])
async def test_raw_deletion_in_a_dry_run_deletes_nothing(client: Client, own_server: ApiServer, body: Any) -> None:
    await client.core.v1.configmaps.create({"metadata": {"name": "a"}})
    deletion = client.request("DELETE", "/api/v1/namespaces/shop/configmaps/a", body=body, dry_run=True)
    if isinstance(body, bytes):
        with pytest.raises(UsageError, match="must be a mapping"):
            await deletion
    else:
        await deletion
    assert own_server.get("configmaps", "a", "shop")


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
