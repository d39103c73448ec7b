"""A write that the timeout of an attempt cancels: its connection has ended before the next run of its key begins."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from aioinformer import HttpTransport
from aioinformer.controller import Controller, Manager, Request
from aioinformer.models import core_v1
from aioinformer.transport import TLS
from tests.support.loopback import Server, certified

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import web

    from aioinformer.testing import ApiServer
    from aioinformer.transport import HttpRequest, Response, Transport

TIMEOUT = 0.5
#: The state of a connection of TCP after a reset. After an orderly end, it would be that of a half-closed one.
_CLOSED = 7


class Unread:
    """A server that neither reads the bodies of writes nor answers them.

    Attributes:
        sockets: the connections of the writes, as this side has them.
    """

    def __init__(self) -> None:
        self.sockets: list[socket.socket] = []

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        descriptor = request.transport.get_extra_info("socket").fileno()
        self.sockets.append(socket.socket(fileno=os.dup(descriptor)))
        await asyncio.Event().wait()
        raise AssertionError

    def aborted(self) -> list[bool]:
        """Return for each connection whether the client has aborted it: it can send nothing more of the write."""
        states = [each.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) for each in self.sockets]
        return [state == _CLOSED for (state,) in states]

    def close(self) -> None:
        for each in self.sockets:
            each.close()


class Divided:
    """Sends patches to one server, and all else to another one."""

    def __init__(self, patches: Transport, others: Transport) -> None:
        self._patches = patches
        self._others = others

    async def request(self, request: HttpRequest) -> Response:
        return await (self._patches if request.method == "PATCH" else self._others).request(request)


@pytest.fixture
async def unread() -> AsyncIterator[Unread]:
    unread = Unread()
    yield unread
    unread.close()


@asynccontextmanager
async def divided(server: ApiServer, unread: Unread) -> AsyncIterator[Divided]:
    """Provide a transport to both servers, the one of the patches over TLS."""
    authority = trustme.CA()
    trusted = TLS(certificate_authority_data=authority.cert_pem.bytes().decode())
    async with (
        HttpTransport(server.url) as others,
        Server().started(unread.answer, certified(authority)) as slow,
        HttpTransport(slow.url, ssl=trusted) as patches,
    ):
        yield Divided(patches, others)


@pytest.mark.behaviour("C-111")
@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="this system does not show the state of connections")
@pytest.mark.parametrize("size", [10, 1_000_000])
async def test_write_of_a_timed_out_attempt_ends_before_the_next_run(
    api_server: ApiServer, unread: Unread, size: int
) -> None:
    api_server.create("configmaps", {"metadata": {"name": "a", "namespace": "default"}})
    found: list[list[bool]] = []
    ran = asyncio.Event()

    async def reconcile(request: Request[Any]) -> None:
        found.append(unread.aborted())
        if len(found) == 3:
            ran.set()
            return
        await request.client.core.v1.configmaps.patch(str(request.key), {"data": {"text": "x" * size}})

    controller = Controller("it", core_v1.CONFIG_MAPS, reconcile, timeout=TIMEOUT)
    async with divided(api_server, unread) as transport, Manager("it", [controller], client=transport):
        async with asyncio.timeout(50):
            await ran.wait()
    assert found == [[], [True], [True, True]]
