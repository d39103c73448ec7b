"""Programs that tests run on each system: `python -m tests.system.platforms.program [--as-windows] MODE ARGUMENTS`.

A line on standard input is Ctrl-C: on Windows, no other process can send it to one program only.
"""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
import signal
import sys
import threading
from typing import Any


def import_all() -> None:
    """Import every module of the package, and print how many there are."""
    import aioinformer

    names = [each.name for each in pkgutil.walk_packages(aioinformer.__path__, "aioinformer.")]
    for name in names:
        if not name.endswith("__main__"):
            importlib.import_module(name)
    print(len(names))


async def inform() -> None:
    """Follow an object of an API server, over TLS: creation, an outage, and deletion."""
    import ssl

    from aioinformer import HttpTransport, SharedInformerFactory
    from aioinformer.testing import ApiServer

    seen: asyncio.Queue[str] = asyncio.Queue()
    async with ApiServer(tls=True) as server:
        trusting = ssl.create_default_context(cadata=server.certificate_authority.decode())
        async with HttpTransport(server.url, ssl=trusting) as transport, SharedInformerFactory(transport) as factory:
            informer = factory.core.v1.configmaps.informer()
            informer.add_event_handler(
                on_add=lambda obj: seen.put_nowait(f"added {obj.metadata.name}"),
                on_delete=lambda obj: seen.put_nowait("deleted"),
            )
            await factory.wait_for_cache_sync()
            server.create("configmaps", {"metadata": {"name": "a", "namespace": "default"}})
            print(await seen.get())
            async with server.fault("outage"):
                await asyncio.sleep(0)
            server.delete("configmaps", "a", "default")
            print(await seen.get())


def manage(url: str) -> None:
    """Run a manager until Ctrl-C."""
    from aioinformer.controller import Manager, Request
    from aioinformer.models import core_v1

    manager = Manager("program", client=url)

    @manager.controller(core_v1.CONFIG_MAPS)
    async def maps(request: Request[Any]) -> None:
        print("begins", request.name, flush=True)
        await asyncio.sleep(0.2)
        print("ends", request.name, flush=True)

    manager.main()


def command(*arguments: str) -> None:
    """Run the command line."""
    from aioinformer.cli import main

    sys.argv[1:] = arguments
    main()


def interrupt_on_input() -> None:
    if sys.stdin.readline():
        signal.raise_signal(signal.SIGINT)


def main(mode: str, *arguments: str) -> Any:
    if mode == "import":
        return import_all()
    if mode == "inform":
        return asyncio.run(inform())
    threading.Thread(target=interrupt_on_input, daemon=True).start()
    if mode == "manage":
        return manage(*arguments)
    return command(*arguments)


if __name__ == "__main__":
    if sys.argv[1] == "--as-windows":
        from tests.support.lacking import lack_what_windows_lacks

        lack_what_windows_lacks()
        del sys.argv[1]
    sys.exit(main(*sys.argv[1:]))
