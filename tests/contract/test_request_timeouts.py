"""The query parameter `timeout`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.contract.conversation import APPLY, JSON_PATCH, MERGE_PATCH, YAML
from tests.contract.paths import CONFIGMAPS
from tests.contract.tables import variants

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

A = f"{CONFIGMAPS}/a"
NEVER_HAPPENED = "999999999"

LENGTHS = {
    "none": "",
    "zero": "0",
    "zero-seconds": "0s",
    "negative": "-1s",
    "signed": "+1m",
    "many-units": "1h2m3.5s",
    "fraction": ".5m",
    "huge": "2540400h",
    "a-minute": "60s",
}
NO_LENGTHS = {
    "word": "soon",
    "number": "1",
    "negative-number": "-1",
    "sign": "-",
    "day": "1d",
    "space": "1s ",
    "point": ".s",
    "more-than-huge": "99999999999h",
    "quotes": '1"',
}
REQUESTS: dict[str, tuple[str, str, Any, str]] = {
    "list": ("GET", CONFIGMAPS, None, ""),
    "create": ("POST", CONFIGMAPS, {"metadata": {"name": "b"}}, "application/json"),
    "update": ("PUT", A, {"metadata": {"name": "a"}}, "application/json"),
    "merge-patch": ("PATCH", A, {"data": {"a": "b"}}, MERGE_PATCH),
    "json-patch": ("PATCH", A, [], JSON_PATCH),
    "apply": ("PATCH", A, {"metadata": {"name": "a"}}, APPLY),
    "delete": ("DELETE", A, None, ""),
    "deletecollection": ("DELETE", CONFIGMAPS, None, ""),
    "head": ("HEAD", A, None, ""),
    "scale": ("GET", "/apis/apps/v1/namespaces/{ns}/deployments/a/scale", None, ""),
    "review": ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {}}, "application/json"),
    "discovery": ("GET", "/apis", None, ""),
    "version": ("GET", "/version", None, ""),
    "health": ("GET", "/healthz", None, ""),
    "schema": ("GET", "/openapi/v3", None, ""),
    "unknown-path": ("GET", "/nope", None, ""),
    "unknown-resource": ("GET", "/api/v1/nope", None, ""),
}


@variants("said", LENGTHS)
async def test_valid_durations(api: Conversation, said: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await api("GET", f"{A}?timeout={quote(said)}")
    assert answer.status == 200


@variants("said", NO_LENGTHS)
async def test_invalid_durations_are_400(api: Conversation, said: str) -> None:
    answer = await api("GET", f"{A}?timeout={quote(said)}")
    assert answer.status == 400


@variants("request_", REQUESTS)
async def test_every_request_accepts_a_timeout(api: Conversation, request_: tuple[str, str, Any, str]) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    method, path, body, content_type = request_
    for said, status in (("soon", 400), ("-1s", None)):
        answer = await api(
            method,
            f"{path}?timeout={said}&fieldManager=m&dryRun=All",
            body,
            content_type=content_type,
            shown=None if status else lambda body: type(body).__name__,
        )
        assert status in (None, answer.status)


@variants("request_", {name: request for name, request in REQUESTS.items() if request[0] == "GET"})
async def test_one_nanosecond_times_out(api: Conversation, request_: tuple[str, str, Any, str]) -> None:
    answer = await api("GET", f"{request_[1]}?timeout=1ns")
    assert answer.status == 504


async def test_timeout_is_checked_before_authentication(api: Conversation) -> None:
    for said, status in (("soon", 400), ("1ns", 504)):
        for user, headers in (("nobody", {}), (None, {"Authorization": "Bearer wrong"})):
            answer = await api("GET", f"{A}?timeout={said}", user=user, headers=headers)
            assert answer.status == status


async def test_timeout_error_follows_the_accept_header(api: Conversation) -> None:
    answer = await api("GET", f"{A}?timeout=soon", accept=YAML)
    assert answer.headers["Content-Type"] == YAML
    answer = await api("GET", f"{A}?timeout=1ns", accept=YAML)
    assert answer.status == 504


async def test_first_of_several_timeouts_counts(api: Conversation) -> None:
    for said, status in (("timeout=soon&timeout=1s", 400), ("timeout=1s&timeout=soon", 200)):
        answer = await api("GET", f"{CONFIGMAPS}?{said}")
        assert answer.status == status


async def test_watch_ignores_the_timeout_parameter(api: Conversation) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    for said in ("soon", "1ns", "0"):
        answer = await api.watch(f"{CONFIGMAPS}?watch=1&timeout={said}", events=1)
        assert answer.status == 200
    answer = await api.watch("/api/v1/watch/namespaces/{ns}/configmaps?timeout=soon", events=1)
    assert answer.status == 200


@variants("part", {name: name for name in ("log", "exec", "attach", "portforward")})
async def test_streaming_subresources_ignore_the_timeout(api: Conversation, part: str) -> None:
    answer = await api("GET", f"/api/v1/namespaces/{{ns}}/pods/a/{part}?timeout=soon")
    assert answer.status == 404


@variants("where", {"list": f"{CONFIGMAPS}?", "get": f"{A}?", "exact": f"{CONFIGMAPS}?resourceVersionMatch=Exact&"})
async def test_waiting_for_a_version_ends_at_the_timeout(api: Conversation, where: str) -> None:
    await api.create(CONFIGMAPS, {"metadata": {"name": "a"}})
    answer = await api("GET", f"{where}timeout=200ms&resourceVersion={NEVER_HAPPENED}")
    assert answer.status == 504
