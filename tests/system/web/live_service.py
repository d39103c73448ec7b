"""Services with a stream, for real servers: `API` is the URL of the API server."""

import os
from typing import Annotated

from aiohttp import web
from fastapi import Depends, FastAPI
from pydantic import BaseModel

from aioinformer import Lister
from aioinformer.authorization import EVERYBODY
from aioinformer.models import core_v1
from aioinformer.web import Informers, aiohttp, fastapi


class Row(BaseModel):
    """What leaves the process."""

    node: str | None
    phase: str | None

    @classmethod
    def of(cls, pod: core_v1.Pod) -> "Row":
        return cls(node=pod.spec and pod.spec.node_name, phase=pod.status and pod.status.phase)


informers = Informers(core_v1.PODS, client=os.environ["API"])
app = FastAPI(lifespan=informers.lifespan)
app.include_router(fastapi.router(informers))
Pods = Annotated[Lister[core_v1.Pod], Depends(informers.lister(core_v1.PODS))]


@app.get("/count")
def count(pods: Pods) -> int:
    return len(pods.list())


app.get("/live")(fastapi.stream(informers, {core_v1.PODS: Row.of}, who=EVERYBODY, per_user=1000))


def aiohttp_app() -> web.Application:
    found = web.Application()
    aiohttp.setup(found, informers)
    found.router.add_get("/live", aiohttp.stream(informers, {core_v1.PODS: Row.of}, who=EVERYBODY, per_user=1000))
    return found


async def gunicorn_aiohttp_app() -> web.Application:
    return aiohttp_app()


def aiohttp_main(arguments: list[str]) -> web.Application:
    """Return the application for `python -m aiohttp.web`."""
    return aiohttp_app()
