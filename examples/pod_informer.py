"""One informer without a factory, with three handler functions and a resync every minute.

A handler may be a coroutine function, as `on_update` is here. Only the next notification of the
same handler waits for it. If the informer missed a deletion while the connection was down,
`on_delete` receives a `DeletedFinalStateUnknown` with the last known state.

python examples/pod_informer.py [--kubeconfig FILE] [--duration SECONDS]
"""

from __future__ import annotations

import argparse
import asyncio

from aioinformer import (
    DeletedFinalStateUnknown,
    ListWatch,
    SharedIndexInformer,
    meta_namespace_key_func,
)
from aioinformer.models import core_v1

import cluster

ONE_MINUTE = 60.0


def phase(pod: core_v1.Pod) -> str | None:
    return pod.status.phase if pod.status else None


def on_add(pod: core_v1.Pod) -> None:
    node = pod.spec.node_name if pod.spec else None
    print(f"added    {meta_namespace_key_func(pod)} on {node or 'no node yet'}")


async def on_update(old: core_v1.Pod, new: core_v1.Pod) -> None:
    if old.metadata.resource_version == new.metadata.resource_version:
        print(f"resynced {meta_namespace_key_func(new)}")
    else:
        await asyncio.sleep(0)  # for example, a request
        print(f"updated  {meta_namespace_key_func(new)}: {phase(old)} -> {phase(new)}")


def on_delete(pod: core_v1.Pod | DeletedFinalStateUnknown[core_v1.Pod]) -> None:
    if isinstance(pod, DeletedFinalStateUnknown):
        print(f"deleted  {pod.key} (missed)")
    else:
        print(f"deleted  {meta_namespace_key_func(pod)}")


async def main(arguments: argparse.Namespace) -> None:
    async with cluster.connect(arguments) as transport:
        informer = SharedIndexInformer(ListWatch(transport, core_v1.PODS), resync_period=ONE_MINUTE)
        informer.add_event_handler(on_add=on_add, on_update=on_update, on_delete=on_delete)
        async with informer:
            await cluster.pause(arguments)


if __name__ == "__main__":
    cluster.run(main, __doc__)
