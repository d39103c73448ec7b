"""Events: record what a controller does to an object.

The program records one Event for each new pod, and one for each change of a pod's phase. Recording
does not block. Repetitions are counted and not written again. At the end, it reads the Events
back.

python examples/event_recorder.py [--kubeconfig FILE] [--duration SECONDS]
"""

from __future__ import annotations

import argparse

from aioinformer import ListWatch, SharedIndexInformer
from aioinformer.events import EventBroadcaster, Recorder, discover_event_sink
from aioinformer.models import core_v1, events_v1
from aioinformer.reflector import ListPager

import cluster

CONTROLLER = "example.com/watcher"


def phase(pod: core_v1.Pod) -> str | None:
    return pod.status.phase if pod.status else None


class Watcher:
    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def on_add(self, pod: core_v1.Pod) -> None:
        self.recorder.event(pod, "Normal", "Seen", "the pod is in the cache")

    def on_update(self, old: core_v1.Pod, new: core_v1.Pod) -> None:
        phases = (phase(old), phase(new))
        if phases[0] != phases[1]:
            self.recorder.eventf(new, "Normal", "PhaseChanged", "%s -> %s", *phases)


async def main(arguments: argparse.Namespace) -> None:
    async with cluster.connect(arguments) as transport:
        informer = SharedIndexInformer(ListWatch(transport, core_v1.PODS))
        async with EventBroadcaster() as broadcaster:
            recording = broadcaster.start_recording_to_sink(await discover_event_sink(transport))
            informer.add_event_handler(Watcher(broadcaster.new_recorder(CONTROLLER)))
            async with informer:
                await informer.wait_for_sync()
                await cluster.pause(arguments)
        print(recording.statistics())
        for event in await ListPager(ListWatch(transport, events_v1.EVENTS)).list():
            if event.reporting_controller == CONTROLLER and event.regarding:
                times = event.series.count if event.series else 1
                pod = f"{event.regarding.namespace}/{event.regarding.name}"
                print(f"{pod}: {event.reason} x{times}: {event.note}")


if __name__ == "__main__":
    cluster.run(main, __doc__)
