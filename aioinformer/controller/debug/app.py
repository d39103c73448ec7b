"""`DebugApp`: the debug page of a manager, as an ASGI application and an aiohttp application, and on a port of its own.

| path | |
|---|---|
| `` | the page; its style and its script are beside it |
| `troubleshooting` | the page *Troubleshooting* of the documentation, to which the problems refer |
| `api/report` | the report as JSON |
| `api/events` | the report every two seconds (`?interval=`), as server-sent events |
| `api/key?controller=&key=` | one key, with its stack and its last changes |
| `api/memory` | what the caches take, measured at most once a minute |
| `api/retry` | POST: run a parked key again, if that is allowed |
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import msgspec

from aioinformer.authorization.rbac import Rbac
from aioinformer.authorization.users import AccessDenied, Unauthenticated, Who
from aioinformer.client.client import Client
from aioinformer.controller.debug.access import Check, DebugRequest, refusal
from aioinformer.controller.debug.recording import Recording
from aioinformer.controller.debug.report import key_report, report
from aioinformer.controller.running.active import ActiveController
from aioinformer.controller.running.session import Session
from aioinformer.controller.scrubbing import scrubbed
from aioinformer.errors import OptionError, UsageError
from aioinformer.exports import lazy_type
from aioinformer.listening import listening
from aioinformer.logs import get_logger
from aioinformer.serving import Answer, aiohttp_application, answer_asgi

if TYPE_CHECKING:
    from aiohttp.web import Application

    from aioinformer.serving import WebRequest
else:
    Application = lazy_type("aiohttp.web", "Application")

_log = get_logger("aioinformer.controller")

#: Seconds between two events, for which a report is used again, and between two measurements of the memory.
_INTERVAL: Final = 2.0
_FRESH: Final = 0.9
_MEASURED: Final = 60.0
#: How many readers of events there may be, and the most bytes of a request.
_READERS: Final = 16
_BODY: Final = 10_000
#: At a time: a browser opens several for a page.
_CONNECTIONS: Final = 64

_ASSETS: Final = {
    "": ("page.html", "text/html; charset=utf-8"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
    "troubleshooting": ("troubleshooting.html", "text/html; charset=utf-8"),
}
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_encode = msgspec.json.Encoder().encode


class DebugApp:
    """The debug page of a manager; `Manager.debug_app` makes it. It is an ASGI application.

    From then on, changes and runs are recorded while the manager runs. The page shows names, counts, lines of code and
    the texts of the log; no credential, and nothing that a Secret contains.

    Attributes:
        check: as given; None for none.
        recording: of the session that runs, or ran last.

    Raises:
        UsageError: an argument is invalid.
    """

    def __init__(
        self,
        name: str,
        session: Callable[[], Session | None],
        *,
        check: Check | None,
        values: bool,
        retry: bool,
        memory: int,
        docs: str,
    ) -> None:
        if check is not None and not callable(check) and not isinstance(check, Who):
            raise UsageError(f"debug_app: check must be a function of a DebugRequest, or an Rbac, not {check!r}")
        if type(memory) is not int or memory < 0:
            raise OptionError(f"debug_app: memory must be a number of bytes, 0 or more, not {memory!r}")
        if docs and not docs.startswith(("https://", "http://")):
            raise OptionError(f"debug_app: docs must be an http or https URL, not {docs!r}")
        self.recording = Recording(memory, values=values)
        self._name = name
        self._session = session
        self.check = check
        self._retry = retry
        self._docs = docs
        self._ended: asyncio.Future[None] | None = None
        self._readers = 0
        self._known: tuple[float, bytes] = (float("-inf"), b"")
        self._memory: tuple[float, list[dict[str, Any]]] = (float("-inf"), [])
        self._measuring = asyncio.Lock()

    # For the manager.

    def begin(self, client: Client) -> None:
        """Begin to record a session. Its client asks what an `Rbac` without one of its own wants to know."""
        if isinstance(self.check, Rbac):
            self.check.bind(client)
        self.recording = Recording(self.recording.histories.limit, values=self.recording.values)
        self._ended = asyncio.get_running_loop().create_future()
        self._known = (float("-inf"), b"")
        self._memory = (float("-inf"), [])

    def follow(self, active: ActiveController) -> None:
        """Record what a controller does, which has attached its inputs."""
        self.recording.follow(active)

    def end(self) -> None:
        """End the recording, and the events of all readers."""
        self.recording.close()
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    @asynccontextmanager
    async def serve(self, port: int) -> AsyncIterator[int]:
        """Serve the page on a port of the loopback interface while the block runs.

        Raises:
            UsageError: the port is in use.
        """
        remedy = "choose another debug_port (--debug-port), or 0 for a free one"
        async with listening(
            self._respond_on_port, _BODY, "127.0.0.1", port, what="the debug page", remedy=remedy, most=_CONNECTIONS
        ) as found:
            _log.info("the debug page is at http://127.0.0.1:%d/", found.number)
            yield found.number

    def report(self) -> dict[str, Any]:
        """Return what the page shows, as plain data for `json.dumps`. Call it on the thread of the event loop."""
        session = self._session()
        found = report(self._name, session, self.recording, 0.0 if session is None else session.pulse.late)
        return {**found, "may_retry": self._retry, "docs": self._docs}

    # Requests.

    async def _respond_on_port(self, sent: WebRequest) -> Answer:
        return await self._respond(sent, on_own_port=True)

    async def _respond_mounted(self, sent: WebRequest) -> Answer:
        return await self._respond(sent, on_own_port=False)

    async def _respond(self, sent: WebRequest, *, on_own_port: bool) -> Answer:
        if sent.path == "" and sent.root:
            # Without the slash at the end, the browser would look for style and script one level higher.
            answer = Answer(307, "text/plain", headers={"Location": f"{sent.root}/"})
        else:
            sent = msgspec.structs.replace(sent, path=sent.path.strip("/"))
            request = DebugRequest(*msgspec.structs.astuple(sent))
            try:
                reason = await refusal(request, self.check, on_own_port=on_own_port)
            except (Unauthenticated, AccessDenied) as refused:
                answer = msgspec.structs.replace(_error(refused.status, str(refused)), headers=refused.headers)
            else:
                answer = _error(403, reason) if reason else await self._answer(request)
        return msgspec.structs.replace(answer, headers={**_HEADERS, **answer.headers})

    async def _answer(self, request: DebugRequest) -> Answer:
        path = request.path
        if request.method == "POST" and path == "api/retry":
            return self._run_again(request, await request.read())
        if request.method not in ("GET", "HEAD"):
            return _error(405, f"{request.method} is not served here")
        if path in _ASSETS:
            name, content_type = _ASSETS[path]
            return Answer(
                200, content_type, files("aioinformer.controller.debug").joinpath("assets", name).read_bytes()
            )
        match path:
            case "api/report":
                return Answer(200, "application/json", self._encoded())
            case "api/key":
                return self._of_key(request.query.get("controller", ""), request.query.get("key", ""))
            case "api/memory":
                return Answer(200, "application/json", _encode(await self._measured()))
            case "api/events":
                return self._events(request.query.get("interval", str(_INTERVAL)))
        return _error(404, f"there is no {path!r}: read the page itself, api/report, api/events, api/key or api/memory")

    def _encoded(self) -> bytes:
        """Return the report as JSON: one for all readers at a time."""
        now = asyncio.get_running_loop().time()
        if now - self._known[0] > _FRESH:
            self._known = now, _encode(self.report())
        return self._known[1]

    def _events(self, interval: str) -> Answer:
        try:
            seconds = min(max(float(interval), 1.0), 60.0)
        except ValueError:
            return _error(400, f"interval must be seconds from 1 to 60, not {interval!r}")
        if self._readers >= _READERS:
            reason = f"{_READERS} readers follow this page already, so this one gets no events; close another one"
            return _error(503, reason)
        return Answer(200, "text/event-stream", headers={"X-Accel-Buffering": "no"}, stream=self._stream(seconds))

    async def _stream(self, seconds: float) -> AsyncIterator[bytes]:
        self._readers += 1
        try:
            while True:
                yield b"data: " + self._encoded() + b"\n\n"
                if self._ended is None or self._ended.done():
                    return
                await asyncio.wait({self._ended}, timeout=seconds)
        finally:
            self._readers -= 1

    def _find(self, name: str, key: str) -> tuple[ActiveController, Any] | Answer:
        session = self._session()
        supervised = None if session is None else session.controllers.get(name)
        if supervised is None:
            names = ", ".join([] if session is None else session.controllers) or "no controllers"
            return _error(404, f"manager {self._name} has no controller {name!r}; it runs {names}")
        try:
            return supervised.active, supervised.controller.key_of(key)
        except UsageError as error:
            return _error(400, str(error))

    def _of_key(self, name: str, text: str) -> Answer:
        found = self._find(name, text)
        if isinstance(found, Answer):
            return found
        active, key = found
        known = key_report(active, key, self.recording)
        if not known["exists"] and known["state"] == "idle" and not known["changes"] and "runs" not in known:
            return _error(404, f"controller {name} does not know {key}: it is not in the cache, and nothing is queued")
        return Answer(200, "application/json", _encode(known))

    def _run_again(self, request: DebugRequest, body: bytes) -> Answer:
        if not self._retry:
            return _error(403, "this page may not run keys: pass retry=True to debug_app, or --debug-retry")
        if not request.is_same_origin or not request.headers.get("content-type", "").startswith("application/json"):
            return _error(403, "only the page itself may run keys: JSON with an Origin that is this host is needed")
        try:
            wanted = msgspec.json.decode(body, type=dict[str, str])
            found = self._find(wanted["controller"], wanted["key"])
        except (msgspec.DecodeError, KeyError):
            return _error(400, 'the body must be {"controller": …, "key": …}')
        if isinstance(found, Answer):
            return found
        active, key = found
        count = active.queue.retry_parked([key])
        _log.info("debug page: parked key %s of controller %s is run again: %d", key, active.name, count)
        self._known = float("-inf"), b""
        if not count:
            return _error(409, f"{key} is not parked any more")
        return Answer(200, "application/json", _encode({"retried": count}))

    async def _measured(self) -> list[dict[str, Any]]:
        """Return what each cache takes, with its tier; measured at most once a minute."""
        async with self._measuring:
            session = self._session()
            clock = asyncio.get_running_loop().time
            if session is not None and session.informers is not None and clock() - self._memory[0] > _MEASURED:
                found = await session.informers.memory()
                rows = [{"cache": key, **msgspec.to_builtins(each)} for key, each in found.items()]
                self._memory = clock(), scrubbed(rows)
            return self._memory[1]

    # Frameworks.

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, as an ASGI application does."""
        await answer_asgi(scope, receive, send, self._respond_mounted, _BODY)

    def aiohttp(self) -> Application:
        """Return an aiohttp application; mount it with `app.add_subapp("/debug/", manager.debug_app().aiohttp())`."""
        return aiohttp_application(self._respond_mounted, _BODY)


def _error(status: int, text: str) -> Answer:
    return Answer(status, "application/json", _encode({"error": text}))
