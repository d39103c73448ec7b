"""Connect the examples: to an API server in this process, or with `--kubeconfig` to a cluster."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from aioinformer import AlreadyExists, HttpTransport, NotFound
from aioinformer import connect as connect_to_cluster
from aioinformer.client import ResourceClient
from aioinformer.testing import ApiServer, Workload
from aioinformer.transport import Transport

T = TypeVar("T")


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


async def create(objects: ResourceClient[T], body: dict[str, Any]) -> T:
    """Create an object. Delete an object of that name first, if an interrupted run has left one."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await objects.create(body)
            except AlreadyExists:
                with suppress(NotFound):
                    await objects.delete(body, grace=0)
                await asyncio.sleep(0.2)
