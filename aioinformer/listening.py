"""A port of a manager: it accepts connections with deadlines and below a cap, so that no client can occupy it.

A connection is in one of three states. It is `opening` from the accept until its first request is complete: TLS, header
and body. Then it is `answering` and `waiting` by turns. For a connection above the cap, or if the process has no free
file, one is closed: the oldest that is opening, or else the one whose last answer is the oldest. One whose request is
complete is never closed for that: then no further one is accepted until one of them is answered.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from aioinformer.concurrency import create_task
from aioinformer.errors import UsageError
from aioinformer.handlers.repeated import QUIET, RepeatedErrors
from aioinformer.logs import get_logger
from aioinformer.serving import aiohttp_application
from aioinformer.transport.ends import OpenConnections

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    from aiohttp import web

    from aioinformer.serving import Respond

_log = get_logger("aioinformer.serving")

#: Seconds from the accept, or from the first byte of a later request, to the end of its header.
HEADER: Final = 10.0
#: Seconds for a body: the API server waits no longer for a webhook.
_BODY: Final = 30.0
#: Bytes of bodies that are not complete, of all connections: four of the largest reviews.
_BODIES: Final = 32 * 2**20
#: Seconds for a client to take what was sent to it.
_UNREAD: Final = 30.0
#: Seconds for which a connection waits for its next request. The API server closes those of webhooks after 90 s; if
#: this server were sooner, it could close one on which a review is under way.
_KEPT: Final = 120.0
#: Seconds for which a port that is left goes on: at least, after the last request, and at most. A Service sends new
#: connections to a pod that ends until all nodes have noticed it.
LEAVING: Final = (10.0, 3.0, 20.0)
_BACKLOG: Final = 1024
#: Seconds until the next try after a connection could not be accepted.
_PAUSE: Final = 0.1
_NO_FILES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class _Losses:
    """Counts connections that are not served, by reason, and logs them in at most one line a minute."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._counts: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None

    def count(self, reason: str) -> None:
        self._counts[reason] += 1
        if self._timer is None:
            self._log()

    def _log(self) -> None:
        self._timer = None
        if self._counts:
            reasons = ", ".join(f"{reason} ({count} times)" for reason, count in self._counts.items())
            _log.warning("%s: connections of clients were closed or not accepted: %s", self._what, reasons)
            self._counts.clear()
            self._timer = asyncio.get_running_loop().call_later(QUIET, self._log)

    def close(self) -> None:
        """Log what is counted."""
        if self._timer is not None:
            self._timer.cancel()
            self._log()
        if self._timer is not None:
            self._timer.cancel()


class _Connection(asyncio.Protocol):
    """A connection: passes what comes in to aiohttp's protocol, and keeps the deadlines."""

    def __init__(self, port: Port, http: asyncio.Protocol, sock: socket.socket) -> None:
        #: Of the request that is answered.
        self.body = b""
        #: All connections in the same state; None once it is closed.
        self.state: dict[_Connection, None] | None = None
        #: Opens it; cancelled to close it before that.
        self.opening: asyncio.Task[None] | None = None
        self._port = port
        self._http = http
        #: Until a transport owns it.
        self._sock: socket.socket | None = sock
        self._transport: asyncio.Transport | None = None
        self._accepted = asyncio.get_running_loop().time()
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    def abort(self) -> None:
        """Close it at once."""
        self.limit_reading(None)
        self.enter(None)
        if self._transport is not None:
            self._transport.abort()
        elif self.opening is not None:
            self.opening.cancel()
        if self._sock is not None:
            self._sock.close()

    async def open(self, tls: ssl.SSLContext | None) -> None:
        """Open it: with TLS, by the handshake."""
        sock = self._sock
        self._sock = None
        assert sock is not None
        limit = None if tls is None else HEADER
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(lambda: self, sock, ssl=tls, ssl_handshake_timeout=limit)
        except OSError:
            pass  # the client has gone, or does not trust the certificate; or the deadline of the handshake is over
        finally:
            self.opening = None
            if self._transport is None:
                self.enter(None)

    def enter(self, state: dict[_Connection, None] | None) -> None:
        """Count it among the connections in a state; None for none any more."""
        if self.state is not None:
            del self.state[self]
        self.state = state
        if state is not None:
            state[self] = None
        self._port.room.set()

    def limit_reading(self, seconds: float | None, what: str = "", *, since: float | None = None) -> None:
        """Close it unless this is called again within some seconds; None for no limit."""
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        if seconds is not None:
            loop = asyncio.get_running_loop()
            due = (loop.time() if since is None else since) + seconds
            self._reading = loop.call_at(due, self._expire, f"{what} was not complete in {seconds:g} s")

    def _expire(self, reason: str) -> None:
        self._port.losses.count(reason)
        self.abort()

    # As asyncio calls it.

    def connection_made(self, transport: Any) -> None:
        if self.state is None:  # closed meanwhile
            transport.abort()
            return
        self._transport = transport
        self._port.open.add(transport)
        # So `pause_writing` is called if the client does not take what is sent; for 0, TLS would do so at every write.
        transport.set_write_buffer_limits(high=1, low=0)
        self.limit_reading(HEADER, "a header", since=self._accepted)
        self._http.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._reading is None and self.state is self._port.waiting:
            self.limit_reading(HEADER, "a header")
        self._http.data_received(data)

    def eof_received(self) -> bool | None:
        return self._http.eof_received()

    def pause_writing(self) -> None:
        loop = asyncio.get_running_loop()
        reason = f"an answer was not taken in {_UNREAD:g} s"
        self._writing = loop.call_later(_UNREAD, self._expire, reason)
        self._http.pause_writing()

    def resume_writing(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
        self._http.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self.limit_reading(None)
        if self._writing is not None:
            self._writing.cancel()
        self.enter(None)
        if self._transport is not None:
            self._port.open.discard(self._transport)
            self._http.connection_lost(exc)


class _HttpLog(logging.Handler):
    """Receives what aiohttp's server logs: invalid requests are counted, the rest is logged once a minute."""

    def __init__(self, losses: _Losses, what: str) -> None:
        super().__init__(logging.WARNING)
        self._losses = losses
        self._what = what
        self._errors = RepeatedErrors(_log)

    def emit(self, record: logging.LogRecord) -> None:
        from aiohttp.http_exceptions import HttpProcessingError
        from aiohttp.web import RequestPayloadError

        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, (HttpProcessingError, RequestPayloadError)):
            self._losses.count("a request was invalid")
        elif error is None:
            _log.log(record.levelno, "%s: %s", self._what, record.getMessage())
        else:
            self._errors.report(self._what, error, "%s has failed: %s", self._what, error)

    def close(self) -> None:
        self._errors.close()
        super().close()


