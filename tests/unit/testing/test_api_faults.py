from __future__ import annotations

import json

import aiohttp
import pytest

from aioinformer.errors import UsageError
from aioinformer.testing import FAULTS, ApiServer
from tests.support.api import CONFIGMAPS, Api, told

WATCH = f"{CONFIGMAPS}?watch=true"


async def collect(response: aiohttp.ClientResponse, received: bytearray) -> None:
    async for chunk in response.content.iter_any():
        received += chunk


async def test_outage_refuses_connections_and_keeps_its_port(api: Api, server: ApiServer) -> None:
    async with server.fault("outage"):
        with pytest.raises(aiohttp.ClientConnectionError):
            await api("GET", "/version")
    assert (await api("GET", "/version"))[0] == 200


@pytest.mark.conformance("FK-07")
async def test_outage_cuts_open_watches(api: Api, server: ApiServer) -> None:
    async with api.session.get(WATCH) as watch, server.fault("outage"):
        with pytest.raises(aiohttp.ClientError):
            await watch.content.read()


async def test_restart_ends_watches_and_drops_history(api: Api, server: ApiServer) -> None:
    version = server.resource_version
    await api.create("a")
    async with api.session.get(f"{WATCH}&resourceVersion={server.resource_version}") as watch:
        await server.fault("restart")
        assert await watch.content.read() == b""
    events = await api.events(f"resourceVersion={version}")
    assert events[0]["object"]["reason"] == "Expired"


async def test_restart_can_keep_history(api: Api, server: ApiServer) -> None:
    version = server.resource_version
    await api.create("a")
    await server.fault("restart", keep_history=True)
    assert told(await api.events(f"resourceVersion={version}")) == [("ADDED", "a")]


async def test_restore_brings_back_an_old_state_and_its_version(api: Api, server: ApiServer) -> None:
    await api.create("a")
    version = server.resource_version
    await api("DELETE", f"{CONFIGMAPS}/a")
    await server.fault("restore", back=1)
    assert (server.resource_version, (await api("GET", f"{CONFIGMAPS}/a"))[0]) == (version, 200)


@pytest.mark.conformance("FK-01")
@pytest.mark.parametrize(
    ("name", "params", "code"),
    [
        ("throttle", {"retry_after": 7}, 429),
        ("unavailable", {}, 503),
        ("server_error", {}, 500),
        ("server_error", {"status": 502, "text": True}, 502),
        ("unauthorized", {}, 401),
        ("forbidden", {}, 403),
        ("not_found", {}, 404),
        ("method_not_allowed", {}, 405),
        ("html", {}, 200),
        ("too_large", {}, 504),
        ("expired", {"as_status": True}, 410),
    ],
)
async def test_fault_replaces_responses_until_it_ends(
    api: Api, server: ApiServer, name: str, params: dict[str, object], code: int
) -> None:
    async with server.fault(name, resources="configmaps", **params):
        struck, body = await api("GET", CONFIGMAPS)
        other, _ = await api("GET", "/api/v1/secrets")
    after, listed = await api("GET", CONFIGMAPS)
    assert (struck, other, after) == (code, 200, 200)
    assert body != listed


async def test_retry_after_is_a_header(api: Api, server: ApiServer) -> None:
    async with server.fault("throttle", retry_after=7), api.session.get(CONFIGMAPS) as response:
        assert response.headers["Retry-After"] == "7"


async def test_fault_ends_after_times_requests(api: Api, server: ApiServer) -> None:
    await server.fault("unavailable", times=2)
    assert [(await api("GET", CONFIGMAPS))[0] for _ in range(3)] == [503, 503, 200]


async def test_cut_ends_a_watch_in_the_middle_of_a_line(api: Api, server: ApiServer) -> None:
    async with api.session.get(WATCH) as watch, server.fault("cut"):
        received = bytearray()
        with pytest.raises(aiohttp.ClientPayloadError):
            await collect(watch, received)
    assert received.startswith(b'{"type":"MODIFIED"')
    assert not received.endswith(b"\n")


