"""HTTP: methods, paths, headers, body sizes, compression, throttling, shutdown."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import APPLY, JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC, TABLE, YAML
from tests.real.contract.paths import CONFIGMAPS, NAMESPACES
from tests.real.contract.tables import variants
from tests.real.contract.test_custom_resources import define, path, widget

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation
    from tests.real.contract.operators import Operator

A = f"{CONFIGMAPS}/a"
LARGEST = 3 * 1024 * 1024


def of_size(size: int, text: str = '{"metadata":{"name":"a"},"x":"%s"}') -> bytes:
    """Return a body of a number of bytes."""
    return (text % ("x" * (size - len(text) + 2))).encode()


LARGE = {
    "json": ("POST", CONFIGMAPS, JSON),
    "yaml": ("POST", CONFIGMAPS, YAML),
    "protobuf": ("POST", CONFIGMAPS, "application/vnd.kubernetes.protobuf"),
    "update": ("PUT", A, JSON),
    "merge": ("PATCH", A, MERGE_PATCH),
    "strategic": ("PATCH", A, STRATEGIC),
    "json-patch": ("PATCH", A, JSON_PATCH),
    "apply": ("PATCH", f"{A}?fieldManager=m", APPLY),
    "deletion": ("DELETE", A, JSON),
    "collection": ("DELETE", CONFIGMAPS, JSON),
    "status": ("PUT", "/api/v1/namespaces/{ns}/pods/a/status", JSON),
    "review": ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", JSON),
    "read": ("GET", A, JSON),
}


@variants("request_", LARGE)
async def test_body_over_the_limit_is_413(api: Conversation, request_: tuple[str, str, str]) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    method, where, content_type = request_
    answer = await api(method, where, of_size(LARGEST + 1), content_type=content_type)
    assert answer.status in (200, 413)


async def test_body_at_the_limit_is_read(api: Conversation) -> None:
    answer = await api("POST", f"{CONFIGMAPS}?fieldValidation=Strict", of_size(LARGEST))
    assert answer.status == 400


async def test_custom_resources_share_the_body_limit(api: Conversation) -> None:
    where = await define(api)
    for size in (1_000_000, 3_200_000):
        body = widget(api, metadata={"name": f"w{size}"}, spec={"text": "x" * size})
        answer = await api("POST", path(api), body, shown=_without_spec)
        assert answer.status in (201, 413)
    await api("DELETE", where, recorded=False)


async def test_long_selector_is_accepted(api: Conversation) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a", "labels": {"n": "v1"}}})
    selector = "n in (" + ",".join(f"v{number}" for number in range(6000)) + ")"
    api.variables["selector"] = selector
    answer = await api("GET", f"{CONFIGMAPS}?labelSelector={{selector}}")
    assert len(answer.body["items"]) == 1


async def test_long_header_is_accepted(api: Conversation) -> None:
    answer = await api("GET", CONFIGMAPS, headers={"X-Long": "x" * 100_000})
    assert answer.status == 200


METHODS = {
    "unknown": ("FOO", CONFIGMAPS),
    "lower-case": ("get", CONFIGMAPS),
    "trace": ("TRACE", CONFIGMAPS),
    "options": ("OPTIONS", A),
    "head": ("HEAD", A),
    "head-of-nothing": ("HEAD", f"{CONFIGMAPS}/missing"),
    "head-of-watch": ("HEAD", f"{CONFIGMAPS}?watch=true&timeoutSeconds=1"),
    "post-to-object": ("POST", A),
    "put-to-list": ("PUT", CONFIGMAPS),
    "patch-of-list": ("PATCH", CONFIGMAPS),
    "post-to-version": ("POST", "/version"),
    "delete-health": ("DELETE", "/readyz"),
}


@variants("request_", METHODS)
async def test_unsupported_methods_are_refused(api: Conversation, request_: tuple[str, str]) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await api(*request_)
    assert answer.status in (200, 400, 404, 405, 415)


PATHS = {
    "slash-behind-list": f"{CONFIGMAPS}/",
    "slash-behind-object": f"{A}/",
    "two-slashes": "//api/v1/namespaces/{ns}/configmaps/a",
    "two-slashes-within": "/api/v1/namespaces/{ns}//configmaps/a",
    "escaped-name": f"{CONFIGMAPS}/%61",
    "escaped-slash": f"{CONFIGMAPS}/a%2Fb",
    "upper-case": "/api/v1/namespaces/{ns}/ConfigMaps/a",
    "kind": "/api/v1/namespaces/{ns}/configmap/a",
    "no-version": "/api/namespaces/{ns}/configmaps",
    "other-version": "/api/v2/namespaces/{ns}/configmaps",
    "unknown-subresource": f"{A}/status",
    "too-long": f"{A}/status/more",
    "query-without-value": f"{A}?pretty",
    "query-twice": f"{CONFIGMAPS}?limit=1&limit=x",
    "semicolon": f"{CONFIGMAPS}?limit=1;continue=x",
    "fragment-escaped": f"{CONFIGMAPS}/%23",
    "space": f"{CONFIGMAPS}/a%20b",
    "unicode": f"{CONFIGMAPS}/%C3%A4",
}


@variants("where", PATHS)
async def test_unknown_paths_are_refused(api: Conversation, where: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await api("GET", where)
    assert answer.status in (200, 301, 400, 404, 405)


HEADERS: dict[str, dict[str, str]] = {
    "audit": {"Audit-Id": "my-own"},
    "etag": {"If-None-Match": "*"},
    "if-modified": {"If-Modified-Since": "Wed, 01 Jan 2031 00:00:00 GMT"},
    "range": {"Range": "bytes=0-10"},
    "cors": {"Origin": "https://example.com"},
    "no-agent": {"User-Agent": ""},
    "browser": {"User-Agent": "Mozilla/5.0"},
    "keep-alive": {"Connection": "keep-alive"},
    "close": {"Connection": "close"},
    "upgrade": {"Connection": "Upgrade", "Upgrade": "h2c"},
    "deflate": {"Accept-Encoding": "deflate, br"},
    "language": {"Accept-Language": "de"},
    "forwarded": {"X-Forwarded-For": "10.0.0.1", "X-Forwarded-Proto": "https"},
}


def _form(text: str) -> str:
    """Return the layout of an object without its values."""
    return re.sub(r'"[^"]*"', "_", text)


@variants("headers", HEADERS)
async def test_request_headers(api: Conversation, headers: dict[str, str]) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await api("GET", A, headers=headers, as_text=True, shown=_form)
    assert answer.status == 200


async def test_audit_id_is_returned(api: Conversation) -> None:
    answer = await api("GET", CONFIGMAPS, headers={"Audit-Id": "my-own"})
    assert answer.headers["Audit-Id"] == "my-own"


async def test_responses_have_date_and_length(api: Conversation) -> None:
    answer = await api("GET", CONFIGMAPS)
    assert answer.headers["Date"].endswith(" GMT")
    assert "Content-Length" in answer.headers


BODIES: dict[str, dict[str, str]] = {
    "compressed": {"Content-Encoding": "gzip"},
    "expected": {"Expect": "100-continue"},
    "unknown-type": {"Content-Type": "text/plain"},
}


@variants("headers", BODIES)
async def test_request_content_encodings(api: Conversation, headers: dict[str, str]) -> None:
    answer = await api("POST", CONFIGMAPS, {"metadata": {"name": "a"}}, headers=headers)
    assert answer.status in (201, 400, 415)


async def test_get_with_a_body(api: Conversation) -> None:
    answer = await api("GET", CONFIGMAPS, {"not": "read"})
    assert answer.status == 200


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
@pytest.mark.parametrize("accept", [JSON, TABLE], ids=["json", "table"])
async def test_watch_is_not_compressed(api: Conversation, accept: str, encoding: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "x" * 200_000}})
    where = f"{CONFIGMAPS}?watch=true&timeoutSeconds=1"
    answer = await api("GET", where, accept=accept, headers={"Accept-Encoding": encoding}, shown=type_of_first)
    assert "Content-Encoding" not in answer.headers


async def test_create_response_is_compressed(api: Conversation) -> None:
    body = {"metadata": {"name": "a"}, "data": {"k": "x" * 200_000}}
    answer = await api("POST", CONFIGMAPS, body, headers={"Accept-Encoding": "gzip"}, shown=lambda _: "")
    assert answer.headers["Content-Encoding"] == "gzip"


SHARDS = {
    "half": "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')",
    "nothing": "shardRange(object.metadata.uid, '0x0000000000000000', '0x0000000000000000')",
    "broken": "shardRange(",
}


@variants("selector", SHARDS)
async def test_shard_selector_is_ignored_by_default(api: Conversation, selector: str) -> None:
    api.variables["selector"] = selector
    for name in "abc":
        await api.create(CONFIGMAPS, {"metadata": {"name": name}})
    answer = await api("GET", f"{CONFIGMAPS}?shardSelector={{selector}}")
    await api.watch(f"{CONFIGMAPS}?watch=true&shardSelector={{selector}}", events=3)
    assert len(answer.body["items"]) == 3


async def test_too_many_requests_are_429(api: Conversation, operator: Operator) -> None:
    user = f"{api.namespace}-busy"
    async with operator.throttle(api, user):
        answer = await api("GET", NAMESPACES, user=user)
        await api("GET", f"{CONFIGMAPS}?watch=true", user=user)
        await api("POST", CONFIGMAPS, {"metadata": {"name": "a"}}, user=user)
    assert answer.status == 429


async def test_watch_ends_when_the_server_stops(api: Conversation, operator: Operator) -> None:
    made = await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    api.variables["v"] = made["metadata"]["resourceVersion"]
    async with api.open_watch(f"{CONFIGMAPS}?watch=true") as watching:
        await watching.read()
        await operator.restart()
        await watching.read_until(lambda event: False)
    answer = await api("GET", CONFIGMAPS)
    assert len(answer.body["items"]) == 1


def type_of_first(body: Any) -> Any:
    """Return the type of the first event of a watch; there are no others."""
    return (body if isinstance(body, dict) else json.loads(body.splitlines()[0]))["type"]


def _without_spec(body: Any) -> Any:
    return {name: value for name, value in body.items() if name not in ("spec", "metadata")}
