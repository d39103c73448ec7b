"""FastAPI: a router with probes and metrics, and the schema of streams. The rest is that of Starlette."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, get_type_hints

try:
    from fastapi import APIRouter, FastAPI
    from fastapi.routing import APIRoute
    from pydantic import PydanticSchemaGenerationError, TypeAdapter
    from starlette.responses import Response
except ModuleNotFoundError as error:
    remedy = "aioinformer.web.fastapi needs FastAPI: pip install 'aioinformer[web]'"
    raise ModuleNotFoundError(remedy, name=error.name) from None

import msgspec

from aioinformer.authorization.users import Who
from aioinformer.exports import lazy_exports
from aioinformer.resources.resource import Resource
from aioinformer.web.informers import Informers
from aioinformer.web.starlette import require as require
from aioinformer.web.starlette import routes
from aioinformer.web.starlette import stream as stream

_TEXTS: Final = {
    "namespace": "one namespace; may be repeated, up to 20 times. Without it, all namespaces",
    "resource": "one resource of the stream; may be repeated. Without it, all of them",
    "selector": "of labels, for all resources",
    "after": "a cursor: the `id` of the last event of another stream",
}
_REPEATED: Final = ("namespace", "resource")
_PROBLEM: Final = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}
_REFUSALS: Final = {400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 429: "Too Many Requests"}


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


def describe_streams(app: FastAPI) -> None:
    """Describe the streams of an application in its schema, by their views. `Informers.lifespan` does it."""
    for route in app.routes:
        views = getattr(getattr(route, "endpoint", None), "views", None)
        if not isinstance(route, APIRoute) or views is None:
            continue
        content = {"text/event-stream": {"itemSchema": _event_schema(views)}}
        described: dict[int | str, dict[str, Any]] = {200: {"description": "Events", "content": content}}
        for status, title in _REFUSALS.items():
            problem = {"application/problem+json": {"schema": _PROBLEM}}
            described[status] = {"description": title, "content": problem}
        route.response_class = Response  # whose type is not that of JSON
        route.responses = {**described, **route.responses}
        route.openapi_extra = {"parameters": [*map(_parameter, _TEXTS)], **(route.openapi_extra or {})}


def _parameter(name: str) -> dict[str, Any]:
    text = {"type": "string"}
    schema = {"type": "array", "items": text} if name in _REPEATED else text
    return {"name": name, "in": "query", "required": False, "description": _TEXTS[name], "schema": schema}


def _event_schema(views: Mapping[Resource[Any], Callable[..., Any] | None]) -> dict[str, Any]:
    """Return the schema of an event, as FastAPI describes those of its own streams."""
    properties: dict[str, Any] = {
        "resource": {"enum": [each.gvr for each in views]},
        "key": {"type": "string", "description": "namespace/name"},
    }
    shown = [_view_schema(view) for view in views.values() if view is not None]
    if shown:
        properties["object"] = shown[0] if len(shown) == 1 else {"anyOf": shown}
    if len(shown) < len(views):
        properties["version"] = {"type": "string"}
    data = {"type": "object", "properties": properties}
    return {
        "type": "object",
        "properties": {
            "event": {"enum": ["reset", "put", "delete", "synced"]},
            "data": {"type": "string", "contentMediaType": "application/json", "contentSchema": data},
            "id": {"type": "string"},
            "retry": {"type": "integer", "minimum": 0},
        },
    }


def _view_schema(view: Callable[..., Any]) -> dict[str, Any]:
    """Return the schema of a class, or of what a function says it returns; {} if that is not known."""
    try:
        kind = view if isinstance(view, type) else get_type_hints(view).get("return", Any)
        schema = TypeAdapter(kind).json_schema()
    except PydanticSchemaGenerationError:
        try:
            schema = msgspec.json.schema(kind)
        except TypeError:
            return {}
    except (NameError, TypeError):
        return {}
    if "$defs" in schema:
        # So its references are to its own definitions, and not to those of the whole document.
        schema["$id"] = f"view:{getattr(view, '__qualname__', 'view')}"
    return schema


if not TYPE_CHECKING:  # type checkers read the module itself
    __getattr__, __dir__ = lazy_exports(__name__)
