"""Apply faults: replace responses, and act on sockets, history and watches."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from aiohttp import web

from aioinformer.concurrency import create_task
from aioinformer.errors import UsageError
from aioinformer.testing.api import statuses
from aioinformer.testing.api.responses import common_headers, text_response
from aioinformer.testing.api.statuses import StatusError
from aioinformer.testing.http.reading.watches import error_line
from aioinformer.testing.state.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Collection as AnyCollection

    from aioinformer.testing.api.routes import Target
    from aioinformer.testing.api.served import Registry
    from aioinformer.testing.http.faults import Fault, FaultSet
    from aioinformer.testing.http.listener import Listener
    from aioinformer.testing.http.reading.streams import WatchStream
    from aioinformer.testing.state.storage import Backup

_HTML = "<!DOCTYPE html><html><head><title>Gateway</title></head><body><h1>Please log in</h1></body></html>\n"
_SHUTDOWN_PAUSE = 0.5
CUTTING = frozenset({"outage", "restart"})
"""Faults that cut the connection of the request that starts them."""


class FaultEffects:
    """Start and end faults, and apply them to requests."""

    def __init__(
        self,
        faults: FaultSet,
        listener: Listener,
        storage: Storage,
        registry: Registry,
        streams: AnyCollection[WatchStream],
    ) -> None:
        self._faults = faults
        self._listener = listener
        self._storage = storage
        self._registry = registry
        self._streams = streams
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self._credentials: set[str] = set()

    async def start(self, fault: Fault) -> None:
        """Start a fault. Faults of the sort "acts" are complete when this returns.

        Raises:
            UsageError: the fault needs a past version that is not retained.
        """
        if fault.name == "stale_replica":
            fault.replica = self._replica(fault)
        elif fault.name == "expired_credentials":
            fault.expired = frozenset(self._credentials)
        self._faults.start(fault)
        duration = float(fault.params["duration"])
        if duration:
            loop = asyncio.get_running_loop()
            self._timers.add(loop.call_later(duration, self._spawn, fault, True))
        if fault.kind.sort == "act":
            await self._act(fault)
            return
        for stream in list(self._streams):
            if not fault.matches(stream.target):
                continue
            if fault.kind.sort == "stream" or (fault.name == "expired" and not fault.params["as_status"]):
                stream.disrupt(fault)

    def start_soon(self, fault: Fault) -> None:
        """Start a fault after the response to the current request."""
        self._spawn(fault, False)

    async def end(self, fault: Fault) -> None:
        """End a fault. Idempotent."""
        was_active = fault.active
        fault.active = False
        if fault.name == "outage" and was_active:
            await self._listener.open()
        for stream in list(self._streams):
            stream.wake()

    async def stop(self) -> None:
        """Cancel all planned ends."""
        for timer in self._timers:
            timer.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def restore(self, backup: Backup) -> None:
        """Replace the state by a backup; the connections of all watches break, as after a restart."""
        self._storage.restore(backup)
        for stream in list(self._streams):
            stream.stop()
            stream.break_connection()

    async def intercept(self, request: web.BaseRequest, target: Target) -> web.StreamResponse | None:
        """Apply faults to a request before it is served.

        Returns:
            The response to send instead, or None to continue.

        Raises:
            StatusError: the error of a fault.
        """
        self._check_credentials(request.headers.get("Authorization", ""), target)
        late = self._faults.strike("latency", target)
        if late:
            await asyncio.sleep(float(late.params["seconds"]))
        if self._faults.strike("black_hole", target):
            await asyncio.Event().wait()
        if target.verb == "list":
            slow = self._faults.strike("slow", target)
            if slow:
                await asyncio.sleep(float(slow.params["seconds"]))
        later = ("refuse_send_initial_events", "ignore_send_initial_events")
        fault = self._faults.strike_sort("answer", target, but=later)
        if fault is None:
            return None
        if fault.name == "storm" and fault.status() < 400:
            return None
        if fault.name == "html":
            status = int(fault.params["status"])
            return web.Response(text=_HTML, status=status, content_type="text/html")
        if fault.name == "server_error" and fault.params["text"]:
            return text_response(request, "internal server error\n", int(fault.params["status"]))
        if fault.name == "throttle":
            # As in a real server, requests are counted before any handler that writes a Status.
            answer = text_response(request, "Too many requests, please try again later.\n", 429)
            answer.headers["Retry-After"] = str(int(fault.params["retry_after"]))
            return answer
        error = self._failure(fault, target)
        as_event = fault.name == "too_large" or (fault.name == "expired" and not fault.params["as_status"])
        if target.verb == "watch" and as_event:
            response = web.StreamResponse(headers={"Content-Type": "application/json", **common_headers(request)})
            await response.prepare(request)
            await response.write(error_line(error))
            await response.write_eof()
            return response
        raise error

    def is_starting(self, target: Target) -> bool:
        """Return whether the server pretends that some of its parts are not ready."""
        return self._faults.standing("starting", target) is not None

    def _check_credentials(self, credentials: str, target: Target) -> None:
        fault = self._faults.standing("expired_credentials", target)
        if fault is None:
            self._credentials.add(credentials)
            return
        renewed = [f"Bearer {token}" for token in fault.params["renewed"]]
        if not credentials or (credentials not in renewed if renewed else credentials in fault.expired):
            fault.strike()
            raise statuses.unauthorized()

    def _failure(self, fault: Fault, target: Target) -> StatusError:
        resource = target.served.resource if target.served else None
        version = target.query.get("resourceVersion", "")
        number = int(version) if version.isdigit() else 0
        current = self._storage.version
        match fault.name:
            case "unavailable":
                message = "apiserver is shutting down"
                after = int(fault.params["retry_after"])
                return StatusError(503, "ServiceUnavailable", message, retry_after=after)
            case "unauthorized":
                return statuses.unauthorized()
            case "forbidden":
                if resource is None:
                    message = f'forbidden: User "system:anonymous" cannot {target.method.lower()} path "{target.path}"'
                    return StatusError(403, "Forbidden", message, details={})
                if target.namespace:
                    scope = f'in the namespace "{target.namespace}"'
                else:
                    scope = "at the cluster scope"
                why = (
                    f'User "system:anonymous" cannot {target.verb} resource "{resource.plural}" '
                    f'in API group "{resource.group}" {scope}'
                )
                return statuses.forbidden(resource, target.name, why)
            case "not_found":
                return statuses.resource_not_found()
            case "method_not_allowed":
                return statuses.method_not_allowed()
            case "too_large":
                return statuses.version_too_large(max(number, current + 1), current)
            case "expired" if target.verb == "watch":
                return statuses.expired(f"too old resource version: {number} ({current})")
            case "expired":
                return statuses.expired("The resourceVersion for the provided list is too old.")
            case _:
                status = fault.status()
                reason = {503: "ServiceUnavailable", 504: "Timeout"}.get(status, "InternalError")
                message = "Internal error occurred: etcdserver: request timed out"
                return StatusError(status, reason, message, details={"causes": [{"message": "request timed out"}]})

    async def _act(self, fault: Fault) -> None:
        match fault.name:
            case "outage":
                self._listener.close()
                self._listener.abort_connections()
                return
            case "restart":
                self._listener.close()
                self._end_watches()
                await self._wait_for_watches()
                self._listener.close_connections()
                if not fault.params["keep_history"]:
                    self._storage.compact()
                await asyncio.sleep(float(fault.params["downtime"]))
                await self._listener.open()
            case "compaction":
                self._storage.compact()
            case _:
                self._restore_version(fault)
        # An act strikes once; only an outage lasts.
        fault.strike()
        fault.active = False

    def _restore_version(self, fault: Fault) -> None:
        backup = self._backup(fault)
        if backup.version == self._storage.version:
            raise UsageError("fault 'restore' needs version= or back=: how far to go back")
        self.restore(backup)

    def _replica(self, fault: Fault) -> Storage:
        replica = Storage(history=1)
        replica.restore(self._backup(fault))
        return replica

    def _backup(self, fault: Fault) -> Backup:
        version = int(fault.params["version"]) or self._storage.version - int(fault.params["back"])
        try:
            return self._storage.backup(version)
        except ValueError as error:
            raise UsageError(f"fault {fault.name!r}: {error}") from None

    def _end_watches(self) -> None:
        for stream in list(self._streams):
            stream.stop()

    async def _wait_for_watches(self) -> None:
        """Give watches some time to end cleanly."""
        ended = [stream.ended.wait() for stream in self._streams]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SHUTDOWN_PAUSE):
                await asyncio.gather(*ended)

    def _spawn(self, fault: Fault, over: bool) -> None:
        name = f"aioinformer.testing: fault {fault.name} {'ends' if over else 'starts'}"
        task = create_task(self.end(fault) if over else self.start(fault), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
