"""The quick start: follow the pods of a cluster, and ask the cache about them.

python examples/quickstart.py [--kubeconfig FILE] [--duration SECONDS]
"""

from __future__ import annotations

import argparse

from aioinformer import SharedInformerFactory

import cluster


async def main(arguments: argparse.Namespace) -> None:
    async with cluster.connect(arguments) as transport, SharedInformerFactory(transport) as factory:
        pods = factory.core.v1.pods
        pods.informer().add_event_handler(
            on_add=lambda pod: print(f"+ {pod.metadata.namespace}/{pod.metadata.name}"),
            on_update=lambda old, new: print(f"~ {new.metadata.namespace}/{new.metadata.name} is {new.status.phase}"),
            on_delete=lambda pod: print(f"- {pod.metadata.namespace}/{pod.metadata.name}"),
        )
        factory.start()
        await factory.wait_for_cache_sync()
        print(f"{len(pods.lister().list())} pods are in the cache")
        await cluster.pause(arguments)


if __name__ == "__main__":
    cluster.run(main, __doc__)
