"""A controller inside of a FastAPI service: a webhook says which image a Deployment gets.

    POST /images/{namespace}/{name}   {"image": "shop:1.2"}: note the image, and run the controller
    GET  /livez                       503 if the process must be restarted, 200 otherwise
    GET  /readyz                      200 while the caches are complete and fresh, 503 otherwise

Only Deployments with the label example.com/deliver=yes are changed. If one is changed by hand, the
controller sets the image again. Several services may share the process: nothing is global.

uvicorn --app-dir examples fastapi_controller:app
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Body, FastAPI, Response

from aioinformer import evolve
from aioinformer.controller import Manager, Request
from aioinformer.controller.snapshots import Health
from aioinformer.models import apps_v1

manager = Manager("delivery")
images: dict[str, str] = {}  # a real service would ask the registry


@manager.controller(
    apps_v1.DEPLOYMENTS,
    informer={"label_selector": "example.com/deliver=yes"},
    writes={apps_v1.DEPLOYMENTS: ("patch",)},
)
async def delivery(request: Request[apps_v1.Deployment]) -> None:
    image = images.get(str(request.key))
    if request.object is None or image is None:
        return
    before = request.object

    def with_image(deployment: apps_v1.Deployment) -> apps_v1.Deployment:
        return evolve(deployment, "spec.template.spec.containers.0.image", image)

    if await request.client.apps.v1.deployments.edit(before, with_image) is not before:
        request.event("Delivered", f"The image is {image}")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with manager:  # it starts at once, and does not wait for its caches
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/images/{namespace}/{name}", status_code=202)
async def pushed(namespace: str, name: str, body: Annotated[dict[str, str], Body()]) -> None:
    key = f"{namespace}/{name}"
    images[key] = body["image"]
    manager.enqueue(delivery, key)


def answer(health: Health) -> Response:
    return Response(str(health), status_code=200 if health else 503)


@app.get("/livez")
async def livez() -> Response:
    return answer(manager.alive())


@app.get("/readyz")
async def readyz() -> Response:
    return answer(manager.ready())
