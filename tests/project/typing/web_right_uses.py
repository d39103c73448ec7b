# pyright: strict
"""Right uses of the types of web services. This module is never run: `test_checkers` checks that mypy and pyright
accept all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, assert_type

from aiohttp import web
from fastapi import Depends, FastAPI
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.routing import Route

from aioinformer import Client, Indexer, Lister, Resource, SharedIndexInformer
from aioinformer.authorization import EVERYBODY, Rbac, User, Who
from aioinformer.controller import Manager
from aioinformer.models import apps_v1, core_v1
from aioinformer.streams import ChangeKind, Changes, StreamChange
from aioinformer.web import Informers, aiohttp, starlette
from aioinformer.web.fastapi import require, router, stream


@dataclass
class Widget:
    size: int


WIDGETS = Resource("example.com", "v1", "widgets", "Widget", decoder=Widget)


class Row(BaseModel):
    node: Annotated[str | None, "spec.nodeName"] = None


def phase(pod: core_v1.Pod) -> str | None:
    return pod.status.phase if pod.status else None


async def session(headers: Mapping[str, str], peer: str | None) -> User | None:
    return User("jane", groups=("shop",)) if headers.get("cookie") and peer else None


def nobody(headers: Mapping[str, str], peer: str | None) -> User | None:
    return None


who: Who = Rbac(audiences=["shop"])
by_function = [Rbac(authenticate=session), Rbac(authenticate=nobody)]
informers = Informers(core_v1.PODS, apps_v1.DEPLOYMENTS, WIDGETS, indexers={core_v1.PODS: {"node": "spec.nodeName"}})
app = FastAPI(lifespan=informers.lifespan)
app.include_router(router(informers, metrics_check=who))
app.get("/live")(stream(informers, {core_v1.PODS: Row, apps_v1.DEPLOYMENTS: None}, who=who))
app.get("/phases")(stream(informers, {core_v1.PODS: phase}, who=EVERYBODY, per_user=3))

Pods = Annotated[Lister[core_v1.Pod], Depends(informers.lister(core_v1.PODS))]
ByNode = Annotated[Indexer[core_v1.Pod], Depends(informers.indexer(core_v1.PODS))]
Cluster = Annotated[Client, Depends(informers.client)]
Reader = Annotated[User, Depends(require(who, "get", core_v1.PODS))]


@app.get("/pods/{namespace}/{name}")
def pod(namespace: str, name: str, pods: Pods, by_node: ByNode, user: Reader) -> core_v1.Pod:
    assert_type(user.groups, tuple[str, ...])
    assert_type(by_node.by_index("node", "a")[0].metadata.name, str)
    return pods.get(f"{namespace}/{name}")


@app.get("/new/{name}")
async def new(name: str, client: Cluster) -> core_v1.Pod:
    return await client.core.v1.pods.get(name)


async def dependencies() -> None:
    assert_type(await informers.lister(core_v1.PODS)(), Lister[core_v1.Pod])
    assert_type(await informers.lister(apps_v1.DEPLOYMENTS)(), Lister[apps_v1.Deployment])
    assert_type(await informers.lister(WIDGETS)(), Lister[Widget])
    assert_type(await informers.indexer(WIDGETS)(), Indexer[Widget])
    assert_type(await informers.client(), Client)
    async with informers as running:
        assert_type(running.informer(core_v1.PODS).lister(), Lister[core_v1.Pod])


with_starlette = Starlette(
    routes=[
        *starlette.routes(informers),
        Route("/live", starlette.stream(informers, {core_v1.PODS: Row}, who=who)),
    ],
    lifespan=informers.lifespan,
)
with_aiohttp = web.Application()
aiohttp.setup(with_aiohttp, informers)
with_aiohttp.router.add_get("/live", aiohttp.stream(informers, {core_v1.PODS: phase}, who=who))

manager = Manager("shop", health_port=8080, metrics_check=Rbac(audiences=["shop"]))
manager.debug_app(check=who)


async def follow(pods: SharedIndexInformer[core_v1.Pod]) -> None:
    async with pods.changes(namespace="shop", selector={"app": "web"}, view=Row) as rows:
        async for row in rows:
            assert_type(row.object, Row | None)
            assert_type(row.kind, ChangeKind)
    async with pods.changes(namespace=["a", "b"], view=phase, after="cursor") as phases:
        assert_type(await anext(phases), StreamChange[str])
    async with pods.changes() as versions:
        assert_type(versions, Changes[str])
