"""Count the resources of this process that can leak."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from pathlib import Path
from typing import Any

_PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024
_OPEN_FILES = Path("/proc/self/fd")


def census() -> dict[str, Any]:
    """Return resident memory, tasks, open files, sockets, threads, objects of the garbage collector, and CPU time."""
    gc.collect()
    times = os.times()
    links = [_target(each) for each in list(_OPEN_FILES.iterdir())]
    return {
        "rss_kib": int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_KIB,
        "tasks": len(asyncio.all_tasks()),
        "files": len([link for link in links if link]),
        "sockets": sockets(),
        "threads": threading.active_count(),
        "objects": len(gc.get_objects()),
        "cpu_seconds": round(times.user + times.system, 2),
    }


def sockets() -> int:
    """Return the number of open sockets."""
    return sum(_target(each).startswith("socket:") for each in list(_OPEN_FILES.iterdir()))


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:  # the descriptor that was used to read the folder
        return ""
