"""Starlette, and what FastAPI shares with it: streams, errors as Problem Details, the routes of probes and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qsl

try:
    from starlette.middleware.exceptions import ExceptionMiddleware
    from starlette.requests import Request
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route
except ModuleNotFoundError as error:
    remedy = "aioinformer.web.starlette needs Starlette: pip install 'aioinformer[web]'"
    raise ModuleNotFoundError(remedy, name=error.name) from None

from aioinformer.authorization.users import User, Who, permitted
from aioinformer.exports import lazy_exports
from aioinformer.logs import get_logger
from aioinformer.resources.resource import Resource
from aioinformer.serving import Answer, joined_headers
from aioinformer.web import probes
from aioinformer.web.ending import Ending
from aioinformer.web.informers import Informers
from aioinformer.web.opened import Opened
from aioinformer.web.problems import HANDLED, Problem, problem
from aioinformer.web.streams import StreamCore

#: What routes of Starlette and FastAPI call.
Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

_log = get_logger("aioinformer.web")


def stream(
    informers: Informers,
    views: Mapping[Resource[Any], Callable[..., Any] | None],
    *,
    who: Who,
    per_user: int = 20,
    most: int = 5000,
) -> Endpoint:
    """Return an endpoint that streams the changes of resources as server-sent events.

        app.get("/live")(stream(informers, {core_v1.PODS: Row}, who=Rbac(audiences=["dashboard"])))

    Args:
        informers: which watch the resources.
        views: of the resources: a function, a class (msgspec, dataclass, pydantic), or None for names and versions
            only. Nothing but a view leaves the process.
        who: says who sends a request and what that user may see; `EVERYBODY` if everybody may see all of it.
        per_user: so many streams of one user may be open; more are refused, 429.
        most: so many streams may be open in all.

    Raises:
        UsageError: a view is invalid, a resource is not watched, or `who` decides nothing.
    """
    core = StreamCore(informers, views, who=who, per_user=per_user, most=most)
    ending = Ending(core.end_streams)

    async def live(request: Request) -> Response:
        return _Live(core, ending)

    live.__doc__ = _DESCRIPTION
    live.views = views  # type: ignore[attr-defined]
    return live


def require(who: Who, verb: str, resource: Resource[Any]) -> Callable[[Request], Awaitable[User]]:
    """Return a function that returns the user of a request, who may do something with a resource.

    In FastAPI, it is a dependency: `Depends(require(who, "get", core_v1.PODS))`. The namespace is the path parameter
    `namespace`; without one, the user needs the right for all namespaces. Refusals are problems: 401, 403, 503.

    Args:
        who: says who sends a request and what that user may do.
        verb: "get", "list".
        resource: of which the user must be allowed to do it with all objects of the namespace.
    """

    async def user(request: Request) -> User:
        found = await who.authenticate(headers_of(request), peer_of(request) or None)
        namespace = request.path_params.get("namespace")
        await permitted(who, found, [resource], () if namespace is None else (namespace,), (verb,))
        return found

    return user


#: Of the endpoint, in the schema of an API.
_DESCRIPTION = (
    "Server-sent events: first what there is, then `synced`, then what changes. Go on with the `id` of the last event, "
    "as the parameter `after` or the header `Last-Event-ID`."
)


class _Live(Response):
    """Opens a stream, sends it, and closes it in any case."""

    def __init__(self, core: StreamCore, ending: Ending) -> None:
        super().__init__()
        self._core = core
        self._ending = ending

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope)
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        connection = _Connection(receive, send)
        opened = await self._core.open(headers_of(request), query, peer_of(request) or None, abort=connection.abort)
        if isinstance(opened, Problem):
            await Response(opened.body, opened.status, opened.all_headers())(scope, receive, send)
            return
        server = scope.get("server")
        self._ending.opened(server[1] if server else None)
        try:
            await _Sent(opened, connection)(scope, receive, send)
        finally:
            self._ending.closed()
            await opened.aclose()


class _Connection:
    """The connection of a request, as far as the server lets it be reached.

    Attributes:
        aborted: whether the stream has cut it.
    """

    def __init__(self, *calls: Any) -> None:
        self.aborted = False
        self._calls = calls

    def abort(self) -> None:
        """Drop what the client does not take: uvicorn would wait for it before it closes, and at its own end."""
        self.aborted = True
        for each in self._calls:
            transport: Any = getattr(getattr(each, "__self__", None), "transport", None)
            if hasattr(transport, "abort"):  # uvloop has classes of its own
                transport.abort()
                return


class _Sent(StreamingResponse):
    """Sends an open stream. It ends without an error if the stream has cut the connection."""

    def __init__(self, opened: Opened, connection: _Connection) -> None:
        super().__init__(opened, headers=opened.headers)
        self._connection = connection

    async def stream_response(self, send: Any) -> None:
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for chunk in self.body_iterator:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                del chunk  # while the stream waits, it would keep what was sent last, such as a part of a large cache
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._connection.aborted or task is None:
                raise
            task.uncancel()


async def answer_problem(request: Request, error: Exception) -> Response:
    """Answer about an error, as an exception handler of Starlette and FastAPI does."""
    found = problem(error)  # type: ignore[arg-type]
    return Response(found.body, found.status, found.all_headers())


def add_exception_handlers(app: Any) -> None:
    """Answer errors of this package as Problem Details. `Informers.lifespan` does it; call this without that.

    Args:
        app: an application of Starlette or FastAPI, before its start. A handler that it has for an error stays.
    """
    for kind in HANDLED:
        app.exception_handlers.setdefault(kind, answer_problem)


def prepare(app: Any) -> None:
    """Answer errors as Problem Details in an application that is starting, and describe its streams if it is FastAPI.

    The middleware of such an application exists already.
    """
    if hasattr(app, "openapi"):
        from aioinformer.web.fastapi import describe_streams

        describe_streams(app)
    handlers = getattr(app, "exception_handlers", {})
    missing = [kind for kind in HANDLED if kind not in handlers]
    layer = getattr(app, "middleware_stack", None)
    while layer is not None:
        if isinstance(layer, ExceptionMiddleware):
            for kind in missing:
                layer.add_exception_handler(kind, answer_problem)
            return
        layer = getattr(layer, "app", None)
    _log.warning(
        "errors are not answered as Problem Details: a middleware hides that of Starlette; before the start, call "
        "aioinformer.web.starlette.add_exception_handlers(app)"
    )


def headers_of(request: Request) -> dict[str, str]:
    """Return the headers of a request for `Who.authenticate`."""
    return joined_headers((name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw)


def peer_of(request: Request) -> str:
    """Return the address of the peer; "" if it is not known."""
    return "" if request.client is None else request.client.host


def response_of(answer: Answer) -> Response:
    """Return an answer as a response of Starlette."""
    return Response(answer.body, answer.status, answer.all_headers())


def routes(informers: Informers, *, metrics_check: Who | None = None) -> list[Route]:
    """Return the routes of `/livez`, `/readyz` and `/metrics`: `Starlette(routes=[*routes(informers), …])`.

    Args:
        metrics_check: who may read `/metrics`, such as an `Rbac`; None for everybody.
    """

    async def livez(request: Request) -> Response:
        return response_of(probes.alive())

    async def readyz(request: Request) -> Response:
        return response_of(probes.ready(informers))

    async def metrics(request: Request) -> Response:
        return response_of(await probes.metrics(informers, metrics_check, headers_of(request), peer_of(request)))

    informers.add_check(metrics_check)
    return [Route("/livez", livez), Route("/readyz", readyz), Route("/metrics", metrics)]


if not TYPE_CHECKING:  # type checkers read the module itself
    __getattr__, __dir__ = lazy_exports(__name__)
