"""Concurrent writers: several tasks increment a counter in one object, and no increment is lost.

Each writer reads the object, changes it, and writes it back with the version that it has read. If
another writer was faster, the server answers 409 (conflict), and the writer starts again with a
read.

python examples/retry_on_conflict.py [--kubeconfig FILE]
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

from aioinformer import Client
from aioinformer.client import ResourceClient
from aioinformer.models import core_v1
from aioinformer.workqueue import RetryBackoff, retry_on_conflict

import cluster

NAME = "aioinformer-example-counter"
WRITERS = 4
TIMES = 5

#: Four writers collide so often that the five attempts of the default are not enough.
PATIENT = RetryBackoff(steps=50, initial=0.01, factor=1.5, jitter=1.0, cap=0.2)


class Counter:
    def __init__(self, config_maps: ResourceClient[core_v1.ConfigMap]) -> None:
        self.config_maps = config_maps
        self.tries = 0

    async def read(self) -> dict[str, Any]:
        return (await self.config_maps.get(NAME)).to_dict()

    async def increment(self) -> None:
        self.tries += 1
        counter = await self.read()  # read again in each attempt: the old version conflicts
        counter["data"]["count"] = str(int(counter["data"]["count"]) + 1)
        await self.config_maps.replace(counter)

    async def write(self) -> None:
        for _ in range(TIMES):
            await retry_on_conflict(self.increment, PATIENT)


async def main(arguments: argparse.Namespace) -> None:
    async with cluster.connect(arguments) as transport:
        config_maps = Client(transport, namespace="default").core.v1.configmaps
        counter = Counter(config_maps)
        await cluster.create(config_maps, {"metadata": {"name": NAME}, "data": {"count": "0"}})
        try:
            async with asyncio.TaskGroup() as writers:
                for number in range(WRITERS):
                    writers.create_task(counter.write(), name=f"writer {number}")
            count = (await counter.read())["data"]["count"]
            print(f"{WRITERS} writers counted to {count}, in {counter.tries} attempts")
        finally:
            await config_maps.delete(NAME)


if __name__ == "__main__":
    cluster.run(main, __doc__)
