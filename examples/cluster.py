"""Where the examples run: on a living API server of their own, or with `--kubeconfig` on a real cluster."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qsl

from aioinformer.testing import ApiServer
from aioinformer.testing.server.workload import Workload
from aioinformer.transport import Request, Transport
from aioinformer.transport.auth.credentials import connect as connect_to_cluster
from aioinformer.transport.http import HttpTransport


def run(main: Callable[[argparse.Namespace], Coroutine[None, None, None]], description: str | None) -> None:
    """Runs an example until it is done, until `--duration` is over, or until Ctrl-C."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", metavar="FILE", help="run on this cluster instead of the embedded API server")
    parser.add_argument("--duration", metavar="SECONDS", type=float, help="end after so long (default: with Ctrl-C)")
    arguments = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # it is no StringIO here
    with suppress(KeyboardInterrupt):
        asyncio.run(main(arguments))


@asynccontextmanager
async def connect(arguments: argparse.Namespace) -> AsyncIterator[Transport]:
    """A transport to the cluster of the command line, or to an API server that lives as long as the `with` block."""
    if arguments.kubeconfig:
        async with await connect_to_cluster(kubeconfig=arguments.kubeconfig) as connection:
            yield connection.transport
    else:
        async with ApiServer() as server, Workload(server) as workload, HttpTransport(server.url) as transport:
            for _ in range(60):  # something to see from the first moment on
                workload.step()
            yield transport


async def pause(arguments: argparse.Namespace) -> None:
    """Lets the handlers work for `--duration` seconds, or until Ctrl-C."""
    if arguments.duration is None:
        await asyncio.Event().wait()
    else:
        await asyncio.sleep(arguments.duration)


async def send(transport: Transport, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Writes to the API server; what programs of their own leave to kubernetes_asyncio's API classes."""
    status, answer = await _ask(transport, method, path, body)
    if status >= 300:
        raise SystemExit(f"{method} {path}: {answer.get('message', status)}")
    return answer


async def create(transport: Transport, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Creates an object; removes first what an earlier run, which was interrupted, has left under its name."""
    name = body["metadata"]["name"]
    async with asyncio.timeout(60):
        while True:
            status, answer = await _ask(transport, "POST", path, body)
            if status != 409:
                break
            await _ask(transport, "DELETE", f"{path}/{name}?gracePeriodSeconds=0")
            await asyncio.sleep(0.2)
    if status >= 300:
        raise SystemExit(f"POST {path}: {answer.get('message', status)}")
    return answer


async def _ask(
    transport: Transport, method: str, path: str, body: dict[str, Any] | None = None
) -> tuple[int, dict[str, Any]]:
    content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
    resource, _, query = path.partition("?")
    response = await transport.request(
        Request(
            resource,
            tuple(parse_qsl(query)),
            method=method,
            headers={"Content-Type": content_type},
            body=None if body is None else json.dumps(body).encode(),
            total_timeout=30,
        )
    )
    try:
        return response.status, json.loads(b"".join([chunk async for chunk in response.chunks()]))
    finally:
        await response.close()
