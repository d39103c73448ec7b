"""HTTP: representations, body sizes, compression, throttling, shutdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.real.contract.conversation import APPLY, JSON, MERGE_PATCH, PARTIAL, PARTIAL_LIST, TABLE, YAML
from tests.real.contract.tables import CONFIGMAPS, NAMESPACES, variants
from tests.real.contract.test_custom_resources import define, path, widget

if TYPE_CHECKING:
    from tests.real.contract.conversation import Conversation
    from tests.real.contract.servers import Operator


A = f"{CONFIGMAPS}/a"
LARGEST = 3 * 1024 * 1024


def of_size(size: int, text: str = '{"metadata":{"name":"a"},"x":"%s"}') -> bytes:
    """Return a body of a number of bytes."""
    return (text % ("x" * (size - len(text) + 2))).encode()


LARGE = {
    "json": ("POST", CONFIGMAPS, JSON),
    "update": ("PUT", A, JSON),
    "merge": ("PATCH", A, MERGE_PATCH),
    "apply": ("PATCH", f"{A}?fieldManager=m", APPLY),
    "deletion": ("DELETE", A, JSON),
}


@variants("request_", LARGE)
async def test_body_over_the_limit_is_413(api: Conversation, request_: tuple[str, str, str]) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    method, where, content_type = request_
    answer = await api(method, where, of_size(LARGEST + 1), content_type=content_type)
    assert answer.status in (200, 413)


async def test_custom_resources_share_the_body_limit(api: Conversation) -> None:
    where = await define(api)
    for size in (1_000_000, 3_200_000):
        body = widget(api, metadata={"name": f"w{size}"}, spec={"text": "x" * size})
        answer = await api("POST", path(api), body, shown=_without_spec)
        assert answer.status in (201, 413)
    await api("DELETE", where, recorded=False)


SHARDS = {
    "half": "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')",
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


def _without_spec(body: Any) -> Any:
    return {name: value for name, value in body.items() if name not in ("spec", "metadata")}


FORMS = {
    "nothing": "",
    "anything": "*/*",
    "json": JSON,
    "yaml": YAML,
    "text": "text/plain",
    "html-as-browsers": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "text-or-json": "text/plain,application/json",
    "table": TABLE,
    "table-beta": TABLE.replace("v=v1", "v=v1beta1"),
    "table-v2": TABLE.replace("v=v1", "v=v2"),
    "table-v2-or-json": f"{TABLE.replace('v=v1', 'v=v2')},application/json",
    "kubectl": f"{TABLE},{TABLE.replace('v=v1', 'v=v1beta1')},application/json",
    "metadata": PARTIAL,
    "metadata-list": PARTIAL_LIST,
    "metadata-list-or-json": f"{PARTIAL_LIST},application/json",
}
STREAM = {"stream": "application/json;stream=watch"}


@variants("accept", FORMS | STREAM)
@pytest.mark.parametrize("path", [A, CONFIGMAPS, f"{CONFIGMAPS}/missing"], ids=["object", "list", "missing"])
async def test_accept_header_selects_the_representation(api: Conversation, path: str, accept: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "v", "n": "1", "t": "true"}})
    answer = await api("GET", path, accept=accept)
    assert answer.status in (200, 404, 406)


@pytest.mark.parametrize("include", ["None", "Metadata", "Object", "", "none", "Other"])
@pytest.mark.parametrize("path", [A, CONFIGMAPS], ids=["object", "list"])
async def test_include_object_selects_the_row_object(api: Conversation, path: str, include: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    answer = await api("GET", f"{path}?includeObject={include}", accept=TABLE)
    assert answer.status in (200, 400)


@pytest.mark.parametrize("encoding", ["gzip", "gzip, deflate, br", "identity", "deflate", "*", "gzip;q=0"])
@pytest.mark.parametrize("size", [100, 120_000, 160_000], ids=["small", "medium", "large"])
async def test_large_responses_are_compressed_on_request(api: Conversation, size: int, encoding: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "x" * size}})
    for where in (A, CONFIGMAPS):
        answer = await api("GET", where, headers={"Accept-Encoding": encoding}, shown=lambda body: body["kind"])
        assert answer.status == 200
