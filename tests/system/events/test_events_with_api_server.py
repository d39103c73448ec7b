"""A recorder with the embedded API server, over real sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from aioinformer import HttpTransport
from aioinformer.events import CoreEventSink, EventBroadcaster, SeriesEventSink, discover_event_sink
from aioinformer.testing import ApiServer, make_pod
from tests.support.lease_server import Answer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.transport import HttpRequest, Response, Transport


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        yield server


@pytest.fixture
async def transport(server: ApiServer) -> AsyncIterator[HttpTransport]:
    async with HttpTransport(server.url) as transport:
        yield transport


class OlderServer:
    """A server that serves only the core group."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def request(self, request: HttpRequest) -> Response:
        if request.path == "/apis":
            return Answer(200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": []})
        return await self._transport.request(request)


async def record_three(server: ApiServer, sink: CoreEventSink | SeriesEventSink) -> None:
    pod = server.create("pods", make_pod("default", 0))
    async with EventBroadcaster() as broadcaster:
        broadcaster.start_recording_to_sink(sink)
        recorder = broadcaster.new_recorder("example.com/web", "web-0")
        for _ in range(3):
            recorder.event(pod, "Normal", "Started", "it runs", action="Start")


@pytest.mark.conformance("EV-03")
async def test_core_sink_writes_one_event_with_a_count(server: ApiServer, transport: HttpTransport) -> None:
    await record_three(server, CoreEventSink(transport))
    [event] = server.list("v1/events")
    fields = (event["involvedObject"]["kind"], event["involvedObject"]["name"], event["source"]["component"])
    assert fields == ("Pod", make_pod("default", 0)["metadata"]["name"], "example.com/web")
    assert (event["count"], event["message"], event["reportingInstance"]) == (3, "it runs", "web-0")


@pytest.mark.conformance("EV-10")
async def test_series_sink_writes_one_event_with_a_series(server: ApiServer, transport: HttpTransport) -> None:
    await record_three(server, SeriesEventSink(transport))
    [event] = server.list("events.k8s.io/v1/events")
    assert (event["regarding"]["kind"], event["series"]["count"], event["action"]) == ("Pod", 3, "Start")


@pytest.mark.conformance("EV-13")
async def test_discovery_prefers_events_k8s_io(transport: HttpTransport) -> None:
    assert type(await discover_event_sink(transport)) is SeriesEventSink
    assert type(await discover_event_sink(OlderServer(transport))) is CoreEventSink


async def test_events_without_a_permission_do_not_flood_the_log(
    server: ApiServer, transport: HttpTransport, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        server.fault("forbidden", resources=["events"], verbs=["create"]),
        EventBroadcaster(grace=60) as broadcaster,
    ):
        broadcaster.start_recording_to_sink(CoreEventSink(transport))
        recorder = broadcaster.new_recorder("example.com/web")
        for number in range(200):
            recorder.event(server.create("pods", make_pod("default", number)), "Normal", "Started", "it runs")
    warned = [each.getMessage() for each in caplog.records if each.name == "aioinformer.events"]
    [line] = warned
    assert "was not written, and others will not be: 403 Forbidden" in line
    assert "grant `create` and `patch` of events" in line
