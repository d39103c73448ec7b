"""A process and its network: requests, answers and events of watches arrive in any order, or not at all."""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.concurrency import create_task
from aioinformer.errors import TransportError
from aioinformer.harness.plan import Crash
from aioinformer.harness.story import parts_of
from aioinformer.testing.api.encoding import encode_plain
from aioinformer.testing.api.statuses import StatusError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from aioinformer.harness.harness import Harness
    from aioinformer.harness.loop import Event
    from aioinformer.transport import HttpRequest

#: On whose behalf the server works.
ACTOR: ContextVar[str] = ContextVar("aioinformer_actor", default="user")
#: Resources whose writes are not the work of a controller.
UNCOUNTED = frozenset({"leases", "events", "selfsubjectaccessreviews", "selfsubjectrulesreviews"})
_MODIFIED = "Operation cannot be fulfilled: the object has been modified; apply your changes to the latest version"
_BOOKMARK = b'{"type":"BOOKMARK"'


class Write(NamedTuple):
    """A write that the server has processed: when, of which process, as text, the answer, whether it took effect."""

    at: float
    process: str
    request: str
    status: int
    changed: bool


class Process:
    """One process, and its transport."""

    manager: Any
    task: asyncio.Task[None]
    closed = False

    def __init__(self, harness: Harness, name: str) -> None:
        self.harness = harness
        self.name = name
        self.calls: dict[_Call, None] = {}
        self.watches: dict[str, bool] = {}  # whether they are open, by path, without those that the process closed

    async def request(self, request: HttpRequest) -> Answer:
        """Send a request; see `aioinformer.transport.Transport`.

        Raises:
            TransportError: there was no answer in time, or the connection broke.
        """
        harness = self.harness
        call = _Call(self, request)
        if call.counted and not self.closed:
            harness.sent += 1
            call.crash_after = Crash(harness.sent, True) in harness.plan.crashes
            if Crash(harness.sent, False) in harness.plan.crashes:
                harness.crash(self, f"crashes before {call}")
        self.calls[call] = None
        try:
            async with asyncio.timeout(request.total_timeout):
                if not self.closed:
                    call.plan(self.name, f"sends {call}", call.arrive)
                return await call.result
        except TimeoutError:
            raise TransportError(f"{call}: no answer in time") from None
        finally:
            if not call.is_watch or not call.result.done() or call.result.cancelled():
                call.abandon()

    def close(self) -> None:
        """End the connection. Requests on their way may still reach the server."""
        self.closed = True
        for call in list(self.calls):
            call.abandon()


class _Call:
    """One request, its way to the server, and the way of its answer."""

    def __init__(self, process: Process, request: HttpRequest) -> None:
        self.process = process
        self.harness = process.harness
        self.request = request
        self.resource, self._rest = parts_of(request.path)
        self.is_watch = ("watch", "true") in request.query
        self.background = self.resource in UNCOUNTED
        self.counted = request.method != "GET" and not self.background
        self.crash_after = False
        self.result: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._answer = Answer(self)
        self._task: asyncio.Task[None] | None = None
        self._next: Event | None = None

    def __str__(self) -> str:
        return f"{'WATCH' if self.is_watch else self.request.method} {self.resource} {self._rest}".rstrip()

    def plan(self, actor: str, text: str, act: Callable[[], object]) -> None:
        """Let the next part of the exchange happen some time."""
        sort = "background" if self.background else "call"
        self._next = self.harness.scheduler.add(actor, text, act, self.harness.dice.delay(), sort)

    def abandon(self) -> None:
        """Forget the answer. Half of the requests on their way still reach the server."""
        self.process.calls.pop(self, None)
        if self._task is not None or not self.harness.dice.choice("zombie", (False, True)):
            self.harness.scheduler.drop(self._next)
        if self._task is not None and self.is_watch:
            if self.process.watches.get(self.request.path):
                del self.process.watches[self.request.path]
            self._task.cancel()
            self._answer.end()

    def arrive(self) -> None:
        """Let the server process the request, on behalf of the process."""
        context = copy_context()
        context.run(ACTOR.set, self.process.name)
        self._task = create_task(self._serve(), name=f"server: {self}", context=context)
        self.harness.tasks.add(self._task)
        self._task.add_done_callback(self.harness.tasks.discard)

    async def _serve(self) -> None:
        harness = self.harness
        request = self.request
        answer = self._answer
        applies = request.headers.get("Content-Type", "").startswith("application/apply-patch")
        version = harness.server.resource_version
        if self.counted and request.method in ("PUT", "PATCH") and not applies and harness.dice.strike("conflicts"):
            answer.begin(409, {})
            answer.receive(encode_plain(StatusError(409, "Conflict", _MODIFIED).body()))
        else:
            if self.is_watch and request.path in harness.expired:
                harness.expired.discard(request.path)
                harness.server.compact()
            elif self.is_watch and not self.background:
                self.process.watches[request.path] = True
            try:
                await harness.server.exchange(request, answer.begin, answer.receive)
            except Exception:
                return self.deliver(lost=True)
        answer.finish()
        if self.is_watch:
            return None
        return self._reply(changed=harness.server.resource_version != version)

    def _reply(self, *, changed: bool) -> None:
        harness = self.harness
        process = self.process
        status = self._answer.status
        if self.counted:
            now = asyncio.get_running_loop().time()
            harness.writes.append(Write(now, process.name, str(self), status, changed))
        if process.closed or self.result.done():
            harness.story.tell("server", f"processes {self} of {process.name}, which does not wait for it: {status}")
        elif self.crash_after:
            harness.crash(process, f"crashes after {self}: {status}")
        elif self.counted and harness.dice.strike("lost"):
            self.plan("server", f"answers {status} to {self}, which is lost", lambda: self.deliver(lost=True))
        else:
            self.plan("server", f"answers {status} to {self}", self.deliver)

    def deliver(self, *, lost: bool = False) -> None:
        """Return the answer to the process, if it waits for it; or an error, if it is lost."""
        if not self.result.done() and not lost:
            self.result.set_result(self._answer)
        elif not self.result.done():
            error = TransportError(f"{self}: the connection broke before the answer arrived")
            error.sent = True
            self.result.set_exception(error)


