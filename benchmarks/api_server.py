"""Serve many pods with the API server of `aioinformer.testing`, for benchmarks of the server itself.

    python benchmarks/api_server.py --pods 50000

The first line on stdout is the URL. The ConfigMap `default/server` contains the process id and the CPU time for loading
the pods. The program accepts and ignores the other arguments of a load server.

A ConfigMap `default/changes` that is created lets the server change pods, one after the other: `rate` of them a second,
for `seconds`. Each `visible`th change sets the annotation `at` to "~NUMBER:TIME", with the seconds of the monotonic
clock, and each other one the annotation `checked`. In the end, the ConfigMap has the numbers of changes as `made`, of
those of `at` as `shown`, and the seconds that they took as `took`.

The pods are excluded from garbage collection (`gc.freeze`), as a server process may do. Otherwise each full collection
would take 0.2 s.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import signal
from itertools import count
from time import monotonic, process_time

from aioinformer.testing import ApiServer, populate


async def change_on_request(server: ApiServer) -> None:
    """Change pods as often as the ConfigMap is created."""
    numbers = count(int(process_time() * 1000))
    while True:
        await asyncio.sleep(0.1)
        wanted = [each for each in server.list("configmaps", "default") if each["metadata"]["name"] == "changes"]
        if not wanted or "made" in wanted[0]["data"]:
            continue
        data = wanted[0]["data"]
        told = await change(server, numbers, float(data["rate"]), float(data["seconds"]), int(data["visible"]))
        server.patch("configmaps", "changes", {"data": told}, "default")


async def change(server: ApiServer, numbers: count[int], rate: float, seconds: float, visible: int) -> dict[str, str]:
    """Change a pod at each time that is due; return what the ConfigMap has in the end."""
    keys = [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in server.list("pods")]
    began = monotonic()
    made = shown = 0
    while monotonic() - began < seconds:
        await asyncio.sleep(began + made / rate - monotonic())
        number = next(numbers)
        namespace, name = keys[number * 7 % len(keys)]
        is_shown = number % visible == 0
        annotation = "at" if is_shown else "checked"
        patch = {"metadata": {"annotations": {annotation: f"~{number}:{monotonic():.6f}"}}}
        server.patch("pods", name, patch, namespace)
        made += 1
        shown += is_shown
    return {"made": str(made), "shown": str(shown), "took": str(monotonic() - began)}


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
        changing = asyncio.create_task(change_on_request(server), name="changes")
        await stop.wait()
        changing.cancel()
        await asyncio.wait({changing})


if __name__ == "__main__":
    asyncio.run(main())