class Port:
    """A port that is served, see `listening`.

    Attributes:
        number: of the port.
        losses: counts the connections that it does not serve.
        opening, waiting, answering: the connections by state, in the order in which they came into it.
        room: is set when there may be room for another connection.
        open: the transports of all connections, also of those that were aborted and are not closed yet.
    """

    def __init__(self, what: str, most: int, limit: int, tls: ssl.SSLContext | None) -> None:
        self.number = 0
        self.losses = _Losses(what)
        self.opening: dict[_Connection, None] = {}
        self.waiting: dict[_Connection, None] = {}
        self.answering: dict[_Connection, None] = {}
        self.room = asyncio.Event()
        self.open = OpenConnections()
        self._most = most
        self._limit = limit
        self._tls = tls
        #: The bytes of each body that is not complete, the oldest first.
        self._bodies: dict[_Connection, int] = {}
        self._is_left = False
        #: When the last request came.
        self._asked = 0.0

    async def accept(self, listener: socket.socket, server: web.Server) -> None:
        """Accept connections until this is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(listener)
            except OSError as error:
                if error.errno in _NO_FILES:
                    self.losses.count(f"no file was free ({error.strerror}): raise `ulimit -n`")
                    self._close_one()
                else:
                    self.losses.count(f"accepting failed ({error.strerror or error})")
                await asyncio.sleep(_PAUSE)
                continue
            connection = _Connection(self, server(), sock)
            connection.enter(self.opening)
            name = f"opening of a connection to port {self.number}"
            connection.opening = create_task(connection.open(self._tls), name=name)
            await asyncio.sleep(0)  # one at a time: others must be served, too
            while len(self.opening) + len(self.waiting) + len(self.answering) > self._most:
                if self._close_one(but=connection):
                    self.losses.count(f"there were more than {self._most}")
                else:
                    self.room.clear()
                    await self.room.wait()

    def _close_one(self, but: _Connection | None = None) -> bool:
        """Close the connection that has the least right to stay; return whether there is one."""
        for state in (self.opening, self.waiting):
            for each in state:
                if each is not but:
                    each.abort()
                    return True
        return False

    async def read_whole(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Read all of a request before it is answered, as a middleware of aiohttp does."""
        connection = _connection_of(request)
        connection.limit_reading(_BODY, "a body")
        connection.body = await self._read(connection, request)
        connection.limit_reading(None)
        connection.enter(self.answering)
        self._asked = asyncio.get_running_loop().time()
        try:
            found: web.StreamResponse = await handler(request)
            if self._is_left:
                found.force_close()  # the next connection reaches another replica
            return found
        finally:
            connection.body = b""
            if connection.state is not None:
                connection.enter(self.waiting)

    async def body_of(self, request: web.Request) -> bytes:
        """Return the body of a request that `read_whole` has read."""
        return _connection_of(request).body

    async def _read(self, connection: _Connection, request: web.Request) -> bytes:
        """Return a body. If there are too many bytes of bodies, the connection whose body is the oldest is closed."""
        from aiohttp.web import HTTPRequestEntityTooLarge

        body = bytearray()
        try:
            async for chunk in request.content.iter_any():
                body += chunk
                if len(body) > self._limit:
                    raise HTTPRequestEntityTooLarge(max_size=self._limit, actual_size=len(body))
                self._bodies[connection] = len(body)
                while sum(self._bodies.values()) > _BODIES:
                    oldest = next(iter(self._bodies))
                    del self._bodies[oldest]
                    oldest.abort()
                    self.losses.count(f"there were more than {_BODIES} bytes of incomplete bodies")
                if connection.state is None:
                    raise ConnectionResetError("the connection was closed")
        finally:
            self._bodies.pop(connection, None)
        return bytes(body)

    async def leave(self) -> None:
        """Return when no request comes any more, since clients have noticed that this port will be closed."""
        clock = asyncio.get_running_loop().time
        least, quiet, most = LEAVING
        began = clock()
        self._is_left = True
        rest = least
        while rest > 0:
            await asyncio.sleep(rest)
            rest = min(self._asked + quiet, began + most) - clock()

    def abort(self) -> list[asyncio.Task[None]]:
        """Close all connections at once; return the tasks that open some of them."""
        found = [*self.opening, *self.waiting, *self.answering]
        for each in found:
            each.abort()
        return [each.opening for each in found if each.opening is not None]


