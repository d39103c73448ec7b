"""A program that measures steps of a task on a busy core: `python -m tests.system.controller.busy_core`.

It prints how long the longest step took, how long the longest one computed, and the blocks that were reported.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import time

from aioinformer.handlers.stalls import Stalls, Steps

OTHERS = 6


def compute(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def main() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    others = [multiprocessing.Process(target=compute, args=(20.0,), daemon=True) for _ in range(OTHERS)]
    for each in others:
        each.start()
    longest = busiest = 0.0

    async def task() -> None:
        nonlocal longest, busiest
        for _ in range(10):
            began, ran = time.perf_counter(), time.thread_time()
            compute(0.03)
            longest = max(longest, time.perf_counter() - began)
            busiest = max(busiest, time.thread_time() - ran)
            await asyncio.sleep(0)

    reported: list[float] = []
    try:
        for _ in Steps(task(), Stalls("it"), reported.append):
            pass
    finally:
        for each in others:
            each.kill()
            each.join()
    print(json.dumps({"longest": longest, "busiest": busiest, "reported": reported}))


if __name__ == "__main__":
    main()
