"""Replicas of a ring in virtual time, each with a connection of its own to one API server in memory."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from aioinformer.errors import TransportError
from aioinformer.ring import ControllerRing, Membership
from tests.support.written_collection import Server, response_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aioinformer.transport import HttpRequest

SLOTS: Final = 4


class RingServer(Server):
    """Refuses writes that are based on another uid or version than the stored one."""

    def __init__(self) -> None:
        super().__init__()
        self.fault = self._conflict

    def _conflict(self, request: HttpRequest) -> str:
        plural, _, name = request.path.partition("/namespaces/default/")[2].partition("/")
        known = self.objects[plural].get(f"default/{name}")
        if known is None:
            return ""
        body = json.loads(request.body or b"{}")
        wanted = body.get("preconditions") or {} if request.method == "DELETE" else body["metadata"]
        differ = [
            name for name in ("uid", "resourceVersion") if wanted.get(name, "") not in ("", known["metadata"][name])
        ]
        return "409" if differ else ""

    @property
    def ring(self) -> dict[str, Any]:
        """The ring in the ring object."""
        found: dict[str, Any] = json.loads(self.objects["configmaps"]["default/shared-ring"]["data"]["ring.json"])[
            "ring"
        ]
        return found

    @property
    def owners(self) -> list[str]:
        """The member that owns each slot."""
        return [owner.removeprefix("shared-") for owner, *_ in self.ring["slots"]]

    def lease(self, name: str) -> dict[str, Any] | None:
        """The Lease of a member; None if there is none."""
        return self.objects["leases"].get(f"default/shared-{name}")

    def put_lease(
        self, name: str, holder: str, *, seconds: int = 15, ring: str = "shared", **annotations: str
    ) -> dict[str, Any]:
        """Store the Lease of another replica or program; annotations have the part of their names after the slash."""
        metadata = {
            "name": f"shared-{name}",
            "namespace": "default",
            "labels": {"aioinformer/ring": ring} if ring else {},
            "annotations": {f"aioinformer/{key.replace('_', '-')}": value for key, value in annotations.items()},
        }
        spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds}
        return self.put("leases", {"metadata": metadata, "spec": spec})


class Link:
    """The connection of one replica: a `Transport`.

    Attributes:
        fault: is called with each request; returns "down" (it is refused), "silent" (it is neither processed nor
            answered), "lost" (it is processed and not answered), a status to answer, or "".
        requests: the requests so far.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self.fault: Callable[[HttpRequest], str] = lambda request: ""
        self.requests: list[HttpRequest] = []

    async def request(self, request: HttpRequest) -> Any:
        self.requests.append(request)
        fault = self.fault(request)
        if fault == "down":
            raise TransportError("connection refused")
        if fault == "silent":
            await asyncio.Event().wait()
        if fault.isdigit():
            return response_of(int(fault), {"kind": "Status", "code": int(fault), "reason": "", "message": "no"})
        response = await self._server.request(request)
        if fault == "lost":
            await asyncio.Event().wait()
        return response


class Replica:
    """One member of the ring, and what it has reported.

    Attributes:
        link: its connection.
        busy: the slots in which something runs. Slots whose work must end leave it at once.
        namespaces: how many namespaces each slot has.
        slots: the slots in which work may begin, by what was reported.
        ended: the slots in which running work had to end, in this order.
        troubles: the reasons and messages of Events.
    """

    def __init__(self, server: Server, name: str, **ring: Any) -> None:
        self.link = Link(server)
        self.busy: set[int] = set()
        self.namespaces: dict[int, int] = {}
        self.slots: set[int] = set()
        self.ended: list[int] = []
        self.troubles: list[tuple[str, str]] = []
        self.membership = Membership(
            self.link,
            ControllerRing("shared", **{"slots": SLOTS, "member": name, **ring}),
            on_change=self._change,
            busy=lambda: self.busy,
            namespaces=lambda: self.namespaces,
            on_trouble=lambda reason, message: self.troubles.append((reason, message)),
            random=lambda: 0.5,
            wall=lambda: 1_700_000_000,
        )

    def _change(self, gained: set[int], lost: set[int], ended: set[int]) -> None:
        assert not gained & self.slots
        assert lost <= self.slots
        self.slots = (self.slots | gained) - lost
        self.ended += sorted(ended)
        self.busy -= ended
        assert self.slots == self.membership.accepted

    @property
    def waits_for(self) -> str:
        """Why it does not have all of its slots."""
        return self.membership.snapshot()["waits_for"]

    @property
    def reasons(self) -> list[str]:
        """The reasons of Events."""
        return [reason for reason, _ in self.troubles]


@asynccontextmanager
async def taking_part(*replicas: Replica) -> AsyncIterator[None]:
    """Let replicas take part while the block runs."""
    tasks = [asyncio.create_task(each.membership.run()) for each in replicas]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(condition: Callable[[], object], seconds: float = 60.0) -> float:
    """Wait until a condition holds; return after how many seconds it did."""
    clock = asyncio.get_running_loop().time
    began = clock()
    while not condition():
        assert clock() - began < seconds, "the condition does not hold in time"
        await asyncio.sleep(0.05)
    return clock() - began
