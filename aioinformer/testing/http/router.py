"""The entry of all requests: log them, apply faults, check access, and dispatch them."""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import web

from aioinformer.errors import UsageError
from aioinformer.logs import get_logger
from aioinformer.testing.access.authz import attributes_of
from aioinformer.testing.api import statuses
from aioinformer.testing.api.encoding import encode_plain
from aioinformer.testing.api.responses import SERVER_CLOCK, json_response, status_response, text_response
from aioinformer.testing.api.routes import Target, UnknownPath, find_target
from aioinformer.testing.api.statuses import with_warnings
from aioinformer.testing.http.fault_effects import CUTTING
from aioinformer.testing.http.faults import FAULTS, Fault, FaultSet
from aioinformer.testing.http.listener import LARGEST_BODY

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.testing.access.authz import Access
    from aioinformer.testing.api.served import Registry
    from aioinformer.testing.http.fault_effects import FaultEffects
    from aioinformer.testing.http.handlers import ResourceHandlers
    from aioinformer.testing.http.listener import OriginChecks
    from aioinformer.testing.state.storage import Storage

_log = get_logger("aioinformer.testing")

_LONGEST_LOG = 100_000
_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_WITHOUT_BODY = frozenset({"GET", "HEAD"})
_READ_TO_BE_KEPT = 256 * 1024


@dataclass(slots=True)
class RequestEntry:
    """One entry of the server's request log.

    Attributes:
        method: HTTP method.
        path: as sent.
        query: first value of each parameter.
        verb: "list", "watch" and so on; "discovery" or "other" for requests that are about no resource.
        resource: such as `deployments.apps`; "" for none.
        at: time by the server's clock.
        status: of the response; 0 while there is none, or if the connection broke before.
    """

    method: str
    path: str
    query: Mapping[str, str]
    verb: str
    resource: str
    at: float
    status: int = 0


class Router:
    """Answer all requests.

    Args:
        origin_checks: checks the origin of requests; None for no checks.

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
        origin_checks: OriginChecks | None,
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
        self._origin_checks = origin_checks
        self._clock = clock

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request. Exceptions are for aiohttp: the connection broke, or the request was cancelled."""
        path = request.rel_url.raw_path
        query = first_values(request)
        SERVER_CLOCK.set(self._clock)
        entry = RequestEntry(request.method, path, query, "other", "", self._clock())
        self.requests.append(entry)
        try:
            response = _malformed_path(path) or await self._answer(request, path, query, entry)
        except statuses.StatusError as error:
            response = with_warnings(status_response(request, error), error.warnings)
        except UnknownPath:
            response = text_response(request, "404 page not found\n", 404)
        except ConnectionResetError:
            # The client has disconnected. aiohttp would print a traceback for any other exception.
            raise asyncio.CancelledError from None
        except web.HTTPRequestEntityTooLarge:
            response = status_response(request, _too_large())
        except Exception as error:
            _log.exception("the server failed to answer %s %s", request.method, path)
            response = status_response(request, statuses.internal_error(f"{type(error).__name__}: {error}"))
        if _waits(request) and request.can_read_body and not response.prepared:
            # The client may or may not send the body that it has announced.
            response.force_close()
        entry.status = response.status
        return response

    async def _answer(
        self, request: web.BaseRequest, path: str, query: Mapping[str, str], entry: RequestEntry
    ) -> web.StreamResponse:
        if self._origin_checks is not None:
            self._origin_checks.check(request, path)
        if self._faults_over_http and path.startswith("/_faults"):
            return await self._fault_request(request, path)
        wrong: statuses.StatusError | UnknownPath | None = None
        try:
            target = find_target(self._registry, request.method, path, query)
        except (statuses.StatusError, UnknownPath) as error:
            target = Target(request.method, path, query)
            wrong = error
        entry.verb = target.verb
        entry.resource = target.served.resource.group_resource if target.served else ""
        replaced = await self._effects.intercept(request, target)
        if replaced is not None:
            return replaced
        attributes = attributes_of(request.method, path, query)
        if self._origin_checks is None or not self._origin_checks.is_open(request.method, path):
            self._access.admit(request, attributes)
        starting = self._effects.is_starting(target)
        try:
            if wrong is not None:
                raise wrong
            if target.served is None:
                from aioinformer.testing.http.nonresource import nonresource_response

                return nonresource_response(request, path, self._registry, self._storage, starting=starting)
            if starting and target.served.custom:
                raise UnknownPath(path)
            return await self._about_resource(request, target)
        except UnknownPath:
            if starting:
                raise statuses.not_installed() from None
            raise

    async def _about_resource(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        sent = request.content_length or 0
        if sent > LARGEST_BODY and request.method not in _WITHOUT_BODY:
            raise _too_large()
        _send_continue(request)
        answer = await self._handlers.answer(request, target)
        if sent > _READ_TO_BE_KEPT and request.method in _WITHOUT_BODY and not answer.prepared:
            # As a real server: it does not read a large unused body to reach the next request.
            answer.force_close()
        return answer

    async def _fault_request(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        name = path.removeprefix("/_faults").strip("/")
        if request.method == "GET" and not name:
            kinds = {
                name: {"about": kind.about, "params": dict(kind.defaults)} for name, kind in sorted(FAULTS.items())
            }
            active = [fault.describe() for fault in self._faults.active()]
            return json_response(request, encode_plain({"faults": kinds, "active": active}))
        if name not in FAULTS:
            raise statuses.StatusError(404, "NotFound", f"there is no fault named {name!r}; GET /_faults lists them")
        if request.method == "DELETE":
            ended = self._faults.active(name)
            for fault in ended:
                await self._effects.end(fault)
            return json_response(request, encode_plain({"ended": [fault.describe() for fault in ended]}))
        if request.method != "POST":
            raise statuses.method_not_allowed()
        if self._origin_checks is not None:
            self._origin_checks.check_json(request)
        _send_continue(request)
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
        return json_response(request, encode_plain(fault.describe()), status=201)


def first_values(request: web.BaseRequest) -> dict[str, str]:
    """Return the first value of each parameter. Like Go, skip those with a semicolon or a malformed percent escape."""
    text = request.rel_url.raw_query_string
    if ";" not in request.query_string and not _BAD_ESCAPE.search(text):
        return {name: request.query[name] for name in request.query}
    kept = "&".join(part for part in text.split("&") if ";" not in part and not _BAD_ESCAPE.search(part))
    parameters = request.rel_url.with_query(None).update_query(kept).query
    return {name: parameters[name] for name in parameters}


def _malformed_path(path: str) -> web.Response | None:
    """Return 400 for a path with a malformed percent escape; None for other paths."""
    if not _BAD_ESCAPE.search(path):
        return None
    answer = web.Response(status=400, text="400 Bad Request")
    answer.force_close()
    return answer


def _waits(request: web.BaseRequest) -> bool:
    return request.headers.get("Expect", "").lower() == "100-continue"


def _send_continue(request: web.BaseRequest) -> None:
    """Send `100 Continue` if the client waits for it: sender and target are known."""
    if _waits(request) and request.body_exists and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


def _too_large() -> statuses.StatusError:
    message = f"Request entity too large: limit is {LARGEST_BODY}"
    return statuses.StatusError(413, "RequestEntityTooLarge", message)
