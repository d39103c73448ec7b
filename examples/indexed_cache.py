"""An indexed cache: find the pods of a node, and the pods that run an image, without a request.

An index function returns the values under which an object is found. The informer calls it once for
each version of an object. The cost of a lookup depends on its result, not on the size of the
cache.

python examples/indexed_cache.py [--kubeconfig FILE]
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from aioinformer import SharedInformerFactory

import cluster

if TYPE_CHECKING:
    from kubernetes_asyncio.client import V1Pod


def by_node(pod: V1Pod) -> list[str]:
    return [pod.spec.node_name] if pod.spec.node_name else []


def by_image(pod: V1Pod) -> list[str]:
    return [container.image for container in pod.spec.containers]


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
