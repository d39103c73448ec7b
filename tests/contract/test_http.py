"""What HTTP itself brings along: methods, paths, headers, lengths, and a server that goes down or is too busy."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.paths import CONFIGMAPS, NAMESPACES
from tests.contract.tables import variants
from tests.contract.talk import APPLY, JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC, TABLE, YAML
from tests.contract.test_custom_resources import defined, path, widget

if TYPE_CHECKING:
    from tests.contract.operators import Operator
    from tests.contract.talk import Talk

A = f"{CONFIGMAPS}/a"
LARGEST = 3 * 1024 * 1024


def of_size(size: int, text: str = '{"metadata":{"name":"a"},"x":"%s"}') -> bytes:
    """A body of so many bytes."""
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
async def test_a_body_has_a_largest_size(talk: Talk, request_: tuple[str, str, str]) -> None:
    await talk.made(CONFIGMAPS, {"metadata": {"name": "a"}})
    method, where, content_type = request_
    answer = await talk(method, where, of_size(LARGEST + 1), content_type=content_type)
    assert answer.status in (200, 413)


async def test_a_body_of_the_largest_size_is_read(talk: Talk) -> None:
    answer = await talk("POST", f"{CONFIGMAPS}?fieldValidation=Strict", of_size(LARGEST))
    assert answer.status == 400


async def test_custom_resources_have_the_same_limit(talk: Talk) -> None:
    where = await defined(talk)
    for size in (1_000_000, 3_200_000):
        body = widget(talk, metadata={"name": f"w{size}"}, spec={"text": "x" * size})
        answer = await talk("POST", path(talk), body, shown=_without_spec)
        assert answer.status in (201, 413)
    await talk("DELETE", where, kept=False)


async def test_a_long_selector_is_read(talk: Talk) -> None:
    await talk.made(CONFIGMAPS, {"metadata": {"name": "a", "labels": {"n": "v1"}}})
    selector = "n in (" + ",".join(f"v{number}" for number in range(6000)) + ")"
    talk.words["selector"] = selector
    answer = await talk("GET", f"{CONFIGMAPS}?labelSelector={{selector}}")
    assert len(answer.body["items"]) == 1


async def test_a_long_header_is_read(talk: Talk) -> None:
    answer = await talk("GET", CONFIGMAPS, headers={"X-Long": "x" * 100_000})
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
async def test_methods_are_known_or_not(talk: Talk, request_: tuple[str, str]) -> None:
    await talk.made(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await talk(*request_)
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
async def test_paths_are_found_or_not(talk: Talk, where: str) -> None:
    await talk.made(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await talk("GET", where)
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
    """How an object is written, whatever its values are."""
    return re.sub(r'"[^"]*"', "_", text)


@variants("headers", HEADERS)
async def test_headers_change_what_they_may(talk: Talk, headers: dict[str, str]) -> None:
    await talk.made(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await talk("GET", A, headers=headers, as_text=True, shown=_form)
    assert answer.status == 200


async def test_an_audit_id_comes_back(talk: Talk) -> None:
    answer = await talk("GET", CONFIGMAPS, headers={"Audit-Id": "my-own"})
    assert answer.headers["Audit-Id"] == "my-own"


async def test_answers_have_a_date_and_a_length(talk: Talk) -> None:
    answer = await talk("GET", CONFIGMAPS)
    assert answer.headers["Date"].endswith(" GMT")
    assert "Content-Length" in answer.headers


BODIES: dict[str, dict[str, str]] = {
    "compressed": {"Content-Encoding": "gzip"},
    "expected": {"Expect": "100-continue"},
    "unknown-type": {"Content-Type": "text/plain"},
}


@variants("headers", BODIES)
async def test_a_body_is_sent_in_many_ways(talk: Talk, headers: dict[str, str]) -> None:
    answer = await talk("POST", CONFIGMAPS, {"metadata": {"name": "a"}}, headers=headers)
    assert answer.status in (201, 400, 415)


async def test_a_read_may_have_a_body(talk: Talk) -> None:
    answer = await talk("GET", CONFIGMAPS, {"not": "read"})
    assert answer.status == 200


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
@pytest.mark.parametrize("accept", [JSON, TABLE], ids=["json", "table"])
async def test_a_watch_is_not_compressed(talk: Talk, accept: str, encoding: str) -> None:
    await talk.made(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "x" * 200_000}})
    where = f"{CONFIGMAPS}?watch=true&timeoutSeconds=1"
    answer = await talk("GET", where, accept=accept, headers={"Accept-Encoding": encoding}, shown=type_of_first)
    assert "Content-Encoding" not in answer.headers


@pytest.mark.parametrize("accept", [YAML, TABLE], ids=["yaml", "table"])
async def test_other_forms_are_compressed_as_well(talk: Talk, accept: str) -> None:
    await talk.made(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "x" * 200_000}})
    where = f"{CONFIGMAPS}?includeObject=Object"
    headers = {"Accept-Encoding": "gzip"}
    answer = await talk("GET", where, accept=accept, headers=headers, as_text=True, shown=lambda text: text[:4])
    assert answer.headers["Content-Encoding"] == "gzip"


async def test_what_was_written_is_compressed_too(talk: Talk) -> None:
    body = {"metadata": {"name": "a"}, "data": {"k": "x" * 200_000}}
    answer = await talk("POST", CONFIGMAPS, body, headers={"Accept-Encoding": "gzip"}, shown=lambda _: "")
    assert answer.headers["Content-Encoding"] == "gzip"


CHECKS = {
    "livez": "/livez?verbose",
    "readyz": "/readyz?verbose",
    "healthz": "/healthz?verbose",
    "excluded": "/readyz?verbose&exclude=etcd",
    "excluded-twice": "/livez?verbose&exclude=etcd&exclude=ping",
    "excluded-unknown": "/livez?exclude=none",
    "etcd": "/livez/etcd",
    "informers": "/readyz/informer-sync",
    "shutdown": "/readyz/shutdown",
    "verbose-check": "/livez/ping?verbose",
}


@variants("where", CHECKS)
async def test_health_is_told_in_detail(talk: Talk, where: str) -> None:
    answer = await talk("GET", where)
    assert answer.status in (200, 404)


SHARDS = {
    "half": "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')",
    "nothing": "shardRange(object.metadata.uid, '0x0000000000000000', '0x0000000000000000')",
    "broken": "shardRange(",
}


@variants("selector", SHARDS)
async def test_shards_are_not_looked_at_by_default(talk: Talk, selector: str) -> None:
    talk.words["selector"] = selector
    for name in "abc":
        await talk.made(CONFIGMAPS, {"metadata": {"name": name}})
    answer = await talk("GET", f"{CONFIGMAPS}?shardSelector={{selector}}")
    await talk.watched(f"{CONFIGMAPS}?watch=true&shardSelector={{selector}}", events=3)
    assert len(answer.body["items"]) == 3


async def test_too_many_requests_are_refused(talk: Talk, operator: Operator) -> None:
    user = f"{talk.namespace}-busy"
    async with operator.throttle(talk, user):
        answer = await talk("GET", NAMESPACES, user=user)
        await talk("GET", f"{CONFIGMAPS}?watch=true", user=user)
        await talk("POST", CONFIGMAPS, {"metadata": {"name": "a"}}, user=user)
    assert answer.status == 429


async def test_a_watch_ends_with_its_server(talk: Talk, operator: Operator) -> None:
    made = await talk.made(CONFIGMAPS, {"metadata": {"name": "a"}})
    talk.words["v"] = made["metadata"]["resourceVersion"]
    async with talk.watching(f"{CONFIGMAPS}?watch=true") as watching:
        await watching.read()
        await operator.restart()
        await watching.read_until(lambda event: False)
    answer = await talk("GET", CONFIGMAPS)
    assert len(answer.body["items"]) == 1


def type_of_first(body: Any) -> Any:
    """Of the events of a watch the first one's type: there are no others."""
    return (body if isinstance(body, dict) else json.loads(body.splitlines()[0]))["type"]


def _without_spec(body: Any) -> Any:
    return {name: value for name, value in body.items() if name not in ("spec", "metadata")}
