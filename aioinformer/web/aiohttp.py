"""aiohttp: caches that start and end with an application, probes, metrics, and errors as Problem Details."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from aiohttp import web

from aioinformer.authorization.users import Who
from aioinformer.exports import lazy_exports
from aioinformer.serving import Answer, joined_headers
from aioinformer.web import probes
from aioinformer.web.informers import Informers
from aioinformer.web.problems import HANDLED, problem

_Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


def setup(app: web.Application, informers: Informers, *, metrics_check: Who | None = None) -> None:
    """Start and end informers with an application, and serve `/livez`, `/readyz` and `/metrics`.

    Errors of this package become Problem Details. At the end of the application, its streams end first.

    Args:
        metrics_check: who may read `/metrics`, such as an `Rbac`; None for everybody.
    """

    async def running(app: web.Application) -> AsyncIterator[None]:
        async with informers:
            yield

    async def end_streams(app: web.Application) -> None:
        informers.end_streams()

    async def livez(request: web.Request) -> web.Response:
        return response_of(probes.alive())

    async def readyz(request: web.Request) -> web.Response:
        return response_of(probes.ready(informers))

    async def metrics(request: web.Request) -> web.Response:
        headers = joined_headers(request.headers.items())
        return response_of(await probes.metrics(informers, metrics_check, headers, request.remote or ""))

    informers.add_check(metrics_check)
    app.cleanup_ctx.append(running)
    app.on_shutdown.append(end_streams)
    app.middlewares.append(answer_problems)
    app.router.add_get("/livez", livez)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", metrics)


@web.middleware
async def answer_problems(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Answer errors of this package as Problem Details; `setup` adds this middleware."""
    try:
        return await handler(request)
    except HANDLED as error:
        found = problem(error)
        return web.Response(body=found.body, status=found.status, headers=found.all_headers())


def response_of(answer: Answer) -> web.Response:
    """Return an answer as a response of aiohttp."""
    return web.Response(body=answer.body, status=answer.status, headers=answer.all_headers())


if not TYPE_CHECKING:  # type checkers read the module itself
    __getattr__, __dir__ = lazy_exports(__name__)
