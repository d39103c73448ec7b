"""Connect the examples: to an API server in this process, or with `--kubeconfig` to a cluster."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qsl

from aioinformer import HttpTransport
from aioinformer import connect as connect_to_cluster
from aioinformer.testing import ApiServer, Workload
from aioinformer.transport import Request, Transport


def run(
    main: Callable[[argparse.Namespace], Coroutine[None, None, None]], description: str | None
) -> None:
    """Run an example until it is done, until `--duration` is over, or until Ctrl-C."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--kubeconfig", metavar="FILE", help="use this cluster instead of the embedded API server"
    )
    parser.add_argument(
        "--duration", metavar="SECONDS", type=float, help="end after this time (default: Ctrl-C)"
    )
    arguments = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # not a StringIO
    with suppress(KeyboardInterrupt):
        asyncio.run(main(arguments))


@asynccontextmanager
async def connect(arguments: argparse.Namespace) -> AsyncIterator[Transport]:
    """Return a transport to the cluster of the command line, or to an API server for this block."""
    if arguments.kubeconfig:
        async with await connect_to_cluster(kubeconfig=arguments.kubeconfig) as connection:
            yield connection.transport
    else:
        async with (
            ApiServer() as server,
            Workload(server) as workload,
            HttpTransport(server.url) as transport,
        ):
            for _ in range(60):  # some objects exist from the start
                workload.step()
            yield transport


async def pause(arguments: argparse.Namespace) -> None:
    """Wait for `--duration` seconds, or until Ctrl-C."""
    if arguments.duration is None:
        await asyncio.Event().wait()
    else:
        await asyncio.sleep(arguments.duration)


async def send(
    transport: Transport, method: str, path: str, body: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Write to the API server. In your own program, use the API classes of kubernetes_asyncio."""
    status, answer = await _ask(transport, method, path, body)
    if status >= 300:
        raise SystemExit(f"{method} {path}: {answer.get('message', status)}")
    return answer


async def create(transport: Transport, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Create an object. Delete an object of that name first, if an interrupted run has left one."""
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
