"""A service of FastAPI. FastAPI evaluates annotations of endpoints, which are local names here."""

from typing import Annotated

from fastapi import Depends, FastAPI

from aioinformer import Client, Indexer, Lister
from aioinformer.authorization import Rbac
from aioinformer.models import core_v1
from aioinformer.web import Informers
from aioinformer.web.fastapi import router


def fastapi_app(informers: Informers, who: Rbac | None) -> FastAPI:
    app = FastAPI(lifespan=informers.lifespan)
    app.include_router(router(informers, metrics_check=who))
    Pods = Annotated[Lister[core_v1.Pod], Depends(informers.lister(core_v1.PODS))]
    ByNode = Annotated[Indexer[core_v1.Pod], Depends(informers.indexer(core_v1.PODS))]

    @app.get("/pods/{namespace}/{name}")
    def pod(namespace: str, name: str, pods: Pods) -> core_v1.Pod:
        return pods.get(f"{namespace}/{name}")

    @app.get("/names")
    def names(pods: Pods, labels: str = "") -> list[str | None]:
        return [each.metadata.name for each in pods.list(labels)]

    @app.get("/nodes/{node}")
    def of_node(node: str, pods: ByNode) -> list[str]:
        return list(pods.index_keys("node", node))

    @app.get("/new")
    async def read(client: Annotated[Client, Depends(informers.client)]) -> str | None:
        return (await client.core.v1.pods.get("default/nope")).metadata.name

    return app
