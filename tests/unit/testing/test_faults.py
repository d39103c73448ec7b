"""Every fault as an HTTP client sees it: it takes effect, and the server works as before once it has ended.

Each fault is started by `ApiServer.fault` and over HTTP.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from aioinformer.errors import UsageError
from aioinformer.testing import FAULTS, ApiServer
from tests.support.api import CONFIGMAPS, Api, told

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

WATCH = f"{CONFIGMAPS}?watch=true"
STREAMING = f"{WATCH}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
NOW = 1_800_000_000.0
BRIEF = 0.05
PATIENCE = 50.0


@dataclass(frozen=True)
class Client:
    """A client that is connected before the fault. It has seen one change of the ConfigMap "a", and watches.

    Attributes:
        api: plain HTTP, with a token.
        watch: an open watch from the current version.
        first: the version of the first state of "a".
        last: the version of the second state.
    """

    api: Api
    watch: aiohttp.ClientResponse
    first: str
    last: str

    async def status(self, path: str = CONFIGMAPS) -> int:
        return (await self.api("GET", path))[0]

    async def known(self) -> list[tuple[str, str]]:
        """Return names and versions of a list."""
        _, listed = await self.api("GET", CONFIGMAPS)
        return [(item["metadata"]["name"], item["metadata"]["resourceVersion"]) for item in listed["items"]]

    async def line(self) -> dict[str, Any]:
        """Return the next line of the watch."""
        line: dict[str, Any] = json.loads(await self.watch.content.readline())
        return line

    async def rest(self) -> bytes:
        """Return the remaining lines of the watch, which must end cleanly."""
        return await self.watch.content.read()

    async def lines(self, path: str, count: int) -> list[dict[str, Any]]:
        """Return the first lines of another watch."""
        async with self.api.session.get(path) as watch:
            return [json.loads(await watch.content.readline()) for _ in range(count)]

    async def is_unanswered(self) -> bool:
        """Return whether a list gets no response for a moment."""
        try:
            await self.api.session.get(CONFIGMAPS, timeout=aiohttp.ClientTimeout(total=BRIEF))
        except TimeoutError:
            return True
        return False


@dataclass(frozen=True)
class Case:
    """A fault, and its visible effect.

    Attributes:
        fault: its name.
        seen: asserts what a client sees during the fault.
        params: parameters of the fault.
        left: the version of "a" after the fault: `last`, unless the fault restores an older state.
    """

    fault: str
    seen: Callable[[Client], Awaitable[None]]
    params: dict[str, Any] = field(default_factory=dict)
    left: str = "last"


async def is_cut_off(client: Client) -> None:
    with pytest.raises(aiohttp.ClientError):
        await client.rest()
    with pytest.raises(aiohttp.ClientConnectionError):
        await client.status()


async def loses_history(client: Client) -> None:
    assert await client.rest() == b""
    await has_lost_history(client)


async def has_lost_history(client: Client) -> None:
    (event,) = await client.lines(f"{WATCH}&resourceVersion={client.first}", 1)
    assert (event["type"], event["object"]["reason"]) == ("ERROR", "Expired")


async def keeps_history(client: Client) -> None:
    assert await client.rest() == b""
    (event,) = await client.lines(f"{WATCH}&resourceVersion={client.first}", 1)
    assert told([event]) == [("MODIFIED", "a")]


async def meets_the_past(client: Client) -> None:
    with pytest.raises(aiohttp.ClientPayloadError):  # as for the restart that a restore of etcd requires
        await client.rest()
    assert await client.known() == [("a", client.first)]


def is_answered(*codes: int) -> Callable[[Client], Awaitable[None]]:
    async def seen(client: Client) -> None:
        assert [await client.status() for _ in codes] == list(codes)

    return seen


async def is_told_when_to_come_back(client: Client) -> None:
    async with client.api.session.get(CONFIGMAPS) as response:
        assert (response.status, response.headers["Retry-After"]) == (429, "7")


async def gets_a_web_page(client: Client) -> None:
    status, body = await client.api("GET", CONFIGMAPS)
    assert (status, body[:9]) == (200, "<!DOCTYPE")


async def must_renew_its_token(client: Client) -> None:
    old = await client.status()
    client.api.session.headers["Authorization"] = "Bearer renewed"
    assert (old, await client.status()) == (401, 200)
    client.api.session.headers["Authorization"] = "Bearer old"


async def reads_behind_the_watch(client: Client) -> None:
    assert await client.known() == [("a", client.first)]
    _, read = await client.api("GET", f"{CONFIGMAPS}/a")
    _, changed = await client.api("PATCH", f"{CONFIGMAPS}/a", {}, content_type="application/merge-patch+json")
    assert [each["metadata"]["resourceVersion"] for each in (read, changed)] == [client.first, client.last]
    (event,) = await client.lines(f"{WATCH}&resourceVersion={client.first}", 1)
    assert event["object"]["metadata"]["resourceVersion"] == client.last


async def is_told_another_time(client: Client) -> None:
    async with client.api.session.post(CONFIGMAPS, json={"metadata": {"name": "b"}}) as response:
        made = await response.json()
    await client.api("DELETE", f"{CONFIGMAPS}/b")
    told_times = response.headers["Date"], made["metadata"]["creationTimestamp"]
    assert told_times == ("Fri, 15 Jan 2027 07:00:00 GMT", "2027-01-15T07:00:00Z")


async def is_unanswered(client: Client) -> None:
    assert await client.is_unanswered()


async def is_answered_at_last(client: Client) -> None:
    assert await client.is_unanswered()
    assert await client.status() == 200


async def is_given_up(client: Client) -> None:
    for name in "bc":
        await client.api("POST", CONFIGMAPS, {"metadata": {"name": name}})
    assert await client.rest() == b""
    for name in "bc":
        await client.api("DELETE", f"{CONFIGMAPS}/{name}")


async def gets_half_a_list(client: Client) -> None:
    with pytest.raises(aiohttp.ClientPayloadError):
        await client.status()


async def is_not_told_where_the_beginning_ends(client: Client) -> None:
    async with client.api.session.get(STREAMING) as watch:
        read = [json.loads(await watch.content.readline())]
        await client.api("POST", CONFIGMAPS, {"metadata": {"name": "b"}})
        read.append(json.loads(await watch.content.readline()))
    await client.api("DELETE", f"{CONFIGMAPS}/b")
    assert told(read) == [("ADDED", "a"), ("ADDED", "b")]


async def is_refused_a_streaming_list(client: Client) -> None:
    status, body = await client.api("GET", STREAMING)
    assert (status, body["reason"]) == (422, "Invalid")


async def is_let_go(client: Client) -> None:
    assert await client.rest() == b""


async def gets_two_events(client: Client) -> None:
    for name in "bcd":
        await client.api.create(name)
    assert told([await client.line(), await client.line()]) == [("ADDED", "b"), ("ADDED", "c")]
    await is_let_go(client)
    for name in "bcd":
        await client.api("DELETE", f"{CONFIGMAPS}/{name}")


async def has_half_a_line(client: Client) -> None:
    line = bytearray()

    async def read() -> None:
        async for chunk in client.watch.content.iter_any():
            line.extend(chunk)

    with pytest.raises(aiohttp.ClientPayloadError):
        await read()
    assert line.startswith(b'{"type":"MODIFIED"')
    assert not line.endswith(b"\n")


async def reads_what_is_no_json(client: Client) -> None:
    with pytest.raises(json.JSONDecodeError):
        await client.line()


def reads(check: Callable[[dict[str, Any]], bool]) -> Callable[[Client], Awaitable[None]]:
    async def seen(client: Client) -> None:
        assert check(await client.line())

    return seen


async def is_not_ready(client: Client) -> None:
    for path, status in (("/readyz", 500), ("/readyz/etcd", 200), ("/apis/example.com/v1/widgets", 503)):
        assert (await client.api("GET", path))[0] == status


CASES = {
    "outage": Case("outage", is_cut_off),
    "restart": Case("restart", loses_history),
    "restart with history": Case("restart", keeps_history, {"keep_history": True}),
    "restore": Case("restore", meets_the_past, {"back": 1}, left="first"),
    "compaction": Case("compaction", has_lost_history),
    "throttle": Case("throttle", is_told_when_to_come_back, {"retry_after": 7}),
    "unavailable": Case("unavailable", is_answered(503)),
    "server error": Case("server_error", is_answered(500)),
    "bad gateway": Case("server_error", is_answered(502), {"status": 502, "text": True}),
    "storm": Case("storm", is_answered(500, 502, 503, 504, 500)),
    "storm with lulls": Case("storm", is_answered(503, 200, 503, 200), {"statuses": [503, 200]}),
    "unauthorized": Case("unauthorized", is_answered(401)),
    "expired credentials": Case("expired_credentials", must_renew_its_token),
    "expired credentials, one renewed": Case("expired_credentials", must_renew_its_token, {"renewed": ["renewed"]}),
    "forbidden": Case("forbidden", is_answered(403)),
    "not found": Case("not_found", is_answered(404)),
    "method not allowed": Case("method_not_allowed", is_answered(405)),
    "html": Case("html", gets_a_web_page),
    "too large": Case("too_large", is_answered(504)),
    "expired list": Case("expired", is_answered(410), {"as_status": True}),
    "expired watch": Case("expired", reads(lambda line: line["object"]["code"] == 410)),
    "stale replica": Case("stale_replica", reads_behind_the_watch, {"back": 1}),
    "starting": Case("starting", is_not_ready),
    "clock skew": Case("clock_skew", is_told_another_time, {"seconds": -3600}),
    "latency": Case("latency", is_answered_at_last, {"seconds": 0.2}),
    "slow": Case("slow", is_answered_at_last, {"seconds": 0.2}),
    "black hole": Case("black_hole", is_unanswered),
    "slow reader": Case("slow_reader", is_given_up, {"backlog": 2}),
    "half page": Case("half_page", gets_half_a_list),
    "no bookmarks": Case("no_bookmarks", is_not_told_where_the_beginning_ends),
    "refused streaming lists": Case("refuse_send_initial_events", is_refused_a_streaming_list),
    "ignored streaming lists": Case("ignore_send_initial_events", is_not_told_where_the_beginning_ends),
    "end of a watch": Case("watch_close", is_let_go),
    "end of a watch after events": Case("watch_close", gets_two_events, {"events": 2}),
    "cut": Case("cut", has_half_a_line),
    "garbage": Case("garbage", reads_what_is_no_json),
    "unknown event": Case("unknown_event_type", reads(lambda line: line["type"] == "SURPRISE")),
    "undecodable object": Case("undecodable_object", reads(lambda line: line["object"]["metadata"] == "not an object")),
    "bare bookmark": Case("version_only_bookmark", reads(lambda line: list(line["object"]) == ["metadata"])),
    "huge line": Case("huge_line", reads(lambda line: len(str(line)) > 50_000), {"size": 50_000}),
    "error event": Case("error_event", reads(lambda line: line["object"]["code"] == 500)),
}


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer(faults_over_http=True, clock=lambda: NOW, version_wait=BRIEF) as server:
        yield server


@pytest.fixture
async def client(server: ApiServer) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession(server.url, headers={"Authorization": "Bearer old"}) as session:
        api = Api(session)
        first = (await api.create("a"))["metadata"]["resourceVersion"]
        _, changed = await api("PUT", f"{CONFIGMAPS}/a", {"metadata": {"name": "a"}, "data": {"changed": "yes"}})
        last = changed["metadata"]["resourceVersion"]
        async with session.get(f"{WATCH}&resourceVersion={last}") as watch:
            yield Client(api, watch, first, last)


@asynccontextmanager
async def started_from_python(server: ApiServer, case: Case) -> AsyncIterator[None]:
    async with server.fault(case.fault, **case.params):
        yield


@asynccontextmanager
async def started_over_http(server: ApiServer, case: Case) -> AsyncIterator[None]:
    # An outage also refuses the connection that would end it.
    params = {**case.params, "duration": 0.2} if case.fault == "outage" else case.params
    async with aiohttp.ClientSession(server.url) as session:
        async with session.post(f"/_faults/{case.fault}", json=params) as response:
            assert response.status == 201, await response.text()
        yield
        await until_reachable(session)
        async with session.delete(f"/_faults/{case.fault}") as response:
            assert response.status == 200


async def until_reachable(session: aiohttp.ClientSession) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                async with session.get("/_faults"):
                    return
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(BRIEF)


@pytest.mark.conformance("FK-01", "FK-07")
@pytest.mark.parametrize("start", [started_from_python, started_over_http], ids=["python", "http"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_fault_takes_effect_and_ends(
    server: ApiServer, client: Client, case: Case, start: Callable[[ApiServer, Case], Any]
) -> None:
    async with asyncio.timeout(PATIENCE):
        async with start(server, case):
            await case.seen(client)

        assert await client.known() == [("a", getattr(client, case.left))]
        assert [line["type"] for line in await client.lines(STREAMING, 2)] == ["ADDED", "BOOKMARK"]


def test_every_fault_has_a_case() -> None:
    assert {case.fault for case in CASES.values()} == set(FAULTS)


def test_every_fault_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "faults.md").read_text()
    assert [fault for fault in FAULTS if f"`{fault}`" not in page] == []


async def test_stale_replica_does_not_know_a_later_version(api: Api, server: ApiServer) -> None:
    made = await api.create("a")
    async with server.fault("stale_replica", back=1):
        status, body = await api("GET", f"{CONFIGMAPS}?resourceVersion={made['metadata']['resourceVersion']}")
    assert (status, body["details"]["causes"][0]["reason"]) == (504, "ResourceVersionTooLarge")


@pytest.mark.parametrize(
    ("fault", "params", "told"),
    [
        ("latency", {"seconds": "long"}, "seconds must be a number of at least 0, not 'long'"),
        ("clock_skew", {"seconds": None}, "seconds must be a number, not None"),
        ("storm", {"statuses": []}, r"statuses must be a list of HTTP statuses, not \[\]"),
        ("restart", {"keep_history": 1}, "keep_history must be true or false, not 1"),
        ("stale_replica", {"version": 99}, "version must be between"),
        ("earthquake", {}, "choose one of black_hole, clock_skew, compaction"),
        ("cut", {"strength": 3}, "has no parameter 'strength'"),
    ],
)
async def test_invalid_parameter_is_named(fault: str, params: dict[str, Any], told: str) -> None:
    async with ApiServer(faults_over_http=True) as server, aiohttp.ClientSession(server.url) as session:
        with pytest.raises(UsageError, match=told):
            await server.fault(fault, **params)
        async with session.post(f"/_faults/{fault}", json=params) as response:
            assert response.status in (400, 404)


async def test_fault_ends_after_times_requests_of_its_resources(api: Api, server: ApiServer) -> None:
    await server.fault("unavailable", times=2, resources="configmaps")
    assert (await api("GET", "/api/v1/secrets"))[0] == 200
    assert [(await api("GET", CONFIGMAPS))[0] for _ in range(3)] == [503, 503, 200]


async def test_faults_are_listed_over_http(api: Api, server: ApiServer) -> None:
    async with server.fault("unavailable"):
        _, listed = await api("GET", "/_faults")
    assert set(listed["faults"]) == set(FAULTS)
    assert [fault["name"] for fault in listed["active"]] == ["unavailable"]


async def test_faults_are_not_served_by_default() -> None:
    async with ApiServer() as server, aiohttp.ClientSession(server.url) as session:
        assert (await Api(session)("GET", "/_faults"))[0] == 404


@pytest.mark.conformance("FK-01")
async def test_request_log_has_the_verb(api: Api, server: ApiServer) -> None:
    await api("GET", f"{CONFIGMAPS}?limit=2")
    entry = server.requests[-1]
    assert (entry.method, entry.verb, entry.resource, entry.status) == ("GET", "list", "configmaps", 200)
    assert entry.query == {"limit": "2"}
