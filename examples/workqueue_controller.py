"""A controller: handlers put keys into a queue, workers take them out and read the cache.

Several changes of an object before its work begins cause one piece of work, because a key is in
the queue only once and the cache has the latest state. Two workers never process the same key at
the same time. Failed work is retried five times with exponential backoff.

The controller only prints pods. On the embedded server, some of its work fails on purpose.

python examples/workqueue_controller.py [--kubeconfig FILE] [--duration SECONDS]
"""

from __future__ import annotations

import argparse
import asyncio

from aioinformer import Lister, ListWatch, NotFound, RateLimitingQueue, SharedIndexInformer
from aioinformer.models import core_v1
from aioinformer.resources import ObjectName, deletion_handling_object_name, object_name

import cluster

WORKERS = 2
MOST_RETRIES = 5


class Controller:
    def __init__(self, informer: SharedIndexInformer[core_v1.Pod]) -> None:
        self.queue: RateLimitingQueue[ObjectName] = RateLimitingQueue(name="pods")
        self.pods: Lister[core_v1.Pod] = informer.lister()
        informer.add_event_handler(
            on_add=lambda pod: self.queue.add(object_name(pod)),
            on_update=lambda old, new: self.queue.add(object_name(new)),
            on_delete=lambda pod: self.queue.add(deletion_handling_object_name(pod)),
        )

    async def work(self) -> None:
        async for key in self.queue:
            try:
                await self.reconcile(key)
            except Exception as error:
                self.failed(key, error)
            else:
                self.queue.forget(key)

    def failed(self, key: ObjectName, error: Exception) -> None:
        retries = self.queue.num_requeues(key)
        if retries < MOST_RETRIES:
            print(f"failed  {key}: {error} (retry {retries + 1} of {MOST_RETRIES})")
            self.queue.add_rate_limited(key)
        else:
            print(f"dropped {key}: {error}")
            self.queue.forget(key)

    async def reconcile(self, key: ObjectName) -> None:
        try:
            pod = self.pods.namespaced(key.namespace).get(key.name)
        except NotFound:
            print(f"deleted {key}")
            return
        await asyncio.sleep(0)  # for example, a request
        node = pod.spec.node_name if pod.spec else None
        if not node:
            raise LookupError("the pod has no node yet")
        print(f"synced  {key} on {node}")


async def main(arguments: argparse.Namespace) -> None:
    async with cluster.connect(arguments) as transport:
        informer = SharedIndexInformer(ListWatch(transport, core_v1.PODS))
        controller = Controller(informer)
        async with informer, asyncio.TaskGroup() as workers, controller.queue:
            await informer.wait_for_sync()
            for number in range(WORKERS):
                workers.create_task(controller.work(), name=f"worker {number}")
            await cluster.pause(arguments)
        statistics = controller.queue.statistics()
        print(f"{statistics.adds} keys were queued, {statistics.retries} of them as retries")


if __name__ == "__main__":
    cluster.run(main, __doc__)
