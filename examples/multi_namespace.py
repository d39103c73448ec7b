"""One informer over several namespaces, for users who may not read all of them.

There is one cache. Each handler receives its notifications in one sequence. When you remove a
namespace, handlers receive a delete for each of its objects.

python examples/multi_namespace.py [--kubeconfig FILE]
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

from aioinformer import Client, ListWatch
from aioinformer.factory import MultiNamespaceInformer
from aioinformer.models import core_v1
from aioinformer.resources import deletion_handling_object_name

import cluster

NAMESPACES = ["default", "kube-public"]
LABELS = {"example": "multi-namespace"}
SELECTOR = "example=multi-namespace"


async def main(arguments: argparse.Namespace) -> None:
    async with cluster.connect(arguments) as transport:
        config_maps = Client(transport).core.v1.configmaps
        for namespace in NAMESPACES:
            body = {"metadata": {"name": "of-many", "labels": LABELS}}
            await cluster.create(config_maps.namespaced(namespace), body)

        informer = MultiNamespaceInformer(
            lambda namespace: ListWatch(transport, core_v1.CONFIG_MAPS, namespace, SELECTOR),
            NAMESPACES[:1],
        )
        gone = asyncio.Event()

        def on_delete(obj: Any) -> None:
            print(f"deleted: {deletion_handling_object_name(obj)}")
            gone.set()

        def show(what: str) -> None:
            print(f"{what}: {', '.join(sorted(informer.get_store().list_keys()))}")

        def on_add(obj: core_v1.ConfigMap) -> None:
            print(f"added: {obj.metadata.namespace}/{obj.metadata.name}")

        informer.add_event_handler(on_add=on_add, on_delete=on_delete)
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
                await config_maps.delete(f"{namespace}/of-many")


if __name__ == "__main__":
    cluster.run(main, __doc__)
