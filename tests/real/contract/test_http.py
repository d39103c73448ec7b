"""HTTP: representations, body sizes, compression, throttling, shutdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real.contract.conversation import JSON, MERGE_PATCH, PARTIAL, PARTIAL_LIST, TABLE, YAML
from tests.real.contract.tables import CONFIGMAPS, NAMESPACES, variants

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
    "merge": ("PATCH", A, MERGE_PATCH),
}


@variants("request_", LARGE)
async def test_body_over_the_limit_is_413(api: Conversation, request_: tuple[str, str, str]) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    method, where, content_type = request_
    await api(method, where, of_size(LARGEST + 1), content_type=content_type)


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


FORMS = {
    "anything": "*/*",
    "json": JSON,
    "yaml": YAML,
    "table": TABLE,
    "kubectl": f"{TABLE},{TABLE.replace('v=v1', 'v=v1beta1')},application/json",
    "metadata": PARTIAL,
    "metadata-list": PARTIAL_LIST,
}


@variants("accept", FORMS)
@pytest.mark.parametrize("path", [A, CONFIGMAPS, f"{CONFIGMAPS}/missing"], ids=["object", "list", "missing"])
async def test_accept_header_selects_the_representation(api: Conversation, path: str, accept: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "v", "n": "1", "t": "true"}})
    await api("GET", path, accept=accept)


@pytest.mark.parametrize("encoding", ["gzip", "gzip, deflate, br", "identity"])
@pytest.mark.parametrize("size", [100, 160_000], ids=["small", "large"])
async def test_large_responses_are_compressed_on_request(api: Conversation, size: int, encoding: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"k": "x" * size}})
    for where in (A, CONFIGMAPS):
        answer = await api("GET", where, headers={"Accept-Encoding": encoding}, shown=lambda body: body["kind"])
        assert answer.status == 200
