"""Peers that neither answer the end of a TLS connection nor close it, and whether anything is left open then."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.support.loopback import certified

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Coroutine, Iterator

    import trustme


@contextmanager
def silent_server(authority: trustme.CA) -> Iterator[str]:
    """Serve one request at a URL, with `Connection: close`, and fall silent."""
    tls = certified(authority)
    ended = threading.Event()

    def serve() -> None:
        accepted, _ = listener.accept()
        with tls.wrap_socket(accepted, server_side=True) as connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
            ended.wait(50)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, name="silent server")
        thread.start()
        try:
            yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            ended.set()
            thread.join()


class SilentClients:
    """Clients that send a request, and fall silent after the beginning of the answer. A context manager."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> SilentClients:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for each in self._threads:
            each.join()

    async def request(self, port: int | None, tls: ssl.SSLContext, headers: str = "") -> None:
        """Let another client send a request, and return when the answer has begun."""
        answered = threading.Event()

        def run() -> None:
            with (
                socket.create_connection(("127.0.0.1", port)) as raw,
                tls.wrap_socket(raw, server_hostname="127.0.0.1") as connection,
            ):
                connection.sendall(f"GET /version HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())
                assert connection.recv(12) == b"HTTP/1.1 200"
                answered.set()
                self._ended.wait(50)

        self._threads.append(threading.Thread(target=run, name="silent client"))
        self._threads[-1].start()
        assert await asyncio.to_thread(answered.wait, 50)


def left_open(main: Callable[[], Coroutine[Any, Any, None]]) -> list[str]:
    """Return what Python warns of after `asyncio.run`: what a user sees with `python -X dev`."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        asyncio.run(main())
        gc.collect()
    return [str(each.message) for each in found]
