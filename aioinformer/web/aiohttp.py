"""aiohttp: caches that start and end with an application, streams, probes, metrics, and errors as Problem Details."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from aiohttp import web

from aioinformer.authorization.users import User, Who, permitted
from aioinformer.exports import lazy_exports
from aioinformer.resources.resource import Resource
from aioinformer.serving import Answer, joined_headers
from aioinformer.web import probes
from aioinformer.web.informers import Informers
from aioinformer.web.problems import HANDLED, Problem, problem
from aioinformer.web.streams import StreamCore

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


def stream(
    informers: Informers,
    views: Mapping[Resource[Any], Callable[..., Any] | None],
    *,
    who: Who,
    per_user: int = 20,
    most: int = 5000,
) -> _Handler:
    """Return a handler that streams the changes of resources as server-sent events: `app.router.add_get("/live", …)`.

    Arguments and errors are those of `aioinformer.web.starlette.stream`.
    """
    core = StreamCore(informers, views, who=who, per_user=per_user, most=most)

    async def live(request: web.Request) -> web.StreamResponse:
        transport = request.transport
        if transport is None:
            raise ConnectionResetError("the client has gone")
        opened = await core.open(
            joined_headers(request.headers.items()),
            [*request.query.items()],
            request.remote,
            abort=transport.abort,
            is_closing=transport.is_closing,  # aiohttp lets a handler run until it writes again
        )
        if isinstance(opened, Problem):
            refusal = web.Response(body=opened.body, status=opened.status, headers=opened.all_headers())
            if opened.status == 429:
                refusal.force_close()  # aiohttp would keep the connection of a flood open for an hour
            return refusal
        response = web.StreamResponse(headers=opened.headers)
        transport.set_write_buffer_limits(high=0)  # of a slow client, one chunk at most waits in this process
        try:
            await response.prepare(request)
            async for chunk in opened:
                await response.write(chunk)
                del chunk  # while the stream waits, it would keep what was sent last, such as a part of a large cache
        except ConnectionError:
            pass  # the client has gone
        finally:
            await opened.aclose()
        return response

    return live


def require(who: Who, verb: str, resource: Resource[Any]) -> Callable[[web.Request], Awaitable[User]]:
    """Return a function that returns the user of a request, who may do something with a resource.

    The namespace is that of the path, `/pods/{namespace}/{name}`; arguments and refusals are those of
    `aioinformer.web.starlette.require`.
    """

    async def user(request: web.Request) -> User:
        found = await who.authenticate(joined_headers(request.headers.items()), request.remote)
        namespace = request.match_info.get("namespace")
        await permitted(who, found, [resource], () if namespace is None else (namespace,), (verb,))
        return found

    return user


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
