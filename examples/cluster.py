"""Where the examples run: on a living API server of their own, or with `--kubeconfig` on a real cluster."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

from aioinformer.testing import ApiServer
from aioinformer.testing.workload import Workload
from aioinformer.transport import Request, Transport
from aioinformer.transport.credentials import connect as connect_to_cluster
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
    content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
    response = await transport.request(
        Request(
            path,
            method=method,
            headers={"Content-Type": content_type},
            body=None if body is None else json.dumps(body).encode(),
            total_timeout=30,
        )
    )
    try:
        answer: dict[str, Any] = json.loads(b"".join([chunk async for chunk in response.chunks()]))
    finally:
        await response.close()
    if response.status >= 300:
        raise SystemExit(f"{method} {path}: {answer.get('message', response.status)}")
    return answer
