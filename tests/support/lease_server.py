"""An in-memory server for one Lease, on the clock of the event loop: a `Transport` with faults."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from aioinformer.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from aioinformer.transport import HttpRequest

PATH = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


class Answer:
    """One answer, with its body in one chunk."""

    def __init__(self, status: int, body: Any) -> None:
        self.status = status
        self.headers: Mapping[str, str] = {}
        self._body = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body

    async def close(self) -> None:
        await asyncio.sleep(0)


class WatchAnswer(Answer):
    """The events of the Lease after a version, as they happen. The connection breaks if the server is down."""

    def __init__(self, server: LeaseServer, version: int) -> None:
        super().__init__(200, b"")
        self._server = server
        self._events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        for number, event in enumerate(server.events, 1):
            if number > version:
                self._events.put_nowait(event)
        server.watches.append(self._events)

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            event = await self._events.get()
            if self._server.down:
                raise TransportError("connection reset")
            if self._server.silent:
                await asyncio.Event().wait()
            yield json.dumps(event).encode() + b"\n"

    async def close(self) -> None:
        if self._events in self._server.watches:
            self._server.watches.remove(self._events)


class LeaseServer:
    """Stores one Lease, with optimistic concurrency.

    Attributes:
        lease: the stored Lease, None if there is none.
        verbs: the verbs of the requests so far, without watches.
        events: the watch events so far, in the order of their versions.
        watches: the events to send to each open watch.
        watch_status: the status of the answers to requests for watches; 0 lets the transport crash.
        watch_requests: when watches were requested.
        down: connections are refused.
        lost_answers: requests are executed but not answered.
        silent: requests are neither executed nor answered.
        latency: seconds that each request takes, half of them before it is executed.
        refusals: answers to the next requests, which are not executed.
        on_request: called before each request is executed.
    """

    def __init__(self, lease: dict[str, Any] | None = None) -> None:
        self.lease = lease
        self.verbs: list[str] = []
        self.events: list[dict[str, Any]] = []
        self.watches: list[asyncio.Queue[dict[str, Any]]] = []
        self.watch_status = 200
        self.watch_requests: list[float] = []
        self.down = False
        self.lost_answers = False
        self.silent = False
        self.latency = 0.0
        self.refusals: deque[Answer] = deque()
        self.on_request: Callable[[str], None] = lambda verb: None
        if lease is not None:
            self.put(lease)

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        spec: dict[str, Any] = self.lease["spec"]
        return spec

    @property
    def holder(self) -> str:
        return str(self.spec.get("holderIdentity", "")) if self.lease is not None else ""

    def put(self, lease: dict[str, Any]) -> dict[str, Any]:
        """Store a Lease with the next resourceVersion."""
        kind = "MODIFIED" if self.lease is not None else "ADDED"
        self.lease = deepcopy(lease)
        self.lease.setdefault("metadata", {"name": "it"})
        self._send(kind, self.lease)
        return self.lease

    def delete(self) -> None:
        """Delete the Lease."""
        assert self.lease is not None
        lease, self.lease = self.lease, None
        self._send("DELETED", lease)

    def _send(self, kind: str, lease: dict[str, Any]) -> None:
        lease["metadata"]["resourceVersion"] = str(len(self.events) + 1)
        self.events.append({"type": kind, "object": deepcopy(lease)})
        for watch in self.watches:
            watch.put_nowait(self.events[-1])

    def take(self, holder: str, transitions: int = 1, seconds: int = 15) -> None:
        """Store a Lease that `holder` holds."""
        now = str(asyncio.get_running_loop().time())
        spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": transitions}
        self.put({"metadata": {"name": "it"}, "spec": {**spec, "acquireTime": now, "renewTime": now}})

    async def request(self, request: HttpRequest) -> Answer:
        if ("watch", "true") in request.query:
            return await self._watch(dict(request.query))
        verb = {"GET": "get", "POST": "create", "PUT": "update"}[request.method]
        assert request.path == (PATH if verb == "create" else f"{PATH}/it")
        assert request.total_timeout is not None
        self.verbs.append(verb)
        self.on_request(verb)
        await asyncio.sleep(self.latency / 2)
        if self.down:
            raise TransportError("connection refused")
        if self.silent:
            await asyncio.Event().wait()
        answer = self.refusals.popleft() if self.refusals else self._do(verb, request.body)
        if self.lost_answers:
            await asyncio.Event().wait()
        await asyncio.sleep(self.latency / 2)
        return answer

    async def _watch(self, query: dict[str, str]) -> Answer:
        assert query["fieldSelector"] == "metadata.name=it"
        self.watch_requests.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.latency)
        if self.down:
            raise TransportError("connection refused")
        if self.silent:
            await asyncio.Event().wait()
        if not self.watch_status:
            raise RuntimeError("the transport is broken")
        if self.watch_status != 200:
            return refusal(self.watch_status, "")
        return WatchAnswer(self, int(query["resourceVersion"]))

    def _do(self, verb: str, body: bytes | None) -> Answer:
        sent = json.loads(body) if body else {}
        if verb == "create":
            if self.lease is not None:
                return refusal(409, "AlreadyExists")
            return Answer(201, self.put(sent))
        if self.lease is None:
            return refusal(404, "NotFound")
        if verb == "get":
            return Answer(200, self.lease)
        if sent["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            return refusal(409, "Conflict")
        return Answer(200, self.put(sent))


def refusal(status: int, reason: str) -> Answer:
    """Return an answer with this status and reason."""
    return Answer(status, {"kind": "Status", "code": status, "reason": reason})