class Answer:
    """A response. The events of a watch arrive one by one, or all that wait at once."""

    def __init__(self, call: _Call) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self._call = call
        self._waiting: deque[bytes] = deque()
        self._arrived: deque[bytes] = deque()
        self._delivery: Event | None = None
        self._finished = False
        self._broken = False
        self._wake = asyncio.Event()

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Take the head from the server. That of a watch arrives at once."""
        self.status = status
        self.headers = headers
        if self._call.is_watch:
            self._call.deliver()

    def receive(self, data: bytes) -> None:
        """Take a piece of the body from the server."""
        if not self._call.is_watch:
            self._arrived.append(data)
            return
        self._waiting += data.splitlines(keepends=True)
        if self._delivery is None:
            self._plan_delivery()

    def finish(self) -> None:
        """End the body after what is waiting."""
        self._finished = True
        if self._call.request.path in self._call.process.watches:
            self._call.process.watches[self._call.request.path] = False
        self._wake.set()

    def end(self) -> None:
        """End the body at once; what has not arrived is lost."""
        self._waiting.clear()
        self._call.harness.scheduler.drop(self._delivery)
        self.finish()

    def _plan_delivery(self) -> None:
        harness = self._call.harness
        process = self._call.process
        self._delivery = None
        if len(self._waiting) == 1 and self._waiting[0].startswith(_BOOKMARK):
            self._deliver(1)
        elif self._waiting:
            sort = "background" if self._call.background else "watch"
            self._delivery = harness.scheduler.add(process.name, "", self._deliver_some, harness.dice.delay(), sort)

    def _deliver_some(self) -> None:
        harness = self._call.harness
        process = self._call.process
        path = self._call.request.path
        waiting = len(self._waiting)
        starts = any(b"k8s.io/initial-events-end" in line for line in self._waiting)
        if not starts and not self._call.background and harness.dice.strike("merged"):
            harness.story.tell(process.name, f"loses its {self._call} with {waiting} events, and the history expires")
            harness.expired.add(path)
            self._broken = True
            self._call.abandon()
            process.watches[path] = False
            return
        self._deliver(waiting if starts else harness.dice.choice("batch", (1, waiting)))
        self._plan_delivery()

    def _deliver(self, count: int) -> None:
        for _ in range(count):
            line = self._waiting.popleft()
            if not line.startswith(_BOOKMARK):
                self._call.harness.story.tell(self._call.process.name, f"sees {self._call.resource}", line)
            self._arrived.append(line)
        self._wake.set()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body; see `aioinformer.transport.Response`.

        Raises:
            TransportError: the connection broke.
        """
        while True:
            while self._arrived:
                yield self._arrived.popleft()
            if self._broken:
                raise TransportError(f"{self._call}: the connection broke")
            if self._finished and not self._waiting:
                return
            self._wake.clear()
            await self._wake.wait()

    async def close(self) -> None:
        """Close the connection."""
        self._arrived.clear()
        self._call.abandon()
