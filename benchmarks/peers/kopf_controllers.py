"""Run one controller on kopf, and answer `benchmarks/controller_process.py` by lines on stdin and stdout.

    python kopf_controllers.py pods URL               an empty handler for the pods of a load server
    python kopf_controllers.py empty|write|widgets    for the Widgets of the cluster of KUBECONFIG

The handler for pods is one for events, the cheapest that kopf has: it stores no state in the objects, and does not
retry. Those for Widgets are called for all objects at the start, and then for changes.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import kopf
from runs import Runs


def add_pods(runs: Runs, url: str) -> None:
    @kopf.on.login()
    def login(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server=url, ca_path=os.environ.get("SSL_CERT_FILE"))

    @kopf.on.event("pods")
    async def on_event(namespace: str, name: str, **_: Any) -> None:
        runs.note(f"{namespace}/{name}")


def add_empty(runs: Runs) -> None:
    @kopf.on.resume("example.com", "v1", "widgets")
    async def on_resume(namespace: str, name: str, **_: Any) -> None:
        runs.note(f"{namespace}/{name}")


def add_write(runs: Runs) -> None:
    # kopf sends what a handler writes to `patch` after it, so the answer is seen as the next event.
    @kopf.on.resume("example.com", "v1", "widgets")
    async def on_resume(name: str, patch: kopf.Patch, **_: Any) -> None:
        if name.startswith("write-"):
            patch.status["size"] = 7

    @kopf.on.event("example.com", "v1", "widgets")
    async def on_event(namespace: str, name: str, status: kopf.Status, **_: Any) -> None:
        if not name.startswith("write-") or status.get("size") == 7:
            runs.note(f"{namespace}/{name}")


def add_widgets(runs: Runs) -> None:
    import kopf_widgets

    inner = kopf_widgets.reconcile

    async def reconcile(body: kopf.Body, *arguments: Any) -> None:
        await inner(body, *arguments)
        runs.note(f"{body.metadata.namespace}/{body.metadata.name}")

    kopf_widgets.reconcile = reconcile


async def main() -> None:
    mode, runs, settings = sys.argv[1], Runs(), kopf.OperatorSettings()
    runs.begin()
    match mode:
        case "pods":
            settings.scanning.disabled = True  # the load server has no definitions
            add_pods(runs, sys.argv[2])
        case "empty":
            add_empty(runs)
        case "write":
            add_write(runs)
        case "widgets":
            add_widgets(runs)
        case _:
            sys.exit(f"unknown mode {mode!r}")
    await kopf.operator(settings=settings, standalone=True, clusterwide=True)


if __name__ == "__main__":
    asyncio.run(main())
