"""`Membership`: the task that takes part in a ring for one process. It renews the Lease, and reads and writes the ring.

`member` decides; this module sends the requests, keeps the deadline, and reports which slots are gained and lost.
"""

from __future__ import annotations

import asyncio
import random as random_module
import re
import socket
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from aioinformer.client.client import Client
from aioinformer.concurrency import TaskGroup
from aioinformer.errors import AioinformerError, TransportError
from aioinformer.leaderelection.elector import LeadershipLost
from aioinformer.leaderelection.leadership import TOLERANCE
from aioinformer.leaderelection.lease import patience
from aioinformer.leaderelection.lock import LEASES, decode_lease, wall_clock
from aioinformer.leaderelection.watch import ObjectWatch
from aioinformer.logs import get_logger
from aioinformer.metrics.provider import MetricsProvider
from aioinformer.metrics.statistics import RingStatistics
from aioinformer.resources.resource import Resource
from aioinformer.ring.declaration import LONGEST, ControllerRing, RingSnapshot
from aioinformer.ring.leases import LABEL, annotations_of
from aioinformer.ring.member import (
    DeleteLease,
    Member,
    ReadLease,
    RingRefused,
    WriteLease,
    WriteRing,
    is_gone,
    status_of,
)
from aioinformer.ring.table import Ring, Slot, encode, slot_of
from aioinformer.ring.troubles import Troubles
from aioinformer.transport import Transport
from aioinformer.transport.clients import Connection, transport_of
from aioinformer.transport.slots import InLane
from aioinformer.workqueue.waiting import loop_time

if TYPE_CHECKING:
    from aioinformer.ring.member import LeaseRequest, Write

_log = get_logger("aioinformer.ring")

CONFIG_MAPS: Final[Resource[Any]] = Resource("", "v1", "configmaps", kind="ConfigMap", model="V1ConfigMap")
#: Seconds between two requests about the own Lease if one has shown that another is needed at once.
_SOON: Final = 0.2
_WRITE: Final = "a write of the ring"
_RING: Final = "the ring"


class _Late(TransportError):
    """There was no answer in time. The request is repeated at once."""


class SlotLost(LeadershipLost):
    """This process does not own the slot of an object any more. What was to be written was not sent."""


class SlotGrant:
    """The right to work in a slot, as long as this replica owns it: what a `Term` is for a leader.

    Attributes:
        identity: the name of the member.
        slot: the number of the slot.
        token: the epoch in which this replica got the slot. It grows with each owner, so it can fence writes.
    """

    def __init__(self, membership: Membership, slot: int, token: int) -> None:
        self._membership = membership
        self.identity = membership.name
        self.slot = slot
        self.token = token

    @property
    def remaining(self) -> float:
        """Seconds until the right ends unless it is renewed; 0 or less once it has ended. Any thread may read it."""
        return self._membership.remaining if self._membership.epoch_of(self.slot) == self.token else 0.0

    def check(self) -> None:
        """Return if this process owns the slot, and raise otherwise. Any thread may call this.

        Raises:
            SlotLost: it does not, even if the run has not been cancelled yet.
        """
        if self.remaining <= 0:
            raise SlotLost(f"{self.identity} does not own slot {self.slot} any more")


