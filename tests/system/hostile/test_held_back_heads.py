"""A proxy that sends the head of a response together with the first byte of its body, over real connections."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest

from aioinformer.errors import TransportError
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.reflector.listwatch import ListWatch
from aioinformer.reflector.options import ReflectorOptions
from aioinformer.reflector.state import InformerState, Phase
from aioinformer.resources.catalog import find
from aioinformer.transport import Request
from aioinformer.transport.http import HttpTransport
from tests.system.hostile.raw_server import LIST, OK

EVENT = json.dumps(
    {
        "type": "ADDED",
        "object": {"metadata": {"name": "c", "namespace": "default", "uid": "uid-c", "resourceVersion": "8"}},
    }
).encode()


async def test_watch_waits_for_its_head_as_long_as_for_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aioinformer.reflector.protocol.watches.HEAD_PATIENCE", 0.05)
    happened, watching = asyncio.Event(), asyncio.Event()
    watches = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal watches
        while b"watch=true" not in await reader.readuntil(b"\r\n\r\n"):
            writer.write(OK + b"Content-Length: %d\r\n\r\n" % len(LIST) + LIST)
        watches += 1
        await happened.wait()
        writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\n\r\n" % (len(EVENT) + 1, EVENT))
        await reader.read()

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await answer(reader, writer)
        writer.close()

    def shown(state: InformerState) -> None:
        if state.phase is Phase.WATCHING:
            watching.set()

    resource: Any = find("", "v1", "configmaps")
    async with asyncio.timeout(20), await asyncio.start_server(proxy, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with HttpTransport(f"http://127.0.0.1:{port}", header_timeout=0.2) as transport:
            with pytest.raises(TransportError, match="the response timed out"):
                await transport.request(Request("/watched-by-others", (("watch", "true"),)))
            informer = SharedIndexInformer(
                ListWatch(transport, resource), options=ReflectorOptions(streaming_list=False)
            )
            informer.add_state_handler(shown)
            async with informer:
                await watching.wait()
                happened.set()
                await informer.wait_for("default/c")
                assert informer.state.phase is Phase.WATCHING
    assert watches == 2
