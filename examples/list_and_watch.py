"""List and watch without a cache: a list in pages, and a watch until an event arrives.

The pager yields objects as they arrive, and stores none of them. The watch begins at the version
of the list, and resumes after a lost connection. The program waits for the pod that it creates,
then for its deletion.

python examples/list_and_watch.py [--kubeconfig FILE]
"""

from __future__ import annotations

import argparse
import asyncio
from contextlib import aclosing

from aioinformer import Client, ListWatch
from aioinformer.informer import ObjectEvent, RetryWatcher, until
from aioinformer.models import core_v1
from aioinformer.reflector import ListPager

import cluster

NAME = "aioinformer-example"


def is_ours(event: ObjectEvent[core_v1.Pod]) -> bool:
    return event.object.metadata.name == NAME


async def main(arguments: argparse.Namespace) -> None:
    async with cluster.connect(arguments) as transport:
        pods = ListWatch(transport, core_v1.PODS)
        pager = ListPager(pods, page_size=5)
        count = 0
        async with aclosing(pager.each()) as listed:
            async for pod in listed:
                count += 1
                if count <= 3:
                    print(f"listed {pod.metadata.namespace}/{pod.metadata.name}")
        print(f"{count} pods")

        container = {"name": "main", "image": "example.com/none"}
        body = {"metadata": {"name": NAME}, "spec": {"containers": [container]}}
        async with RetryWatcher(pods, pager.resource_version) as events, asyncio.timeout(60):
            writer = Client(transport, namespace="default").core.v1.pods
            await cluster.create(writer, body)
            event = await until(events, lambda event: is_ours(event) and event.type == "ADDED")
            print(f"{event.type} {NAME}")
            await writer.delete(NAME, grace=0)
            event = await until(events, lambda event: is_ours(event) and event.type == "DELETED")
            print(f"{event.type} {NAME}")


if __name__ == "__main__":
    cluster.run(main, __doc__)