class Membership:
    """Takes part in a ring as long as `run` runs.

    Args:
        transport: sends the requests.
        ring: the ring and its times.
        on_change: called with the slots in which work may begin from now on, those in which it may not any more, and
            those in which running work must end at once.
        busy: returns the slots in which something runs.
        namespaces: returns how many namespaces with cached objects each slot has, for a ring by namespace.
        on_trouble: called with a reason and a message for an Event, once for each trouble.
        metrics: gets the figures of the ring, under its name.
        random: returns numbers in [0, 1), for the watch and for pauses.
        wall: returns the seconds since 1970; the epochs of a new ring begin above it.

    Attributes:
        ring: as given.
        name: of this member.
        accepted: the slots in which work may begin.
        wake: call it to look at the ring at once, such as when the work in a slot has ended.
    """

    def __init__(
        self,
        transport: Transport | Connection,
        ring: ControllerRing,
        *,
        on_change: Callable[[set[int], set[int], set[int]], object],
        busy: Callable[[], Collection[int]],
        namespaces: Callable[[], Mapping[int, int]] = dict,
        on_trouble: Callable[[str, str], object] = lambda reason, message: None,
        metrics: MetricsProvider | None = None,
        random: Callable[[], float] = random_module.random,
        wall: Callable[[], float] = time.time,
    ) -> None:
        host = re.sub(r"[^a-z0-9]+", "-", socket.gethostname().lower()).strip("-")
        self.ring = ring
        self.name = f"{ring.name}-{ring.member or f'{host[:LONGEST]}-{uuid4().hex[:8]}'}"
        self.accepted: frozenset[int] = frozenset()
        self._lease = f"the Lease {self.name}"
        self._on_change = on_change
        self._busy = busy
        self._namespaces = namespaces
        self._random = random
        self._wall = wall
        self._options = ring.options
        first = Ring((Slot(),) * ring.slots, ring.by)
        self._member = Member(self.name, f"{self.name}_{uuid4().hex}", self._options, first)
        direct = transport_of(transport)
        self._lane = InLane(direct, "lease")
        own = Client(self._lane, namespace=ring.namespace, retry=False)
        self._leases = own.resource(LEASES, decoder=decode_lease)
        self._objects = own.resource(CONFIG_MAPS, decoder=decode_lease)
        #: Each event makes the next look an early one. The watch is not needed for anything else.
        self._watch = ObjectWatch(direct, ring.object, ring.namespace, random, CONFIG_MAPS)
        self.wake = self._watch.wake
        self._timer: asyncio.TimerHandle | None = None
        self._working: set[int] = set()
        #: Seconds that the last answer took.
        self._latency = 0.0
        self._troubles = Troubles(
            ring,
            self.name,
            self._member,
            accepted=lambda: len(self.accepted),
            namespaces=namespaces,
            on_trouble=on_trouble,
        )
        #: What the server has answered last, by the subject of the request.
        self._answers: dict[str, dict[str, Any]] = {}
        self._listed_at = float("-inf")
        self._ended = False
        if metrics is not None:
            metrics.register(self)

    # What this process may do.

    def slot_of(self, uid: str, namespace: str) -> int:
        """Return the slot of an object, by its uid or its namespace."""
        return slot_of(uid if self.ring.by == "uid" else namespace, self.ring.slots)

    def grant(self, slot: int) -> SlotGrant | None:
        """Return the right to begin work in a slot now; None if this process does not have it."""
        if self.remaining <= 0 or not self._member.accepts(slot):
            return None
        return SlotGrant(self, slot, self._member.mine[slot].epoch)

    def epoch_of(self, slot: int) -> int | None:
        """Return the epoch in which this process got a slot; None if it does not own the slot."""
        owned = self._member.mine.get(slot)
        return None if owned is None else owned.epoch

    @property
    def remaining(self) -> float:
        """Seconds until this process may write nothing any more unless it renews its Lease; 0 or less: it may not.

        Any thread may read it.
        """
        return self._member.deadline - loop_time()

    def check(self) -> None:
        """Return if this process takes part in the ring, whichever slots it owns. Any thread may call this.

        Raises:
            SlotLost: it does not: it could not renew its Lease, or read the ring.
        """
        if self.remaining <= 0:
            raise SlotLost(f"{self.name} does not take part in its ring: its Lease is not renewed in time")

    def _settle(self) -> None:
        """Report what has changed for this process, and set the timer of the deadline."""
        loop = asyncio.get_running_loop()
        member = self._member
        now = loop.time()
        deadline = member.deadline
        working = set(member.mine) if now < deadline else set()
        accepted = frozenset(slot for slot in working if member.accepts(slot))
        gained = accepted - self.accepted
        lost = self.accepted - accepted
        ended = self._working - working
        self.accepted = accepted
        self._working = working
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(deadline, self._settle) if working else None
        if gained or lost or ended:
            _log.info(
                "%s: %d slots are gained, %d are lost; it works in %d", self, len(gained), len(lost), len(accepted)
            )
            self._on_change(set(gained), set(lost), ended)

    def stand(self, stands: bool, reason: str = "") -> None:
        """Set whether this replica takes slots; if not, why. Then it hands over those that it owns, and observes."""
        self._troubles.unfit = "" if stands else reason
        if self._member.stands is not stands:
            self._member.stands = stands
            self._settle()
            self.wake()

    # Running.

    async def run(self) -> None:
        """Take part until cancelled, or until `leave` has left the ring.

        Raises:
            RingRefused: this replica cannot take part as it is configured.
        """
        try:
            async with TaskGroup() as tasks:
                renewal = tasks.create_task(self._renew(), name=f"{self}: renewal")
                await self._observe()
                renewal.cancel()
        except BaseExceptionGroup as group:
            raise next((each for each in group.exceptions if isinstance(each, RingRefused)), group) from None
        finally:
            self._ended = True
            self._member.leave()  # without a write: the Lease expires, if it was not deleted
            self._settle()
            await self._watch.stop()

    async def leave(self, seconds: float) -> None:
        """Give up all slots by a write, and delete the Lease, within this time. Nothing may run in a slot any more."""
        self._member.leave()
        self._settle()
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while not self._member.left and loop.time() < until:
            self.wake()
            await asyncio.sleep(0.02)
        if not self._member.left:
            _log.warning("%s has not left within %g s: its slots are taken when its Lease has expired", self, seconds)

    async def _renew(self) -> None:
        loop = asyncio.get_running_loop()
        member = self._member
        while not member.leaving:
            request = member.lease_request()
            sent = loop.time()
            answer = await self._send(self._lease, self._perform(request), self._patience())
            member.lease_answered(request, answer, sent)
            self._troubles.note_lease(answer if isinstance(request, ReadLease) else None)
            self._settle()
            following = member.lease_request()
            if request == WriteLease():
                self.wake()
            soon = type(following) is not type(request) or _is_overtaken(answer)
            if isinstance(answer, _Late):
                continue
            await asyncio.sleep(_SOON if soon else self._options.retry_period)

    async def _observe(self) -> None:
        loop = asyncio.get_running_loop()
        member = self._member
        has_just_listed = False
        while not member.left:
            sent = loop.time()
            answer = await self._send(_RING, self._objects.get(self.ring.object), self._patience())
            member.ring_read(answer, sent, loop.time())
            self._settle()
            self._watch.start(member.version)
            late = isinstance(answer, _Late)
            is_due = loop.time() - self._listed_at >= self._options.retry_period / 2 or member.leaving
            if is_due and not late and not has_just_listed:
                listing = self._leases.list({LABEL: self.ring.name}, page_size=0)
                answer = await self._send("the Leases", listing, self._spare(sent))
                late = isinstance(answer, _Late)
                if not isinstance(answer, AioinformerError):
                    self._listed_at = loop.time()
                    member.leases_listed(answer, self._listed_at)
                has_just_listed = self._spare(sent) < self._options.request_timeout / 2
                late = late or has_just_listed  # the write must wait: the ring is read before
            else:
                has_just_listed = False
            if late:
                self._troubles.report()
                continue
            member.busy = set(self._busy())
            member.wall = int(self._wall())
            write, due = member.next_write(loop.time())
            if write is None:
                self._troubles.errors[_WRITE] = ""  # one that failed is not needed any more
            else:
                self._settle()  # what the write gives up ends before it is sent
                seconds = self._spare(sent)
                sent = loop.time()
                answer = await self._send(_WRITE, self._perform(write), seconds)
                member.write_answered(write, answer, sent, loop.time())
                if isinstance(write, WriteRing) and not (write.uid or isinstance(answer, AioinformerError)):
                    _log.info("%s: the ring is new; slots have owners after %g s", self, self._options.lease_duration)
                self._settle()
                if not isinstance(answer, AioinformerError) or _is_overtaken(answer):
                    self._listed_at = float("-inf")  # another member was faster, or there is more to do
                    await asyncio.sleep(_SOON * self._random())
                    continue
                due = loop.time() + self._options.retry_period  # it fails for want of a right, or of a server
            self._troubles.report()
            if isinstance(answer, _Late):
                continue
            await self._watch.wait(min(self._options.retry_period, max(0.05, due - loop.time())))

    # Requests.

    def _patience(self) -> float:
        """Return for how many seconds an answer is awaited on which the right to work depends."""
        left = self.remaining
        if left <= _SOON:  # no time is left for another try before the deadline
            return self._options.request_timeout
        return patience(self._options, left, self._latency)

    def _spare(self, read: float) -> float:
        """Return for how many seconds another answer may be awaited after the ring was read at this time.

        The next read must begin early enough that a silent connection does not use up the deadline.
        """
        options = self._options
        left = read + options.renew_deadline - options.request_timeout - asyncio.get_running_loop().time()
        return min(options.request_timeout, max(0.0, left)) if self._working else options.request_timeout

    async def _send(self, what: str, request: Any, seconds: float) -> Any:
        """Return the answer to a request, or the error. After a failure, the next request uses a new connection."""
        loop = asyncio.get_running_loop()
        sent = loop.time()
        try:
            async with asyncio.timeout(seconds):
                answer = await request
        except TimeoutError:
            answer = _Late(f"no answer within {seconds:.1f} s")
        except AioinformerError as error:
            answer = error
        self._lane.fresh = isinstance(answer, TransportError)
        if not isinstance(answer, TransportError):
            self._latency = loop.time() - sent
        trouble = ""
        if isinstance(answer, AioinformerError) and not _is_overtaken(answer):
            remedy = "; grant it: `aioinformer check` prints the roles" if status_of(answer) == 403 else ""
            trouble = f"{what}: {answer}{remedy}"
        if trouble and self._troubles.errors.get(what) != trouble:
            _log.warning("%s: %s", self, trouble)
        self._troubles.errors[what] = trouble
        if isinstance(answer, dict):
            self._answers[what] = answer
        return answer

    async def _perform(self, request: LeaseRequest | Write) -> Any:
        match request:
            case ReadLease():
                return await self._leases.get(self.name)
            case DeleteLease(name, uid, version):
                return await self._leases.delete(name, uid=uid, resource_version=version)
            case WriteRing(ring, uid, version):
                resource = self._objects
                name = self.ring.object
                content = dict[str, Any](data=encode(ring))
            case WriteLease(uid, version):
                spec = {
                    "holderIdentity": self._member.holder,
                    "leaseDurationSeconds": int(self._options.lease_duration),
                    "renewTime": wall_clock(),
                }
                resource = self._leases
                name = self.name
                content = dict[str, Any](spec=spec)
        labels = {LABEL: self.ring.name}
        annotations = {}
        if resource is self._leases:
            annotations = annotations_of(max(0, self._member.epoch), int(self._options.lease_duration))
        if not uid:
            metadata = {"name": name, "labels": labels, "annotations": annotations}
            return await resource.create({"metadata": metadata, **content})
        known = self._answers.get(_RING if resource is self._objects else self._lease, {})
        metadata = {"name": name, "uid": uid, "resourceVersion": version}
        if metadata.items() <= known.get("metadata", {}).items():  # what others have added stays
            labels = {**known["metadata"].get("labels", {}), **labels}
            annotations = {**known["metadata"].get("annotations", {}), **annotations}
            metadata = known["metadata"]
            content = {key: {**known.get(key, {}), **content[key]} for key in content}
        metadata = {**metadata, "labels": labels, "annotations": annotations}
        return await resource.replace({"metadata": metadata, **content})

    def failure(self) -> str:
        """Return why this process must be restarted: attempts outlive the Lease by far; "" if it need not."""
        late = asyncio.get_running_loop().time() - self._member.deadline - self._options.lease_duration
        if (busy := self._busy()) and late > TOLERANCE:
            return f"attempts in the slots {sorted(busy)} still run, and the Lease expired long ago"
        return ""

    def statistics(self) -> RingStatistics:
        """Return the figures of the ring for metrics. Any thread may call this."""
        times = [loop_time() - since for since in self._member.unowned.values()]
        owners = tuple(each.owner for each in self._member.ring.slots)
        return RingStatistics(self.ring.name, self.name, owners, max(times, default=0.0), self._ended)

    def snapshot(self) -> RingSnapshot:
        """Return the state of the ring as this replica sees it. Any thread may call this."""
        member = self._member
        now = loop_time()
        ring = member.ring
        owners = [each.owner for each in ring.slots]
        return {
            "name": f"{self.ring.namespace}/{self.ring.object}",
            "member": self.name,
            "epoch": ring.epoch,
            "remaining": max(-1.0, self.remaining),
            "owners": {name: owners.count(name) for name in sorted(ring.members)},
            "slots": owners,
            "mine": sorted(self.accepted),
            "namespaces": dict(self._namespaces()),
            "unowned": {slot: now - since for slot, since in sorted(member.unowned.items())},
            "waits_for": self._troubles.waits_for(),
            "gap": self._troubles.gap(),
        }

    def __str__(self) -> str:
        return f"ring {self.ring.namespace}/{self.ring.object}, member {self.name}"


def _is_overtaken(answer: Any) -> bool:
    """Return whether the object has changed or is gone, which is no trouble."""
    return is_gone(answer) or status_of(answer) == 409
