"""Services of each framework: typed caches, probes, metrics, and errors as Problem Details."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import aiohttp
import pytest
from aiohttp import web
from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from aioinformer import HttpTransport, NotFound, UsageError
from aioinformer.authorization import EVERYBODY, Rbac
from aioinformer.models import core_v1
from aioinformer.prometheus import PrometheusMetrics
from aioinformer.testing import ApiServer
from aioinformer.web import Informers
from aioinformer.web.aiohttp import setup
from aioinformer.web.fastapi import stream
from aioinformer.web.starlette import routes
from tests.support.rights import grant_paths
from tests.support.web_servers import on_aiohttp, on_uvicorn
from tests.system.web.fastapi_service import fastapi_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from starlette.requests import Request

NODE = {"node": "spec.nodeName"}
POD = {
    "metadata": {"name": "web-0", "namespace": "default"},
    "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": "example.com/web"}]},
}


class Row(BaseModel):
    node: Annotated[str | None, "spec.nodeName"] = None


class Service:
    """A service, and a client of it."""

    def __init__(self, session: aiohttp.ClientSession, url: str, informers: Informers) -> None:
        self.session = session
        self.url = url
        self.informers = informers

    async def get(self, path: str, status: int = 200, **headers: str) -> Any:
        async with self.session.get(f"{self.url}{path}", headers=headers) as response:
            text = await response.text()
            assert response.status == status, text
            kinds = ("application/json", "application/problem+json")
            return json.loads(text) if response.content_type in kinds else text


def informers_of(client: Any, **options: Any) -> Informers:
    metrics = PrometheusMetrics(CollectorRegistry())
    return Informers(core_v1.PODS, client=client, indexers={core_v1.PODS: NODE}, metrics=metrics, **options)


def starlette_app(informers: Informers, who: Rbac | None) -> Starlette:
    async def pod(request: Request) -> Response:
        pods = await informers.lister(core_v1.PODS)()
        found = pods.get("{namespace}/{name}".format(**request.path_params))
        return JSONResponse({"metadata": {"name": found.metadata.name}})

    async def names(request: Request) -> Response:
        pods = await informers.lister(core_v1.PODS)()
        return JSONResponse([each.metadata.name for each in pods.list(request.query_params.get("labels", ""))])

    async def of_node(request: Request) -> Response:
        pods = await informers.indexer(core_v1.PODS)()
        return JSONResponse(list(pods.index_keys("node", request.path_params["node"])))

    async def read(request: Request) -> Response:
        client = await informers.client()
        return JSONResponse((await client.core.v1.pods.get("default/nope")).metadata.name)

    own = [
        Route("/pods/{namespace}/{name}", pod),
        Route("/names", names),
        Route("/nodes/{node}", of_node),
        Route("/new", read),
    ]
    return Starlette(routes=[*routes(informers, metrics_check=who), *own], lifespan=informers.lifespan)


def aiohttp_app(informers: Informers, who: Rbac | None) -> web.Application:
    app = web.Application()
    setup(app, informers, metrics_check=who)

    async def pod(request: web.Request) -> web.Response:
        pods = await informers.lister(core_v1.PODS)()
        found = pods.get("{namespace}/{name}".format(**request.match_info))
        return web.json_response({"metadata": {"name": found.metadata.name}})

    async def names(request: web.Request) -> web.Response:
        pods = await informers.lister(core_v1.PODS)()
        return web.json_response([each.metadata.name for each in pods.list(request.query.get("labels", ""))])

    async def of_node(request: web.Request) -> web.Response:
        pods = await informers.indexer(core_v1.PODS)()
        return web.json_response(list(pods.index_keys("node", request.match_info["node"])))

    async def read(request: web.Request) -> web.Response:
        client = await informers.client()
        return web.json_response((await client.core.v1.pods.get("default/nope")).metadata.name)

    app.router.add_get("/pods/{namespace}/{name}", pod)
    app.router.add_get("/names", names)
    app.router.add_get("/nodes/{node}", of_node)
    app.router.add_get("/new", read)
    return app


MAKERS = {
    "fastapi": (fastapi_app, on_uvicorn),
    "starlette": (starlette_app, on_uvicorn),
    "aiohttp": (aiohttp_app, on_aiohttp),
}


@asynccontextmanager
async def running(framework: str, client: Any, who: Rbac | None = None, **options: Any) -> AsyncIterator[Service]:
    make, serve = MAKERS[framework]
    informers = informers_of(client, **options)
    serving: AbstractAsyncContextManager[str] = serve(make(informers, who))
    async with serving as url, aiohttp.ClientSession() as session:
        yield Service(session, url, informers)


each_framework = pytest.mark.parametrize("framework", list(MAKERS))


async def synced(service: Service) -> None:
    await service.informers.informer(core_v1.PODS).wait_for_sync()


@each_framework
async def test_service_reads_its_cache(framework: str, api_server: ApiServer) -> None:
    api_server.create("pods", POD)
    async with running(framework, api_server.url) as service:
        await synced(service)
        assert (await service.get("/pods/default/web-0"))["metadata"]["name"] == "web-0"
        assert await service.get("/nodes/node-1") == ["default/web-0"]
        assert await service.get("/livez") == "ok\n"
        assert await service.get("/readyz") == "ok\n"
        assert 'name="web"' in await service.get("/metrics")


@each_framework
async def test_errors_are_problem_details(framework: str, api_server: ApiServer) -> None:
    async with running(framework, api_server.url) as service:
        await synced(service)
        found = await service.get("/pods/default/nope", 404)
        assert found == {"type": "about:blank", "title": "Not Found", "status": 404, "detail": found["detail"]}
        assert "default/nope" in found["detail"]
        assert "a in (b" in (await service.get("/names?labels=a+in+(b", 400))["detail"]
        assert (await service.get("/new", 404))["title"] == "Not Found"
        async with api_server.fault("forbidden"):
            assert (await service.get("/new", 502))["detail"] == "the cluster refused a request of this service"


@each_framework
async def test_cache_that_has_not_synced_answers_nothing_wrong(framework: str) -> None:
    async with running(framework, "http://127.0.0.1:9") as service:
        assert await service.get("/livez") == "ok\n"
        assert "[-]" in await service.get("/readyz", 503)
        found = await service.get("/pods/default/web-0", 503)
        assert "not synced" in found["detail"]


@each_framework
async def test_old_cache_answers_until_max_staleness(framework: str) -> None:
    async with ApiServer() as server:
        server.create("pods", POD)
        async with (
            running(framework, server.url) as service,
            running(framework, server.url, max_staleness=0.0) as strict,
        ):
            for each in (service, strict):
                await synced(each)
            await server.stop()
            for each in (service, strict):
                while not each.informers.informer(core_v1.PODS).staleness():
                    await each.get("/livez")
            assert (await service.get("/pods/default/web-0"))["metadata"]["name"] == "web-0"
            assert await service.get("/readyz") == "ok\n"
            assert "has not followed the server" in (await strict.get("/pods/default/web-0", 503))["detail"]


@each_framework
async def test_metrics_of_a_service_are_for_users_with_the_right(framework: str) -> None:
    tokens = {"t-admin": "admin,system:masters", "t-jane": "jane", "t-joe": "joe"}
    async with (
        ApiServer(tokens=tokens, authorization_mode="RBAC") as server,
        HttpTransport(server.url, token="t-admin") as transport,
        running(framework, transport, Rbac(audiences=["shop"])) as service,
    ):
        grant_paths(server, "jane", "/metrics")
        assert (await service.get("/metrics", 401))["title"] == "Unauthorized"
        assert "nonResourceURLs" in (await service.get("/metrics", 403, Authorization="Bearer t-joe"))["detail"]
        assert "informer" in await service.get("/metrics", Authorization="Bearer t-jane")


async def test_handler_of_the_user_stays(api_server: ApiServer) -> None:
    informers = informers_of(api_server.url)
    app = fastapi_app(informers, None)

    @app.exception_handler(KeyError)
    async def own(request: Any, error: Exception) -> JSONResponse:
        return JSONResponse({"mine": True}, 410)

    app.add_exception_handler(NotFound, own)
    async with on_uvicorn(app) as url, aiohttp.ClientSession() as session:
        service = Service(session, url, informers)
        await synced(service)
        assert await service.get("/pods/default/nope", 410) == {"mine": True}


async def test_schema_has_the_endpoints_and_no_probes(api_server: ApiServer) -> None:
    async with running("fastapi", api_server.url) as service:
        paths = (await service.get("/openapi.json"))["paths"]
        assert set(paths) == {"/pods/{namespace}/{name}", "/names", "/nodes/{node}", "/new"}


async def test_schema_has_the_streams_by_their_views(api_server: ApiServer) -> None:
    informers = informers_of(api_server.url)
    app = FastAPI(lifespan=informers.lifespan)
    app.get("/live")(stream(informers, {core_v1.PODS: Row}, who=EVERYBODY))
    app.get("/versions")(stream(informers, {core_v1.PODS: None}, who=EVERYBODY))
    async with on_uvicorn(app) as url, aiohttp.ClientSession() as session:
        paths = (await Service(session, url, informers).get("/openapi.json"))["paths"]
    found = paths["/live"]["get"]
    assert [each["name"] for each in found["parameters"]] == ["namespace", "resource", "selector", "after"]
    assert list(found["responses"]["200"]["content"]) == ["text/event-stream"]
    assert "application/problem+json" in found["responses"]["403"]["content"]

    def data(path: str) -> Any:
        events = paths[path]["get"]["responses"]["200"]["content"]["text/event-stream"]["itemSchema"]
        return events["properties"]["data"]["contentSchema"]["properties"]

    assert data("/live")["resource"] == {"enum": ["v1/pods"]}
    assert set(data("/live")["object"]["properties"]) == {"node"}
    assert data("/versions")["version"] == {"type": "string"}


def test_mistakes_are_found_when_the_service_is_declared() -> None:
    informers = Informers(core_v1.PODS)
    for mistake in (
        lambda: informers.lister(core_v1.NODES),
        lambda: Informers(core_v1.PODS, indexers={core_v1.NODES: {}}),
    ):
        with pytest.raises(UsageError, match="v1/nodes is not among the given resources"):
            mistake()
    with pytest.raises(UsageError, match="pass the resources"):
        Informers()
    with pytest.raises(UsageError, match=r"do not run: pass lifespan=informers\.lifespan"):
        informers.informer(core_v1.PODS)


async def test_informers_can_be_entered_again(api_server: ApiServer) -> None:
    informers = informers_of(api_server.url)
    for _ in range(2):
        async with informers:
            await informers.informer(core_v1.PODS).wait_for_sync()
            with pytest.raises(UsageError, match="run already"):
                await informers.__aenter__()
        assert informers.unready() == {"web": "not started"}
