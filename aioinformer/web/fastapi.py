"""FastAPI: a router with probes and metrics. Errors as Problem Details are those of `aioinformer.web.starlette`."""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    from fastapi import APIRouter
except ModuleNotFoundError as error:
    remedy = "aioinformer.web.fastapi needs FastAPI: pip install 'aioinformer[web]'"
    raise ModuleNotFoundError(remedy, name=error.name) from None

from aioinformer.authorization.users import Who
from aioinformer.exports import lazy_exports
from aioinformer.web.informers import Informers
from aioinformer.web.starlette import require as require
from aioinformer.web.starlette import routes
from aioinformer.web.starlette import stream as stream


def router(informers: Informers, *, metrics_check: Who | None = None) -> APIRouter:
    """Return a router with `/livez`, `/readyz` and `/metrics`: `app.include_router(router(informers))`.

    The schema of the API does not contain them.

    Args:
        metrics_check: who may read `/metrics`, such as an `Rbac`; None for everybody.
    """
    found = APIRouter()
    for each in routes(informers, metrics_check=metrics_check):
        found.add_api_route(each.path, each.endpoint, include_in_schema=False, response_model=None)
    return found


if not TYPE_CHECKING:  # type checkers read the module itself
    __getattr__, __dir__ = lazy_exports(__name__)