async def test_watch_close_counts_events(api: Api, server: ApiServer) -> None:
    for name in "abc":
        await api.create(name)
    async with server.fault("watch_close", events=2):
        assert told(await api.events("")) == [("ADDED", "a"), ("ADDED", "b")]


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("garbage", lambda line: line == b'{"type":"MODIFIED","object":{"kind\n'),
        ("unknown_event_type", lambda line: json.loads(line)["type"] == "SURPRISE"),
        ("undecodable_object", lambda line: json.loads(line)["object"]["metadata"] == "not an object"),
        ("version_only_bookmark", lambda line: list(json.loads(line)["object"]) == ["metadata"]),
        ("error_event", lambda line: json.loads(line)["object"]["code"] == 500),
        ("expired", lambda line: json.loads(line)["object"]["code"] == 410),
    ],
)
async def test_fault_event_reaches_open_watches(api: Api, server: ApiServer, name: str, check) -> None:  # type: ignore[no-untyped-def]
    async with api.session.get(WATCH) as watch, server.fault(name):
        assert check(await watch.content.readline())


async def test_huge_line_has_the_given_size(api: Api, server: ApiServer) -> None:
    async with server.fault("huge_line", size=300_000), api.session.get(f"{WATCH}&timeoutSeconds=1") as watch:
        assert len(await watch.content.read()) > 300_000


async def test_half_page_is_incomplete(api: Api, server: ApiServer) -> None:
    await api.create("a")
    async with server.fault("half_page"):
        with pytest.raises(aiohttp.ClientPayloadError):
            await api("GET", CONFIGMAPS)


async def test_black_hole_never_responds(api: Api, server: ApiServer) -> None:
    async with server.fault("black_hole"):
        with pytest.raises(TimeoutError):
            await api.session.get(CONFIGMAPS, timeout=aiohttp.ClientTimeout(total=0.05))


async def test_refuse_send_initial_events_is_422(api: Api, server: ApiServer) -> None:
    query = f"{WATCH}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with server.fault("refuse_send_initial_events"):
        status, body = await api("GET", query)
    assert (status, body["reason"]) == (422, "Invalid")


async def test_ignore_send_initial_events_sends_a_plain_watch(api: Api, server: ApiServer) -> None:
    await api.create("a")
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with server.fault("ignore_send_initial_events"):
        assert told(await api.events(query)) == [("ADDED", "a")]


async def test_faults_start_and_end_over_http() -> None:
    async with ApiServer(faults_over_http=True) as server, aiohttp.ClientSession(server.url) as session:
        api = Api(session)
        started, _ = await api("POST", "/_faults/unavailable", {"times": 5})
        struck, _ = await api("GET", CONFIGMAPS)
        _, listed = await api("GET", "/_faults")
        ended, _ = await api("DELETE", "/_faults/unavailable")
        assert (started, struck, ended, (await api("GET", CONFIGMAPS))[0]) == (201, 503, 200, 200)
    assert set(listed["faults"]) == set(FAULTS)
    assert [fault["name"] for fault in listed["active"]] == ["unavailable"]


async def test_faults_are_not_served_by_default(api: Api) -> None:
    assert (await api("GET", "/_faults"))[0] == 404


def test_unknown_fault_or_parameter_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="choose one of black_hole, clock_skew, compaction"):
        ApiServer().fault("earthquake")
    with pytest.raises(UsageError, match="has no parameter 'strength'"):
        ApiServer().fault("cut", strength=3)


@pytest.mark.conformance("FK-01")
async def test_request_log_has_the_verb(api: Api, server: ApiServer) -> None:
    await api("GET", f"{CONFIGMAPS}?limit=2")
    entry = server.requests[-1]
    assert (entry.method, entry.verb, entry.resource, entry.status) == ("GET", "list", "configmaps", 200)
    assert entry.query == {"limit": "2"}


async def test_configured_tokens_are_required() -> None:
    async with ApiServer(tokens={"secret": "alice"}) as server, aiohttp.ClientSession(server.url) as session:
        api = Api(session)
        refused, body = await api("GET", CONFIGMAPS)
        session.headers["Authorization"] = "Bearer secret"
        accepted, _ = await api("GET", CONFIGMAPS)
    assert (refused, body["reason"], accepted) == (401, "Unauthorized", 200)