def _connection_of(request: web.Request) -> _Connection:
    connection = None if request.transport is None else request.transport.get_protocol()
    if not isinstance(connection, _Connection) or connection.state is None:
        raise ConnectionResetError("the connection was closed")
    return connection


@asynccontextmanager
async def listening(
    respond: Respond,
    limit: int,
    host: str,
    port: int,
    *,
    what: str,
    remedy: str,
    most: int,
    grace: float = 1.0,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Port]:
    """Answer requests at a port while the block runs.

    Args:
        respond: answers a request.
        limit: bytes of a body, at most.
        host: the address to listen on; "" for all.
        port: 0 for any free port.
        what: is served there, for errors and the log.
        remedy: what to do if the port is taken.
        most: connections at a time.
        grace: seconds for the requests that are under way at the end.

    Raises:
        UsageError: the server cannot listen at its address.
    """
    from aiohttp import web

    found = Port(what, most, limit, tls)
    app = aiohttp_application(respond, limit, found.body_of)

    @web.middleware
    async def read_whole(request: web.Request, handler: Any) -> web.StreamResponse:
        return await found.read_whole(request, handler)

    app.middlewares.append(read_whole)
    log = logging.Logger("requests")  # without a parent: its handler only gets the records
    handler = _HttpLog(found.losses, what)
    log.addHandler(handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=grace, keepalive_timeout=_KEPT, logger=log)
    listeners: list[socket.socket] = []
    accepting: list[asyncio.Task[None]] = []
    try:
        try:
            await _listen(listeners, host, port)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", "") or error
            raise UsageError(f"{what} cannot listen on port {port}: {reason}; {remedy}") from error
        await runner.setup()
        found.number = listeners[0].getsockname()[1]
        server = runner.server
        assert server is not None
        for each in listeners:
            name = f"connections to port {found.number}"
            accepting.append(create_task(found.accept(each, server), name=name))
        yield found
    finally:
        for task in accepting:
            task.cancel()
        if accepting:
            await asyncio.wait(accepting)
        for each in listeners:
            each.close()
        await runner.cleanup()
        if opening := found.abort():
            await asyncio.wait(opening)
        found.open.abort()
        await found.open.wait()
        handler.close()
        found.losses.close()


async def _listen(listeners: list[socket.socket], host: str, port: int) -> None:
    """Listen at all addresses of a host; for "", at those of IPv4 and IPv6. Add the sockets to `listeners`."""
    if not 0 <= port < 65536:
        raise OverflowError("a port is a number from 0 to 65535")
    loop = asyncio.get_running_loop()
    if not host:
        dual = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if dual else socket.AF_INET
        listeners.append(socket.create_server(("", port), family=family, backlog=_BACKLOG, dualstack_ipv6=dual))
    else:
        for family, _, _, _, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            number = listeners[0].getsockname()[1] if listeners else port
            place: Any = (address[0], number, *address[2:])
            listeners.append(socket.create_server(place, family=family, backlog=_BACKLOG))
    for each in listeners:
        each.setblocking(False)
