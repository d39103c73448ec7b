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

    from aioinformer.transport import Request

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


class LeaseServer:
    """Stores one Lease, with optimistic concurrency.

    Attributes:
        lease: the stored Lease, None if there is none.
        verbs: the verbs of the requests so far.
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
        self.down = False
        self.lost_answers = False
        self.silent = False
        self.latency = 0.0
        self.refusals: deque[Answer] = deque()
        self.on_request: Callable[[str], None] = lambda verb: None
        self._version = 0
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
        self._version += 1
        self.lease = deepcopy(lease)
        self.lease.setdefault("metadata", {"name": "it"})["resourceVersion"] = str(self._version)
        return self.lease

    def take(self, holder: str, transitions: int = 1, seconds: int = 15) -> None:
        """Store a Lease that `holder` holds."""
        now = str(asyncio.get_running_loop().time())
        spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": transitions}
        self.put({"metadata": {"name": "it"}, "spec": {**spec, "acquireTime": now, "renewTime": now}})

    async def request(self, request: Request) -> Answer:
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
