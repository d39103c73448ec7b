"""One informer of some namespaces, which may come and go: for those who may not read all of them.

There is one cache, and one line of notifications for each handler. What is in a namespace that is not looked at any
more is told as gone.

python examples/multi_namespace.py [--kubeconfig FILE]
"""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING, Any

from aioinformer import ListWatch, Resource, deletion_handling_object_name
from aioinformer.factory.multi_namespace import MultiNamespaceInformer

import cluster

if TYPE_CHECKING:
    from kubernetes_asyncio.client import V1ConfigMap

CONFIG_MAPS: Resource[V1ConfigMap] = Resource("", "v1", "configmaps", kind="ConfigMap", model="V1ConfigMap")
NAMESPACES = ["default", "kube-public"]
LABELS = {"example": "multi-namespace"}


async def main(arguments: argparse.Namespace) -> None:
    async with cluster.connect(arguments) as transport:
        for namespace in NAMESPACES:
            body = {"metadata": {"name": "of-many", "labels": LABELS}}
            await cluster.create(transport, CONFIG_MAPS.path(namespace), body)

        informer = MultiNamespaceInformer(
            lambda namespace: ListWatch(transport, CONFIG_MAPS, namespace, label_selector="example=multi-namespace"),
            NAMESPACES[:1],
        )
        gone = asyncio.Event()

        def on_delete(obj: Any) -> None:
            print(f"gone: {deletion_handling_object_name(obj)}")
            gone.set()

        def show(what: str) -> None:
            print(f"{what}: {', '.join(sorted(informer.get_store().list_keys()))}")

        informer.add_event_handler(
            on_add=lambda obj: print(f"there: {obj.metadata.namespace}/{obj.metadata.name}"), on_delete=on_delete
        )
        try:
            async with informer:
                await informer.wait_for_sync()
                show("one namespace")
                await informer.add_namespace(NAMESPACES[1])
                show("two namespaces")
                await informer.remove_namespace(NAMESPACES[0])
                show("the other namespace")
                await gone.wait()
        finally:
            for namespace in NAMESPACES:
                await cluster.send(transport, "DELETE", CONFIG_MAPS.path(namespace, "of-many"))


if __name__ == "__main__":
    cluster.run(main, __doc__)
