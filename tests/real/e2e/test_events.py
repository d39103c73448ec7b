"""Events on a real API server, in both APIs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from aioinformer.events.broadcaster import EventBroadcaster
from aioinformer.events.sink import CoreEventSink, SeriesEventSink, discover_event_sink
from aioinformer.transport.auth.credentials import connect

if TYPE_CHECKING:
    from tests.support.real_cluster import Operator, RealCluster


@pytest.mark.conformance("EV-03", "EV-10", "EV-13")
@pytest.mark.parametrize("sink_class", [CoreEventSink, SeriesEventSink])
async def test_repetitions_are_one_event_in_either_api(
    cluster: RealCluster, operator: Operator, sink_class: type[CoreEventSink | SeriesEventSink]
) -> None:
    body = {"metadata": {"generateName": "events-"}}
    namespace = (await operator.create("/api/v1/namespaces", body))["metadata"]["name"]
    path = f"/api/v1/namespaces/{namespace}"
    made = await operator.create(f"{path}/configmaps", {"metadata": {"name": "it"}})
    about = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": made["metadata"]}
    async with await connect(kubeconfig=cluster.kubeconfig) as connection:
        assert isinstance(await discover_event_sink(connection.transport), SeriesEventSink)
        async with EventBroadcaster(grace=30.0) as broadcaster:
            recording = broadcaster.start_recording_to_sink(sink_class(connection.transport))
            recorder = broadcaster.new_recorder("example.com/recorder", "recorder-0")
            for _ in range(4):
                recorder.eventf(about, "Warning", "Tested", "%s", "ä" * 600, action="Test", annotations={"a": "1"})
                while recording.statistics().waiting:
                    await wait_for_one_request(operator)
    assert recording.statistics().refused == 0
    [event] = (await operator.request("GET", f"{path}/events"))[1]["items"]
    assert event["involvedObject"]["uid"] == made["metadata"]["uid"]
    counts = event.get("count") if sink_class is CoreEventSink else event["series"]["count"]
    assert (counts, event["action"], event["metadata"]["annotations"]) == (4, "Test", {"a": "1"})


async def wait_for_one_request(operator: Operator) -> None:
    """Let other tasks run for the duration of one request."""
    await operator.request("GET", "/version")
