"""A replica as a process of its own: `python replica.py MODE URL IDENTITY FOLDER`.

`FOLDER/ca.pem` is the authority of the server, empty for plain HTTP. Modes:

- work: compete, and create ConfigMaps as long as it leads, in each term anew.
- lead: compete, create a ConfigMap and the file `FOLDER/taken`, and lead on.
- late: lead, block the event loop when the writes have passed the fence and have their connections, until the file
  `FOLDER/taken` is there, and let the writes go on. Print their errors.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
from kubernetes_asyncio.client import ApiClient, Configuration

from aioinformer import HttpTransport, LeaderElector
from aioinformer.controller.writes import OwnWrites
from aioinformer.leaderelection import LeadershipLost
from aioinformer.resources import ObjectName
from aioinformer.transport import KubernetesTransport
from tests.support.stopped_election import TIMES, Block, stop_at_connection

if TYPE_CHECKING:
    from aioinformer import Client
    from aioinformer.leaderelection import Term
    from aioinformer.transport import Transport

KEY = ObjectName("default", "it")


def config_map(identity: str, term: Term, **metadata: str) -> dict[str, Any]:
    return {"metadata": {"namespace": "default", **metadata}, "data": {"by": identity, "term": str(term.token)}}


def fenced(transport: Transport, term: Term) -> tuple[OwnWrites, Client]:
    """Return a client whose writes end with the term, and what records them."""

    def fence() -> float:
        term.check()
        return term.remaining

    own = OwnWrites(lambda group, plural: (), transport)
    return own, own.client(KEY, fence=fence)


async def work(transport: Transport, identity: str) -> None:
    def follow(leader: str) -> None:
        if leader not in ("", identity):
            print("follows", leader, flush=True)

    elector = LeaderElector(transport, "it", identity=identity, options=TIMES, on_new_leader=follow)
    while True:
        try:
            async with elector.leading() as term:
                maps = fenced(transport, term)[1].core.v1.configmaps
                print("leads", term.token, flush=True)
                while True:
                    await maps.create(config_map(identity, term, generateName="write-"))
                    await asyncio.sleep(0.01)
        except LeadershipLost:
            print("lost", flush=True)


async def lead(transport: Transport, identity: str, folder: Path) -> None:
    async with LeaderElector(transport, "it", identity=identity, options=TIMES).leading() as term:
        await fenced(transport, term)[1].core.v1.configmaps.create(config_map(identity, term, name="taken"))
        (folder / "taken").touch()
        await asyncio.Event().wait()


async def late(url: str, identity: str, folder: Path, tls: ssl.SSLContext | bool) -> None:
    stack = AsyncExitStack()
    block = Block(6, folder / "taken")
    traces = aiohttp.TraceConfig()

    async def on_chunk_sent(session: Any, context: Any, params: aiohttp.TraceRequestChunkSentParams) -> None:
        if identity.encode() in params.chunk:
            await block.arrive()

    traces.on_request_chunk_sent.append(on_chunk_sent)
    async with stack:
        session = await stack.enter_async_context(aiohttp.ClientSession(trace_configs=[traces]))
        configuration = Configuration(host=url)
        if tls:
            configuration.ssl_ca_cert = str(folder / "ca.pem")
        api_client = await stack.enter_async_context(ApiClient(configuration))
        own = await stack.enter_async_context(HttpTransport(url, ssl=tls or None))
        kubernetes = await stack.enter_async_context(KubernetesTransport(api_client))
        borrowed = await stack.enter_async_context(HttpTransport(url, session, ssl=tls or None))
        lease = await stack.enter_async_context(HttpTransport(url, ssl=tls or None))
        with suppress(LeadershipLost):
            async with LeaderElector(lease, "it", identity=identity, options=TIMES).leading() as term:
                print("leads", term.token, flush=True)
                writers = {transport: fenced(transport, term) for transport in (own, kubernetes, borrowed)}
                maps = {transport: client.core.v1.configmaps for transport, (_, client) in writers.items()}
                victim = await maps[own].create(config_map(identity, term, name="victim"))
                for transport in (own, kubernetes):
                    await maps[transport].get("default/victim")
                    http: Any = transport._http if isinstance(transport, KubernetesTransport) else transport
                    stop_at_connection(http._session, block)
                large = config_map("", term, name="victim") | {"data": {"large": "x" * 500_000}}
                # The end of the term does not cancel these tasks: they are as late as the event loop.
                late_writes = [
                    asyncio.create_task(each)
                    for each in (
                        maps[own].create(config_map(identity, term, name="late-create")),
                        maps[own].patch("default/victim", {"data": {"late": "patch"}}),
                        maps[own].replace(large),
                        maps[own].delete(victim),
                        maps[kubernetes].create(config_map(identity, term, name="late-kubernetes")),
                        maps[borrowed].create(config_map(identity, term, name="late-borrowed")),
                    )
                ]
                await asyncio.wait(late_writes)
        results = await asyncio.gather(*late_writes, return_exceptions=True)
        pending = sum(len(writes) for writes, _ in writers.values())
        again = [await each.get("default/victim") for each in maps.values()]
        print([type(each).__name__ for each in results], pending, len(again), flush=True)


async def main(mode: str, url: str, identity: str, folder: Path) -> None:
    authority = (folder / "ca.pem").read_text()
    tls = ssl.create_default_context(cadata=authority) if authority else False
    if mode == "late":
        await late(url, identity, folder, tls)
        return
    async with HttpTransport(url, ssl=tls or None) as transport:
        await (work(transport, identity) if mode == "work" else lead(transport, identity, folder))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4])))
