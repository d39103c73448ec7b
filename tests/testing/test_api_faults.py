from __future__ import annotations

import json

import aiohttp
import pytest

from aioinformer.errors import UsageError
from aioinformer.testing import FAULTS, ApiServer
from tests.testing.api import CONFIGMAPS, Api, told

WATCH = f"{CONFIGMAPS}?watch=true"


async def collect(response: aiohttp.ClientResponse, received: bytearray) -> None:
    async for chunk in response.content.iter_any():
        received += chunk


async def test_an_outage_refuses_connections_and_the_same_port_returns(api: Api, server: ApiServer) -> None:
    async with server.fault("outage"):
        with pytest.raises(aiohttp.ClientConnectionError):
            await api("GET", "/version")
    assert (await api("GET", "/version"))[0] == 200


@pytest.mark.conformance("FK-07")
async def test_an_outage_cuts_open_watches(api: Api, server: ApiServer) -> None:
    async with api.session.get(WATCH) as watch, server.fault("outage"):
        with pytest.raises(aiohttp.ClientError):
            await watch.content.read()


async def test_a_restart_ends_watches_and_forgets_history(api: Api, server: ApiServer) -> None:
    version = server.resource_version
    await api.create("a")
    async with api.session.get(f"{WATCH}&resourceVersion={server.resource_version}") as watch:
        await server.fault("restart")
        assert await watch.content.read() == b""
    events = await api.events(f"resourceVersion={version}")
    assert events[0]["object"]["reason"] == "Expired"


async def test_a_restart_may_keep_history(api: Api, server: ApiServer) -> None:
    version = server.resource_version
    await api.create("a")
    await server.fault("restart", keep_history=True)
    assert told(await api.events(f"resourceVersion={version}")) == [("ADDED", "a")]


async def test_a_restore_brings_back_an_old_state_and_its_version(api: Api, server: ApiServer) -> None:
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
async def test_a_fault_answers_in_place_of_the_server_until_it_ends(
    api: Api, server: ApiServer, name: str, params: dict[str, object], code: int
) -> None:
    async with server.fault(name, resources="configmaps", **params):
        struck, body = await api("GET", CONFIGMAPS)
        other, _ = await api("GET", "/api/v1/secrets")
    after, listed = await api("GET", CONFIGMAPS)
    assert (struck, other, after) == (code, 200, 200)
    assert body != listed


async def test_retry_after_is_in_the_header(api: Api, server: ApiServer) -> None:
    async with server.fault("throttle", retry_after=7), api.session.get(CONFIGMAPS) as response:
        assert response.headers["Retry-After"] == "7"


async def test_a_fault_strikes_as_often_as_it_was_told(api: Api, server: ApiServer) -> None:
    await server.fault("unavailable", times=2)
    assert [(await api("GET", CONFIGMAPS))[0] for _ in range(3)] == [503, 503, 200]


async def test_a_cut_leaves_half_a_line_and_no_end(api: Api, server: ApiServer) -> None:
    async with api.session.get(WATCH) as watch, server.fault("cut"):
        received = bytearray()
        with pytest.raises(aiohttp.ClientPayloadError):
            await collect(watch, received)
    assert received.startswith(b'{"type":"MODIFIED"')
    assert not received.endswith(b"\n")


async def test_a_watch_is_closed_after_as_many_events_as_was_told(api: Api, server: ApiServer) -> None:
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
async def test_open_watches_are_told_what_the_fault_says(api: Api, server: ApiServer, name: str, check) -> None:  # type: ignore[no-untyped-def]
    async with api.session.get(WATCH) as watch, server.fault(name):
        assert check(await watch.content.readline())


async def test_a_huge_line_is_as_long_as_was_told(api: Api, server: ApiServer) -> None:
    async with server.fault("huge_line", size=300_000), api.session.get(f"{WATCH}&timeoutSeconds=1") as watch:
        assert len(await watch.content.read()) > 300_000


async def test_half_a_page_is_not_a_page(api: Api, server: ApiServer) -> None:
    await api.create("a")
    async with server.fault("half_page"):
        with pytest.raises(aiohttp.ClientPayloadError):
            await api("GET", CONFIGMAPS)


async def test_a_black_hole_says_nothing(api: Api, server: ApiServer) -> None:
    async with server.fault("black_hole"):
        with pytest.raises(TimeoutError):
            await api.session.get(CONFIGMAPS, timeout=aiohttp.ClientTimeout(total=0.05))


async def test_an_old_server_refuses_streaming_lists(api: Api, server: ApiServer) -> None:
    query = f"{WATCH}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with server.fault("refuse_send_initial_events"):
        status, body = await api("GET", query)
    assert (status, body["reason"]) == (422, "Invalid")


async def test_an_older_server_ignores_streaming_lists(api: Api, server: ApiServer) -> None:
    await api.create("a")
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with server.fault("ignore_send_initial_events"):
        assert told(await api.events(query)) == [("ADDED", "a")]


async def test_every_fault_can_be_started_and_ended_over_http() -> None:
    async with ApiServer(faults_over_http=True) as server, aiohttp.ClientSession(server.url) as session:
        api = Api(session)
        started, _ = await api("POST", "/_faults/unavailable", {"times": 5})
        struck, _ = await api("GET", CONFIGMAPS)
        _, listed = await api("GET", "/_faults")
        ended, _ = await api("DELETE", "/_faults/unavailable")
        assert (started, struck, ended, (await api("GET", CONFIGMAPS))[0]) == (201, 503, 200, 200)
    assert set(listed["faults"]) == set(FAULTS)
    assert [fault["name"] for fault in listed["active"]] == ["unavailable"]


async def test_faults_are_not_served_unless_asked_for(api: Api) -> None:
    assert (await api("GET", "/_faults"))[0] == 404


def test_a_fault_that_is_not_known_names_those_that_are() -> None:
    with pytest.raises(UsageError, match="choose one of black_hole, clock_skew, compaction"):
        ApiServer().fault("earthquake")
    with pytest.raises(UsageError, match="has no parameter 'strength'"):
        ApiServer().fault("cut", strength=3)


@pytest.mark.conformance("FK-01")
async def test_requests_are_logged_with_their_verbs(api: Api, server: ApiServer) -> None:
    await api("GET", f"{CONFIGMAPS}?limit=2")
    entry = server.requests[-1]
    assert (entry.method, entry.verb, entry.resource, entry.status) == ("GET", "list", "configmaps", 200)
    assert entry.query == {"limit": "2"}


async def test_tokens_are_asked_for_where_there_are_any() -> None:
    async with ApiServer(tokens={"secret": "alice"}) as server, aiohttp.ClientSession(server.url) as session:
        api = Api(session)
        refused, body = await api("GET", CONFIGMAPS)
        session.headers["Authorization"] = "Bearer secret"
        accepted, _ = await api("GET", CONFIGMAPS)
    assert (refused, body["reason"], accepted) == (401, "Unauthorized", 200)
