"""An aiohttp service with a cache: it answers from memory, and streams what changes.

    GET /readyz                 200 once the cache has synced, 503 before
    GET /metrics                the metrics of the informer, for Prometheus
    GET /nodes                  the number of pods of each node
    GET /live                   node and phase of each pod as server-sent events

This one is public: `who=` of a stream says who may see what, such as `Rbac`.

python examples/aiohttp_service.py [--kubeconfig FILE] [--duration SECONDS]
"""

from __future__ import annotations

import argparse
from typing import Annotated

import msgspec
from aiohttp import web

from aioinformer.authorization import EVERYBODY
from aioinformer.models import core_v1
from aioinformer.web import Informers
from aioinformer.web.aiohttp import setup, stream

import cluster


class Row(msgspec.Struct):
    node: Annotated[str | None, "spec.nodeName"] = None
    phase: Annotated[str | None, "status.phase"] = None


def service(informers: Informers) -> web.Application:
    indexer = informers.indexer(core_v1.PODS)

    async def nodes(request: web.Request) -> web.Response:
        pods = await indexer()  # 503 until the cache has synced
        values = pods.list_index_func_values("node")
        return web.json_response({node: len(pods.index_keys("node", node)) for node in values})

    app = web.Application()
    setup(app, informers)
    app.router.add_get("/nodes", nodes)
    app.router.add_get("/live", stream(informers, {core_v1.PODS: Row}, who=EVERYBODY))
    return app


async def main(arguments: argparse.Namespace) -> None:
    async with cluster.connect(arguments) as transport:
        indexers = {core_v1.PODS: {"node": "spec.nodeName"}}
        informers = Informers(core_v1.PODS, client=transport, indexers=indexers)
        runner = web.AppRunner(service(informers))
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            host, port = runner.addresses[0][:2]
            print(f"listening on http://{host}:{port}")
            await cluster.pause(arguments)
        finally:
            await runner.cleanup()


if __name__ == "__main__":
    cluster.run(main, __doc__)
