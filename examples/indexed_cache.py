"""An indexed cache: find the pods of a node, and the pods that run an image, without a request.

An index function returns the values under which an object is found. The informer calls it once for
each version of an object. The cost of a lookup depends on its result, not on the size of the
cache.

python examples/indexed_cache.py [--kubeconfig FILE]
"""

from __future__ import annotations

import argparse

from aioinformer import SharedInformerFactory
from aioinformer.models import core_v1

import cluster


def by_node(pod: core_v1.Pod) -> list[str]:
    return [pod.spec.node_name] if pod.spec and pod.spec.node_name else []


def by_image(pod: core_v1.Pod) -> list[str]:
    containers = pod.spec.containers if pod.spec else ()
    return [container.image for container in containers if container.image]


async def main(arguments: argparse.Namespace) -> None:
    async with (
        cluster.connect(arguments) as transport,
        SharedInformerFactory(transport) as factory,
    ):
        informer = factory.core.v1.pods.informer()
        informer.add_indexers({"node": by_node, "image": by_image})
        factory.start()
        await factory.wait_for_cache_sync()

        pods = informer.get_indexer()
        for index in ("node", "image"):
            for value in sorted(pods.list_index_func_values(index)):
                print(f"{index} {value}: {', '.join(pods.index_keys(index, value))}")


if __name__ == "__main__":
    cluster.run(main, __doc__)
