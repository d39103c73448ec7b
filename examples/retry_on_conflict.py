"""Writes that collide: several writers count in one object, and none of their counts is lost.

Each reads the object, changes it, and writes it back under the version that it has read. If somebody else was faster
the server answers with a conflict, and the writer begins again, from reading on.

python examples/retry_on_conflict.py [--kubeconfig FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

from aioinformer.transport import Request, Transport
from aioinformer.transport.exchange import exchange
from aioinformer.workqueue.retry import RetryBackoff, retry_on_conflict

import cluster

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
NAME = "aioinformer-example-counter"
WRITERS = 4
TIMES = 5

#: Four writers who do nothing else collide more often than five tries are enough for.
PATIENT = RetryBackoff(steps=50, initial=0.01, factor=1.5, jitter=1.0, cap=0.2)


class Counter:
    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.tries = 0

    async def read(self) -> dict[str, Any]:
        return await exchange(self.transport, Request(f"{CONFIG_MAPS}/{NAME}"), "ConfigMap")

    async def increment(self) -> None:
        self.tries += 1
        counter = await self.read()  # anew for each try: what was read before is what conflicts
        counter["data"]["count"] = str(int(counter["data"]["count"]) + 1)
        body = json.dumps(counter).encode()
        headers = {"Content-Type": "application/json"}
        await exchange(self.transport, Request(f"{CONFIG_MAPS}/{NAME}", (), "PUT", headers, body), "ConfigMap")

    async def write(self) -> None:
        for _ in range(TIMES):
            await retry_on_conflict(self.increment, PATIENT)


async def main(arguments: argparse.Namespace) -> None:
    async with cluster.connect(arguments) as transport:
        counter = Counter(transport)
        await cluster.create(transport, CONFIG_MAPS, {"metadata": {"name": NAME}, "data": {"count": "0"}})
        try:
            async with asyncio.TaskGroup() as writers:
                for number in range(WRITERS):
                    writers.create_task(counter.write(), name=f"writer {number}")
            count = (await counter.read())["data"]["count"]
            print(f"{WRITERS} writers counted to {count}, in {counter.tries} tries")
        finally:
            await cluster.send(transport, "DELETE", f"{CONFIG_MAPS}/{NAME}")


if __name__ == "__main__":
    cluster.run(main, __doc__)
