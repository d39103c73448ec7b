"""Take away from Python and asyncio what Windows lacks: `lack_what_windows_lacks()`. For the rest of the process.

What other packages import at their start is there: on Windows, they do without it.
"""

from __future__ import annotations

import asyncio
import builtins
import importlib
import os
import select
import signal
import socket
import time
from typing import Any, Final

MODULES: Final = frozenset({"fcntl", "grp", "pwd", "resource", "termios", "tty", "uvloop"})
NAMES: Final[dict[Any, tuple[str, ...]]] = {
    os: (
        *("O_CLOEXEC", "O_NONBLOCK", "fchmod", "fork", "getpgid", "getuid", "geteuid", "killpg", "memfd_create"),
        *("sched_getaffinity", "setsid", "sysconf", "uname"),
    ),
    select: ("PIPE_BUF", "poll"),
    signal: ("SIGHUP", "SIGKILL", "SIGUSR1", "SIGUSR2"),
    socket: ("SO_RCVLOWAT", "TCP_USER_TIMEOUT"),
    time: ("CLOCK_BOOTTIME", "clock_gettime"),
}
#: Imported while everything is there.
OTHERS: Final = (
    *("aiohttp", "anyio", "click", "cryptography", "google.protobuf", "kubernetes_asyncio", "msgspec"),
    *("prometheus_client", "rich.console", "rich.live", "subprocess", "tempfile", "trustme", "yaml"),
)


def lack_what_windows_lacks() -> None:
    for name in OTHERS:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    whole = builtins.__import__

    def importing(name: str, globals: Any = None, *arguments: Any, **options: Any) -> Any:
        importer = (globals or {}).get("__name__") or ""
        if name in MODULES and importer.partition(".")[0] == "aioinformer":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return whole(name, globals, *arguments, **options)

    builtins.__import__ = importing
    for module, names in NAMES.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    asyncio.set_event_loop_policy(_Policy())


class _Loop(asyncio.SelectorEventLoop):
    """Like the one of Windows: it handles no signals, though each one wakes it, and watches no descriptors."""

    def __init__(self) -> None:
        super().__init__()
        wake: Any = self
        signal.set_wakeup_fd(wake._csock.fileno())

    def close(self) -> None:
        signal.set_wakeup_fd(-1)
        super().close()

    def _refuse(*arguments: Any) -> Any:
        raise NotImplementedError

    refuse: Any = _refuse
    add_signal_handler = remove_signal_handler = refuse
    add_reader = add_writer = refuse


class _Policy(asyncio.DefaultEventLoopPolicy):
    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return _Loop()
