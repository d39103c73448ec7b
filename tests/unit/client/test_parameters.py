"""What is sent for the options of each call: parameters, headers and bodies."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import Client
from aioinformer.client import Impersonation
from aioinformer.errors import ApiNotFound, OptionError, UsageError
from tests.support.scripted_transport import OBJECT, Answer, Scripted, refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Call = Callable[[Client], Awaitable[Any]]

MAPS = "/api/v1/namespaces/shop/configmaps"
ALL = {"dry_run": True, "field_manager": "ann", "field_validation": "Strict"}
DELETE = {"apiVersion": "v1", "kind": "DeleteOptions"}


async def sent(call: Call, *script: Any, **settings: Any) -> Any:
    """Return the last request of a call."""
    transport = Scripted(*script)
    await call(Client(transport, **settings))
    return transport.requests[-1]


@pytest.mark.parametrize(
    ("call", "line", "query"),
    [
        (lambda maps: maps.get("shop/a"), f"GET {MAPS}/a", ""),
        (lambda maps: maps.get("shop/a", resource_version="0"), f"GET {MAPS}/a", "resourceVersion=0"),
        (lambda maps: maps.get_or_none("shop/a", resource_version="0"), f"GET {MAPS}/a", "resourceVersion=0"),
        (lambda maps: maps.create(OBJECT), f"POST {MAPS}", ""),
        (lambda maps: maps.create(OBJECT, dry_run=True), f"POST {MAPS}", "dryRun=All"),
        (lambda maps: maps.create(OBJECT, field_manager="ann"), f"POST {MAPS}", "fieldManager=ann"),
        (lambda maps: maps.create(OBJECT, field_validation="Ignore"), f"POST {MAPS}", "fieldValidation=Ignore"),
        (
            lambda maps: maps.replace(OBJECT, **ALL),
            f"PUT {MAPS}/a",
            "dryRun=All&fieldManager=ann&fieldValidation=Strict",
        ),
        (lambda maps: maps.patch("shop/a", {}, field_manager="ann"), f"PATCH {MAPS}/a", "fieldManager=ann"),
        (lambda maps: maps.apply(OBJECT, field_manager="ann"), f"PATCH {MAPS}/a", "fieldManager=ann"),
        (
            lambda maps: maps.apply(OBJECT, field_manager="ann", force=True),
            f"PATCH {MAPS}/a",
            "fieldManager=ann&force=true",
        ),
    ],
)
async def test_options_are_parameters(call: Any, line: str, query: str) -> None:
    request = await sent(lambda client: call(client.core.v1.configmaps))
    assert f"{request.method} {request.path}" == line
    assert "&".join(f"{name}={value}" for name, value in request.query) == query


async def test_options_of_a_call_win_over_those_of_the_client() -> None:
    settings: dict[str, Any] = {"field_manager": "joe", "dry_run": True, "impersonate": "jane"}
    request = await sent(lambda c: c.core.v1.configmaps.create(OBJECT), **settings)
    assert dict(request.query) == {"dryRun": "All", "fieldManager": "joe"}
    assert request.headers["Impersonate-User"] == "jane"
    request = await sent(
        lambda c: c.core.v1.configmaps.create(OBJECT, field_manager="ann", dry_run=False, impersonate=None), **settings
    )
    assert dict(request.query) == {"fieldManager": "ann"}
    assert "Impersonate-User" not in request.headers


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ({}, None),
        ({"propagation": "Orphan"}, {"propagationPolicy": "Orphan"}),
        ({"grace": 0}, {"gracePeriodSeconds": 0}),
        ({"grace": 5}, {"gracePeriodSeconds": 5}),
        ({"uid": "u"}, {"preconditions": {"uid": "u"}}),
        ({"resource_version": "7"}, {"preconditions": {"resourceVersion": "7"}}),
        ({"uid": "u", "resource_version": "7"}, {"preconditions": {"uid": "u", "resourceVersion": "7"}}),
        ({"dry_run": True}, {"dryRun": ["All"]}),
    ],
)
async def test_options_of_a_deletion_are_its_body(options: dict[str, Any], body: dict[str, Any] | None) -> None:
    request = await sent(lambda client: client.core.v1.configmaps.delete("shop/a", **options))
    assert f"{request.method} {request.path}" == f"DELETE {MAPS}/a"
    assert (request.body and json.loads(request.body)) == (body and {**DELETE, **body})


@pytest.mark.parametrize("options", [{"grace": -1}, {"grace": 1.5}, {"grace": "5"}, {"propagation": "orphan"}])
async def test_wrong_options_of_a_deletion_are_not_sent(options: dict[str, Any]) -> None:
    transport = Scripted()
    with pytest.raises(OptionError, match=next(iter(options))):
        await Client(transport).core.v1.configmaps.delete("shop/a", **options)
    assert not transport.requests


@pytest.mark.parametrize(
    ("impersonate", "headers"),
    [
        ("jane", [("Impersonate-User", "jane")]),
        (
            Impersonation("jane", ["shop", "ops"], "u-1", {"example.com/Scope": ["a", "b"]}),
            [
                ("Impersonate-User", "jane"),
                ("Impersonate-Uid", "u-1"),
                ("Impersonate-Group", "shop"),
                ("Impersonate-Group", "ops"),
                ("Impersonate-Extra-example.com%2FScope", "a"),
                ("Impersonate-Extra-example.com%2FScope", "b"),
            ],
        ),
    ],
)
async def test_impersonation_is_in_the_headers_of_each_request(
    impersonate: Any, headers: list[tuple[str, str]]
) -> None:
    calls: list[Call] = [
        lambda client: client.core.v1.configmaps.get("shop/a"),
        lambda client: client.core.v1.configmaps.create(OBJECT),
        lambda client: client.request("GET", "/version"),
    ]
    for call in calls:
        request = await sent(call, impersonate=impersonate)
        assert [each for each in request.headers.items() if each[0].startswith("Impersonate")] == headers


@pytest.mark.parametrize("impersonate", ["", Impersonation("", ["shop"]), 7])
def test_impersonation_needs_a_user(impersonate: Any) -> None:
    with pytest.raises(OptionError, match="impersonate"):
        Client(Scripted(), impersonate=impersonate)


@pytest.mark.parametrize(
    ("options", "query"),
    [
        ({}, {}),
        ({"container": "web"}, {"container": "web"}),
        (
            {"follow": True, "previous": True, "timestamps": True},
            {"follow": "true", "previous": "true", "timestamps": "true"},
        ),
        ({"tail": 0}, {"tailLines": "0"}),
        ({"tail": 10, "limit_bytes": 1}, {"tailLines": "10", "limitBytes": "1"}),
        ({"since": 0.1}, {"sinceSeconds": "1"}),
        ({"since": 90}, {"sinceSeconds": "90"}),
        ({"since": datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)}, {"sinceTime": "2024-01-02T03:04:05Z"}),
        (
            {"since": datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2)))},
            {"sinceTime": "2024-01-02T01:04:05Z"},
        ),
    ],
)
async def test_options_of_logs_are_parameters(options: dict[str, Any], query: dict[str, str]) -> None:
    async def read(client: Client) -> None:
        async for _ in client.core.v1.pods.logs("shop/a", **options):
            pass

    request = await sent(read, Answer(200, b"line\n"))
    assert request.path == "/api/v1/namespaces/shop/pods/a/log"
    assert dict(request.query) == query


@pytest.mark.parametrize(
    "options",
    [{"tail": -1}, {"limit_bytes": 0}, {"since": 0}, {"since": -1}, {"since": datetime(2024, 1, 1)}],
)
async def test_wrong_options_of_logs_are_not_sent(options: dict[str, Any]) -> None:
    transport = Scripted()
    with pytest.raises(OptionError, match=next(iter(options))):
        async for _ in Client(transport).core.v1.pods.logs("shop/a", **options):
            pass
    assert not transport.requests


@pytest.mark.parametrize(
    ("method", "options", "query", "body"),
    [
        ("GET", {"query": {"a": "b"}, "dry_run": True, "field_manager": "ann"}, {"a": "b"}, None),
        ("POST", {"body": {"x": 1}, "field_manager": "ann"}, {"fieldManager": "ann"}, b'{"x":1}'),
        ("PUT", {"body": b"as it is", "query": {"a": "b"}}, {"a": "b"}, b"as it is"),
        ("DELETE", {}, {}, None),
        ("DELETE", {"dry_run": True}, {"dryRun": "All"}, None),
        ("DELETE", {"body": {"x": 1}}, {}, b'{"x":1}'),
        ("DELETE", {"body": {"x": 1}, "dry_run": True}, {"dryRun": "All"}, b'{"x":1,"dryRun":["All"]}'),
    ],
)
async def test_raw_request_has_query_and_body(
    method: str, options: dict[str, Any], query: dict[str, str], body: bytes | None
) -> None:
    request = await sent(lambda client: client.request(method, "/apis/x.io/v1/things/", **options))
    assert (request.method, request.path) == (method, "/apis/x.io/v1/things/")
    assert dict(request.query) == query
    assert request.body == body
    assert ("Content-Type" in request.headers) is (body is not None)


async def test_raw_deletion_in_a_dry_run_needs_a_mapping() -> None:
    transport = Scripted()
    with pytest.raises(UsageError, match="must be a mapping"):
        await Client(transport).request("DELETE", "/apis/x.io/v1/things", body=b"{}", dry_run=True)
    assert not transport.requests


@pytest.mark.parametrize(
    ("details", "missing"), [({"name": "a", "kind": "configmaps"}, True), ({"name": "b"}, False), ({}, False)]
)
async def test_only_the_missing_object_itself_is_none(details: dict[str, Any], missing: bool) -> None:
    transport = Scripted(refusal(404, "NotFound", "not found", **details))
    reading = Client(transport).core.v1.configmaps.get_or_none("shop/a")
    if missing:
        assert await reading is None
    else:
        with pytest.raises(ApiNotFound):
            await reading


async def test_warnings_of_the_server_are_logged_once_each(caplog: pytest.LogCaptureFixture) -> None:
    answers = [
        Answer(200, headers={"Warning": header})
        for header in (
            '299 - "spec.x is deprecated"',
            '299 - "a \\"quoted\\" one"',
            '299 - "spec.x is deprecated"',
            "odd",
        )
    ]
    client = Client(Scripted(*answers))
    for _ in answers:
        await client.core.v1.configmaps.get("shop/a")
    texts = ["spec.x is deprecated", 'a "quoted" one', "odd"]
    assert [each.getMessage() for each in caplog.records] == [f"the server warns: {text}" for text in texts]
