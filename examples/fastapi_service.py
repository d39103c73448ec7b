"""A FastAPI service with a cache: it answers from memory, and its readiness is that of the cache.

    GET /readyz                 200 once the cache has synced, 503 before; the text is the state
    GET /nodes                  the number of pods of each node
    GET /nodes/{node}/pods      the pods of a node
    GET /metrics                the metrics of the informer, for Prometheus

FastAPI runs `def` endpoints in threads. They may read listers and indexers.

python examples/fastapi_service.py [--kubeconfig FILE] [--duration SECONDS]
"""

from __future__ import annotations

import argparse
import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from aioinformer import SharedInformerFactory
from aioinformer.models import core_v1
from aioinformer.prometheus import PrometheusMetrics

import cluster


def by_node(pod: core_v1.Pod) -> list[str]:
    return [pod.spec.node_name] if pod.spec and pod.spec.node_name else []


def service(arguments: argparse.Namespace) -> FastAPI:
    registry = CollectorRegistry()
    shown = PrometheusMetrics(registry)

    @asynccontextmanager
    async def informers(app: FastAPI) -> AsyncIterator[None]:
        """Run the informers while the application runs. Do not wait for the sync at the start."""
        async with (
            cluster.connect(arguments) as transport,
            SharedInformerFactory(transport, name="nodes-service", metrics=shown) as factory,
        ):
            factory.core.v1.pods.informer().add_indexers({"node": by_node})
            factory.start()
            app.state.factory = factory
            yield

    app = FastAPI(lifespan=informers)

    @app.get("/readyz")
    async def readyz(request: Request) -> Response:
        factory: SharedInformerFactory = request.app.state.factory
        state = factory.core.v1.pods.informer().state
        status = 200 if factory.is_ready() else 503
        return Response(f"pods: {state}\n", status_code=status, media_type="text/plain")

    @app.get("/nodes")
    def nodes(request: Request) -> dict[str, int]:
        factory: SharedInformerFactory = request.app.state.factory
        indexer = factory.core.v1.pods.informer().get_indexer()
        values = indexer.list_index_func_values("node")
        return {node: len(indexer.index_keys("node", node)) for node in values}

    @app.get("/nodes/{node}/pods")
    def pods_of_a_node(node: str, request: Request) -> Sequence[str]:
        factory: SharedInformerFactory = request.app.state.factory
        return factory.core.v1.pods.informer().get_indexer().index_keys("node", node)

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return app


async def main(arguments: argparse.Namespace) -> None:
    server = uvicorn.Server(uvicorn.Config(service(arguments), log_level="warning"))
    if arguments.duration is not None:
        asyncio.get_running_loop().call_later(
            arguments.duration, setattr, server, "should_exit", True
        )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}")
        await server.serve(sockets=[listener])


if __name__ == "__main__":
    cluster.run(main, __doc__)
