"""What a measured controller reports: the first run of each key since the last command, by lines on stdin and stdout.

The commands are those of `controller_process.py`: "expect BEFORE MEASURED", "again" and "usage". This file needs
nothing but the standard library, because programs of other environments use it.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import os
import sys
import threading
from contextlib import suppress
from time import perf_counter, process_time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def rss_kib() -> float:
    """Return the resident memory of the process, after returning unused memory to the system."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024


class Runs:
    """Notes runs of a reconciler, and the CPU time from one to another.

    Attributes:
        again: requests a run of a key; None if the program cannot.
    """

    def __init__(self) -> None:
        self.again: Callable[[str], None] | None = None
        self._count = 0
        self._keys: set[str] = set()
        self._expect(0, 0)

    def begin(self) -> None:
        """Obey the first command, and then all others. The process exits at the end of stdin."""
        self._obey(sys.stdin.readline())
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(loop,), name="commands", daemon=True).start()

    def note(self, key: str) -> None:
        """Note one run."""
        self._count += 1
        if len(self._times) == self._last or key in self._times:
            return
        self._times[key] = perf_counter()
        self._keys.add(key)
        count = len(self._times)
        if count == self._first:
            self._cpu = process_time()
        elif count == self._last:
            cpu = process_time() - self._cpu
            _answer({"cpu": cpu, "keys": list(self._times), "times": list(self._times.values())})

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(self._obey, line)
        os._exit(0)  # tasks of some libraries do not end by themselves

    def _obey(self, line: str) -> None:
        match line.split():
            case ["expect", before, measured]:
                self._expect(int(before), int(measured))
                _answer({})
            case ["again"] if self.again is not None:
                for key in self._keys:
                    self.again(key)
            case ["usage"]:
                rss = rss_kib()
                _answer({"runs": self._count, "cpu": process_time(), "rss_kib": rss})
            case _:
                sys.exit(f"unknown command {line!r}")

    def _expect(self, before: int, measured: int) -> None:
        self._first, self._last = before, before + measured
        self._times: dict[str, float] = {}
        self._cpu = process_time()


def _answer(value: object) -> None:
    print(json.dumps(value), flush=True)
