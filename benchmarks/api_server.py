"""The API server of `aioinformer.testing` with many pods, for questions about the server itself.

    python benchmarks/api_server.py --pods 50000

The first line on stdout is its URL. Its config map `default/server` says which process it is, and what it took to fill
it; other arguments of a load server are accepted and not used.

Python's garbage collector is told to leave the pods alone, as a server's own process may: otherwise it would look at
all of them again and again, 0.2 s each time.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import signal
from time import process_time

from aioinformer.testing import ApiServer
from aioinformer.testing.population import populate


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=50_000)
    pods = parser.parse_known_args()[0].pods
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with ApiServer(seed=1) as server:
        gc.disable()
        begin = process_time()
        await populate(server, pods)
        facts = {"pid": str(os.getpid()), "populate_cpu_seconds": str(process_time() - begin)}
        server.create("configmaps", {"metadata": {"name": "server"}, "data": facts})
        gc.freeze()
        gc.enable()
        print(server.url, flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(main())
