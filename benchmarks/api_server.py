"""Serve many pods with the API server of `aioinformer.testing`, for benchmarks of the server itself.

    python benchmarks/api_server.py --pods 50000

The first line on stdout is the URL. The ConfigMap `default/server` contains the process id and the CPU time for loading
the pods. The program accepts and ignores the other arguments of a load server.

The pods are excluded from garbage collection (`gc.freeze`), as a server process may do. Otherwise each full collection
would take 0.2 s.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import signal
from time import process_time

from aioinformer.testing import ApiServer, populate


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=50_000, help="number of pods")
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
