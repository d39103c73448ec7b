"""Starlette, and what FastAPI shares with it: errors as Problem Details, and the routes of probes and metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    from starlette.middleware.exceptions import ExceptionMiddleware
    from starlette.requests import Request  # noqa: TC002 - FastAPI evaluates annotations
    from starlette.responses import Response
    from starlette.routing import Route
except ModuleNotFoundError as error:
    remedy = "aioinformer.web.starlette needs Starlette: pip install 'aioinformer[web]'"
    raise ModuleNotFoundError(remedy, name=error.name) from None

from aioinformer.authorization.users import Who
from aioinformer.exports import lazy_exports
from aioinformer.logs import get_logger
from aioinformer.serving import Answer, joined_headers
from aioinformer.web import probes
from aioinformer.web.informers import Informers
from aioinformer.web.problems import HANDLED, problem

_log = get_logger("aioinformer.web")


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
    """Answer errors as Problem Details in an application that is starting: its middleware exists already."""
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
