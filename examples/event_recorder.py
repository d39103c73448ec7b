"""Events: record what a controller does to an object.

The program records one Event for each new pod, and one for each change of a pod's phase. Recording
does not block. Repetitions are counted and not written again. At the end, it reads the Events
back.

python examples/event_recorder.py [--kubeconfig FILE] [--duration SECONDS]
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from aioinformer import (
    EventBroadcaster,
    ListPager,
    ListWatch,
    Resource,
    SharedIndexInformer,
    discover_event_sink,
)
from aioinformer.events import Recorder

import cluster

if TYPE_CHECKING:
    from kubernetes_asyncio.client import V1Pod

PODS: Resource[V1Pod] = Resource("", "v1", "pods", kind="Pod", model="V1Pod")
EVENTS: Resource[Any] = Resource(
    "events.k8s.io", "v1", "events", kind="Event", model="EventsV1Event"
)
CONTROLLER = "example.com/watcher"


class Watcher:
    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def on_add(self, pod: V1Pod) -> None:
        self.recorder.event(pod, "Normal", "Seen", "the pod is in the cache")

    def on_update(self, old: V1Pod, new: V1Pod) -> None:
        if old.status.phase != new.status.phase:
            phases = (old.status.phase, new.status.phase)
            self.recorder.eventf(new, "Normal", "PhaseChanged", "%s -> %s", *phases)


async def main(arguments: argparse.Namespace) -> None:
    async with cluster.connect(arguments) as transport:
        informer = SharedIndexInformer(ListWatch(transport, PODS))
        async with EventBroadcaster() as broadcaster:
            recording = broadcaster.start_recording_to_sink(await discover_event_sink(transport))
            informer.add_event_handler(Watcher(broadcaster.new_recorder(CONTROLLER)))
            async with informer:
                await informer.wait_for_sync()
                await cluster.pause(arguments)
        print(recording.statistics())
        for event in await ListPager(ListWatch(transport, EVENTS)).list():
            if event.reporting_controller == CONTROLLER:
                times = event.series.count if event.series else 1
                pod = f"{event.regarding.namespace}/{event.regarding.name}"
                print(f"{pod}: {event.reason} x{times}: {event.note}")


if __name__ == "__main__":
    cluster.run(main, __doc__)
