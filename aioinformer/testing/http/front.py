"""The front door: logs requests, lets faults strike them, asks for credentials, and finds who answers."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import web

from aioinformer.errors import UsageError
from aioinformer.testing.api import statuses
from aioinformer.testing.api.answers import (
    PRIORITY_HEADERS,
    SERVER_CLOCK,
    json_answer,
    standing_headers,
    status_answer,
    text_answer,
)
from aioinformer.testing.api.encoding import decode, encode_plain, pretty
from aioinformer.testing.api.routes import Target, UnknownPath, find_target
from aioinformer.testing.faults import FAULTS, Fault, FaultSet
from aioinformer.testing.http.discovery import VERSION, discovery_document
from aioinformer.testing.http.fault_effects import CUTTING
from aioinformer.testing.http.health import health_text
from aioinformer.testing.http.listening import LARGEST_BODY
from aioinformer.testing.http.writes import with_warnings
from aioinformer.testing.openapi.answers import openapi_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aioinformer.testing.access.doorkeeper import Access
    from aioinformer.testing.api.served import Registry
    from aioinformer.testing.http.fault_effects import FaultEffects
    from aioinformer.testing.http.handlers import ResourceHandlers
    from aioinformer.testing.state.storage import Storage

_log = logging.getLogger(__name__)

_LONGEST_LOG = 100_000
_WITHOUT_BODY = frozenset({"GET", "HEAD"})
_READ_TO_BE_KEPT = 256 * 1024
_CRDS = "customresourcedefinitions.apiextensions.k8s.io"


@dataclass(slots=True)
class RequestEntry:
    """One line of the server's request log.

    Attributes:
        method: HTTP method.
        path: as sent.
        query: first value of each parameter.
        verb: "list", "watch" and so on; "discovery" or "other" for what is about no resource.
        resource: `deployments.apps`, "" for none.
        at: by the server's clock.
        status: of the answer; 0 while there is none, and if the connection broke before.
    """

    method: str
    path: str
    query: Mapping[str, str]
    verb: str
    resource: str
    at: float
    status: int = 0


class FrontDoor:
    """Answers every request.

    Args:
        registry: what is served.
        storage: the state, for documents about it.
        handlers: who answers what is about resources.
        faults: that are active.
        effects: what they do.
        access: who is let in, and may do what.
        faults_over_http: serve `/_faults`.
        clock: seconds since 1970.

    Attributes:
        requests: the latest requests, oldest first.
    """

    def __init__(
        self,
        registry: Registry,
        storage: Storage,
        handlers: ResourceHandlers,
        faults: FaultSet,
        effects: FaultEffects,
        *,
        access: Access,
        faults_over_http: bool,
        clock: Callable[[], float],
    ) -> None:
        self.requests: deque[RequestEntry] = deque(maxlen=_LONGEST_LOG)
        self._registry = registry
        self._storage = storage
        self._handlers = handlers
        self._faults = faults
        self._effects = effects
        self._access = access
        self._faults_over_http = faults_over_http
        self._clock = clock

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answers one request; what it raises is for aiohttp: the connection broke, or the request was cancelled."""
        path = request.rel_url.raw_path
        query = first_values(request)
        if request.headers.get("Expect", "").lower() == "100-continue" and request.transport is not None:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        SERVER_CLOCK.set(self._clock)
        entry = RequestEntry(request.method, path, query, "other", "", self._clock())
        self.requests.append(entry)
        try:
            response = await self._answer(request, path, query, entry)
        except statuses.StatusError as error:
            response = with_warnings(status_answer(request, error), error.warnings)
            if not error.queued:
                for name in PRIORITY_HEADERS:
                    response.headers.pop(name, None)
        except UnknownPath:
            response = text_answer(request, "404 page not found\n", 404)
        except ConnectionResetError:
            # The client has left; of what else is raised aiohttp would print a traceback.
            raise asyncio.CancelledError from None
        except web.HTTPRequestEntityTooLarge:
            response = status_answer(request, _too_large())
        except Exception as error:
            _log.exception("the server failed to answer %s %s", request.method, path)
            response = status_answer(request, statuses.internal_error(f"{type(error).__name__}: {error}"))
        entry.status = response.status
        return response

    async def _answer(
        self, request: web.BaseRequest, path: str, query: Mapping[str, str], entry: RequestEntry
    ) -> web.StreamResponse:
        if self._faults_over_http and path.startswith("/_faults"):
            return await self._fault_request(request, path)
        try:
            target = find_target(self._registry, request.method, path, query)
        except (statuses.StatusError, UnknownPath):
            replaced = await self._effects.intercept(request, Target(request.method, path, query))
            if replaced is not None:
                return replaced
            self._access.admit(request)
            raise
        entry.verb = target.verb
        entry.resource = target.served.resource.group_resource if target.served else ""
        replaced = await self._effects.intercept(request, target)
        if replaced is not None:
            return replaced
        self._access.admit(request)
        if target.served is not None:
            sent = request.content_length or 0
            if sent > LARGEST_BODY and request.method not in _WITHOUT_BODY:
                raise _too_large()
            answer = await self._handlers.answer(request, target)
            if sent > _READ_TO_BE_KEPT and request.method in _WITHOUT_BODY and not answer.prepared:
                # Nobody reads on only to find the next request.
                answer.force_close()
            return answer
        return self._about_itself(request, path)

    def _about_itself(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        plain = path.rstrip("/") or "/"
        asked = request.query
        told = health_text(plain, verbose="verbose" in asked, excluded=asked.getall("exclude", ()))
        if told is not None:
            return text_answer(request, told)
        if request.method != "GET" and plain.startswith(("/version", "/api/", "/apis/")):
            raise statuses.method_not_allowed()
        if plain == "/version":
            return json_answer(request, pretty(encode_plain(VERSION)))
        if plain.startswith("/openapi"):
            definitions = [decode(record.body) for record in self._storage.collection(_CRDS).records()]
            return openapi_answer(request, plain, self._registry, definitions)
        if plain in ("/api", "/apis") or plain.startswith(("/api/", "/apis/")):
            address = request.host
            found = discovery_document(self._registry, plain, request.headers.get("Accept", ""), address)
            if found is not None:
                if "ETag" in found[1] and found[1]["ETag"] == request.headers.get("If-None-Match"):
                    headers = {name: value for name, value in found[1].items() if name != "Content-Type"}
                    return web.Response(status=304, headers=standing_headers(request) | headers)
                return json_answer(request, encode_plain(found[0]), headers=found[1])
        if plain == "/":
            paths = ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]
            return json_answer(request, encode_plain({"paths": paths}))
        raise UnknownPath(path)

    async def _fault_request(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        name = path.removeprefix("/_faults").strip("/")
        if request.method == "GET" and not name:
            kinds = {
                name: {"about": kind.about, "params": dict(kind.defaults)} for name, kind in sorted(FAULTS.items())
            }
            active = [fault.describe() for fault in self._faults.active()]
            return json_answer(request, encode_plain({"faults": kinds, "active": active}))
        if name not in FAULTS:
            raise statuses.StatusError(404, "NotFound", f"there is no fault named {name!r}; GET /_faults lists them")
        if request.method == "DELETE":
            ended = self._faults.active(name)
            for fault in ended:
                await self._effects.end(fault)
            return json_answer(request, encode_plain({"ended": [fault.describe() for fault in ended]}))
        if request.method != "POST":
            raise statuses.method_not_allowed()
        try:
            params = json.loads(await request.read() or b"{}")
            if not isinstance(params, dict):
                raise UsageError("the parameters of a fault must be a JSON object")
            fault = Fault(name, params)
            if name == "outage" and not fault.params["duration"]:
                raise UsageError("an outage ends by itself only: give it a duration in seconds")
            if name in CUTTING:
                self._effects.start_soon(fault)
            else:
                await self._effects.start(fault)
        except ValueError as error:
            raise statuses.bad_request(f"the parameters are not JSON: {error}") from None
        except UsageError as error:
            raise statuses.bad_request(str(error)) from None
        return json_answer(request, encode_plain(fault.describe()), status=201)


def first_values(request: web.BaseRequest) -> dict[str, str]:
    """The first value of each parameter; Go takes none that has a semicolon in it."""
    if ";" not in request.query_string:
        return {name: request.query[name] for name in request.query}
    kept = "&".join(part for part in request.rel_url.raw_query_string.split("&") if ";" not in part)
    parameters = request.rel_url.with_query(None).update_query(kept).query
    return {name: parameters[name] for name in parameters}


def _too_large() -> statuses.StatusError:
    message = f"Request entity too large: limit is {LARGEST_BODY}"
    return statuses.StatusError(413, "RequestEntityTooLarge", message)
