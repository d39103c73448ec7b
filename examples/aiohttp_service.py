"""An aiohttp service with a cache: it answers from memory, and its readiness is that of the cache.

    GET /readyz                 200 once the cache has synced, 503 before; the text is the state
    GET /nodes                  the number of pods of each node
    GET /nodes/{node}/pods      the pods of a node

python examples/aiohttp_service.py [--kubeconfig FILE] [--duration SECONDS]
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator

from aiohttp import web

from aioinformer import SharedInformerFactory
from aioinformer.models import core_v1

import cluster

ARGUMENTS = web.AppKey("ARGUMENTS", argparse.Namespace)
FACTORY = web.AppKey("FACTORY", SharedInformerFactory)


def by_node(pod: core_v1.Pod) -> list[str]:
    return [pod.spec.node_name] if pod.spec and pod.spec.node_name else []


async def informers(app: web.Application) -> AsyncIterator[None]:
    """Run the informers while the application runs. Do not wait for the sync at the start."""
    async with (
        cluster.connect(app[ARGUMENTS]) as transport,
        SharedInformerFactory(transport) as factory,
    ):
        factory.core.v1.pods.informer().add_indexers({"node": by_node})
        factory.start()
        app[FACTORY] = factory
        yield


async def readyz(request: web.Request) -> web.Response:
    factory = request.app[FACTORY]
    state = factory.core.v1.pods.informer().state
    return web.Response(text=f"pods: {state}\n", status=200 if factory.is_ready() else 503)


async def nodes(request: web.Request) -> web.Response:
    indexer = request.app[FACTORY].core.v1.pods.informer().get_indexer()
    values = indexer.list_index_func_values("node")
    return web.json_response({node: len(indexer.index_keys("node", node)) for node in values})


async def pods_of_a_node(request: web.Request) -> web.Response:
    indexer = request.app[FACTORY].core.v1.pods.informer().get_indexer()
    return web.json_response(indexer.index_keys("node", request.match_info["node"]))


async def main(arguments: argparse.Namespace) -> None:
    app = web.Application()
    app[ARGUMENTS] = arguments
    app.cleanup_ctx.append(informers)
    app.add_routes(
        [
            web.get("/readyz", readyz),
            web.get("/nodes", nodes),
            web.get("/nodes/{node}/pods", pods_of_a_node),
        ]
    )

    runner = web.AppRunner(app)
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
