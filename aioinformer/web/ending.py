"""When does the server that accepted a stream end? A stream has no end of its own, and servers wait for its end.

At SIGTERM, uvicorn and hypercorn close their listeners, wait for all responses, and only then end the lifespan. The
specification of ASGI has no message that says so. So while there are streams, the servers of this process are looked at
four times a second: these are what listens at the port of the stream. Signals are not touched: those of the servers,
of the program and of gunicorn stay as they are.

The servers are found once, among the objects of the garbage collector: this takes about 0.1 s for a million objects. A
server of uvloop is not among them; that of uvicorn or hypercorn, which owns it, is.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable
from typing import Any, Final

#: Seconds between two looks.
_PERIOD: Final = 0.25


class Ending:
    """Calls a function when the server ends that accepted the streams, and looks only while there are some.

    Args:
        end: ends all streams.
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end
        self._open = 0
        self._timer: asyncio.TimerHandle | None = None
        #: Whether one of the servers ends, by the port that it listens on.
        self._tests: dict[int | None, list[Callable[[], bool]]] = {}

    def opened(self, port: int | None) -> None:
        """Count a stream.

        Args:
            port: of the server; None if it is not known.
        """
        if port not in self._tests:
            self._tests[port] = servers_at(port)
        self._open += 1
        if self._timer is None:
            self._look_later()

    def closed(self) -> None:
        """Count a stream that has ended."""
        self._open -= 1
        if not self._open:
            self._tests.clear()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_PERIOD, self._look)

    def _look(self) -> None:
        self._look_later()
        if any(ends() for tests in self._tests.values() for ends in tests):
            self._end()


def servers_at(port: int | None) -> list[Callable[[], bool]]:
    """Return for each server of the running loop that listens at a port whether it ends.

    Args:
        port: None for any.
    """
    loop = asyncio.get_running_loop()
    uvicorn = _class_of("uvicorn.server", "Server")
    context = _class_of("hypercorn.asyncio.worker_context", "WorkerContext")
    found: list[Callable[[], bool]] = []
    for each in gc.get_objects():
        kind = type(each)
        if issubclass(kind, asyncio.Server):
            if each.is_serving() and each.get_loop() is loop and port in (None, *_ports(each)):
                found.append(_stops_to_listen(each))
        elif issubclass(kind, uvicorn):
            if port in (None, *(number for server in getattr(each, "servers", ()) for number in _ports(server))):
                found.append(_should_exit(each))
        elif issubclass(kind, context):
            found.append(each.terminated.is_set)
    return found


def _class_of(module: str, name: str) -> type[Any]:
    """Return a class of a module that is loaded; otherwise one without objects."""
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) else type(name, (), {})


def _ports(server: Any) -> list[int]:
    addresses = [each.getsockname() for each in server.sockets]
    return [each[1] for each in addresses if isinstance(each, tuple)]


def _stops_to_listen(server: asyncio.Server) -> Callable[[], bool]:
    return lambda: not server.is_serving()


def _should_exit(server: Any) -> Callable[[], bool]:
    return lambda: bool(server.should_exit)
