"""Follow the pods of a cluster, and read them from the cache.

python examples/quickstart.py [--kubeconfig FILE] [--duration SECONDS]
"""

from __future__ import annotations

import argparse

from aioinformer import SharedInformerFactory
from aioinformer.models import core_v1
from aioinformer.resources import deletion_handling_meta_namespace_key_func as key_of

import cluster


def phase(pod: core_v1.Pod) -> str | None:
    return pod.status.phase if pod.status else None


async def main(arguments: argparse.Namespace) -> None:
    async with (
        cluster.connect(arguments) as transport,
        SharedInformerFactory(transport) as factory,
    ):
        pods = factory.core.v1.pods
        pods.informer().add_event_handler(
            on_add=lambda pod: print(f"+ {key_of(pod)}"),
            on_update=lambda old, new: print(f"~ {key_of(new)} is {phase(new)}"),
            on_delete=lambda pod: print(f"- {key_of(pod)}"),
        )
        factory.start()
        await factory.wait_for_cache_sync()
        print(f"{len(pods.lister().list())} pods are in the cache")
        await cluster.pause(arguments)


if __name__ == "__main__":
    cluster.run(main, __doc__)
