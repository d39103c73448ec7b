"""A process that sends writes, and ends them while the network is broken. It follows the lines of its input.

    python -m tests.system.controller.late_writer KIND URL CA END

It opens its connections and prints "ready". After a line, it sends its writes, and prints "sent" when their bytes are
in the sockets. After another line, it ends them, prints "ended", and waits for the end of its input.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from kubernetes_asyncio.client import ApiClient, Configuration

from aioinformer import HttpTransport
from aioinformer.transport import TLS, HttpRequest, KubernetesTransport, SendCheck
from tests.support.loopback import body

WRITES = 10


async def main(kind: str, url: str, authority: str, end: str) -> None:
    transport: HttpTransport | KubernetesTransport
    client = None
    if kind == "kubernetes_asyncio":
        configuration = Configuration(host=url)
        configuration.ssl_ca_cert = authority
        client = ApiClient(configuration)
        transport = KubernetesTransport(client)
    else:
        transport = HttpTransport(url, ssl=TLS(certificate_authority=authority) if url.startswith("https") else None)
    opened = [await transport.request(HttpRequest("/held")) for _ in range(WRITES)]
    await body(await transport.request(HttpRequest("/release")))
    for each in opened:
        await body(each)
    await line("ready")
    checks: list[SendCheck[Any]] = [SendCheck(lambda: None) for _ in range(WRITES)]
    writes = []
    for number, check in enumerate(checks):
        path = f"/{kind.replace(' ', '-')}/{end.replace(' ', '-')}/{number}"
        request = HttpRequest(path, method="PUT", body=b"{}", check=None if end == "nothing" else check)
        writes.append(asyncio.create_task(transport.request(request)))
    while end != "nothing" and any(each.unsent for each in checks):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)  # those without a check are sent, too
    await line("sent")
    if end == "a kill":
        os.kill(os.getpid(), signal.SIGKILL)
    for write, check in zip(writes, checks, strict=True):
        if end == "an abort":
            check.abort()
        else:
            write.cancel()
    await asyncio.gather(*writes, return_exceptions=True)
    await line("ended")
    await transport.aclose()
    if client is not None:
        await client.close()


async def line(text: str) -> None:
    """Print a line, and wait for one."""
    print(text, flush=True)
    await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
