"""A ring in virtual time: replicas, an API server, a network between them, and faults; all from one seed.

    python -m tests.unit.ring.simulation --seeds 3000

The simulation drives `Member` as the replica's task does: it renews the Lease, reads the ring, lists the Leases and
writes. Each replica has its own clock, and runs work in its slots. Two invariants are checked at each event: no slot
has two owners that may write, and no slot has runs of two replicas. Once the faults are over, each slot must have a
living owner within the duration of a Lease and 5 s. The tokens of a slot never go back, whatever happens to the ring,
and Leases of other programs stay.

Replicas of an earlier version take part with `Former`; see `former.py`.
"""

from __future__ import annotations

import argparse
import heapq
import random
import sys
from collections import Counter
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

import msgspec

from aioinformer import LeaderElectionOptions
from aioinformer.errors import AioinformerError, ApiError, TransportError
from aioinformer.ring.leases import annotations_of
from aioinformer.ring.member import DeleteLease, Member, ReadLease, WriteLease, WriteRing
from aioinformer.ring.table import FIELD, Ring, Slot, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

TIMES: Final = LeaderElectionOptions()
#: Seconds after the last fault until each slot has a living owner.
BOUND: Final = TIMES.lease_duration + 5
#: The most seconds that work goes on after it was cancelled.
ENDING: Final = TIMES.lease_duration - TIMES.renew_deadline - 0.5
READ_RING, LIST_LEASES = "read ring", "list leases"


#: The time of day when a simulation begins, in seconds since 1970.
YEAR_2026: Final = 1_767_225_600


class Version:
    """This version of the package, as a replica runs it."""

    def member(self, name: str, holder: str, slots: int) -> Any:
        """Return what decides for a replica."""
        return Member(name, holder, TIMES, Ring((Slot(),) * slots))

    def annotations(self, member: Any) -> dict[str, str]:
        """Return the annotations that a replica writes with its Lease."""
        return annotations_of(max(0, member.epoch), int(TIMES.lease_duration))

    def current(self, request: Any) -> Any:
        """Return a request in the types of this version."""
        return request


class Violation(AssertionError):
    """An invariant does not hold."""


class Server:
    """The Leases and the ring object, with versions and preconditions."""

    def __init__(self) -> None:
        self.version = 0
        self.leases: dict[str, dict[str, Any]] = {}
        self.ring: dict[str, Any] | None = None
        self.ring_writes = 0

    def _stamped(self, obj: dict[str, Any], uid: str = "") -> dict[str, Any]:
        self.version += 1
        obj["metadata"] |= {"uid": uid or f"uid-{self.version}", "resourceVersion": str(self.version)}
        return obj

    def execute(self, request: Any, name: str, holder: str, annotations: dict[str, str]) -> Any:
        answer = self._execute(request, name, holder, annotations)
        return answer if isinstance(answer, AioinformerError) else deepcopy(answer)

    def edit(self, name: str, seconds: int) -> None:
        """Let a person write another duration into a Lease."""
        self.leases[name]["spec"]["leaseDurationSeconds"] = seconds
        self._renewed(self.leases[name])

    def add_foreign(self, name: str) -> None:
        """Let another program create a Lease, with the label of the ring."""
        spec = {"holderIdentity": "another-program", "leaseDurationSeconds": 15}
        self.leases[name] = self._stamped({"metadata": {"name": name}, "spec": spec})

    def _execute(self, request: Any, name: str, holder: str, annotations: dict[str, str]) -> Any:
        missing, conflict = ApiError(404, "NotFound"), ApiError(409, "Conflict")
        missing.details = {"name": name}
        lease = self.leases.get(name)
        match request:
            case "read ring":
                return missing if self.ring is None else self.ring
            case "list leases":
                return list(self.leases.values())
            case WriteLease(""):
                if lease is not None:
                    return ApiError(409, "AlreadyExists")
                metadata = {"name": name, "annotations": annotations}
                self.leases[name] = self._stamped({"metadata": metadata, "spec": self._spec(holder)})
                return self.leases[name]
            case ReadLease():
                return missing if lease is None else lease
            case WriteLease(uid, version):
                if lease is None:
                    return missing
                found = lease["metadata"]
                if (found["uid"], found["resourceVersion"]) != (uid, version):
                    return conflict
                found["annotations"] = annotations
                lease["spec"] = self._spec(holder)
                return self._renewed(lease)
            case DeleteLease(of, uid, version):
                if of not in self.leases:
                    return missing
                found = self.leases[of]["metadata"]
                if found["uid"] != uid or version not in ("", found["resourceVersion"]):
                    return conflict
                return self.leases.pop(of)
            case WriteRing(ring, uid, version):
                now = ("", "") if self.ring is None else _identity(self.ring)
                if now != (uid, version):
                    return conflict
                self.ring = self._stamped({"metadata": {}, "data": encode(ring)}, uid)
                self.ring_writes += 1
                return self.ring
        raise AssertionError(request)

    def _spec(self, holder: str) -> dict[str, Any]:
        seconds = int(TIMES.lease_duration)
        return {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": str(self.version)}

    def _renewed(self, lease: dict[str, Any]) -> dict[str, Any]:
        return self._stamped(lease, lease["metadata"]["uid"])


class Replica:
    """One process: two loops over a `Member`, and work in its slots."""

    def __init__(self, world: World, name: str, number: int, version: Version) -> None:
        self.world = world
        self.version = version
        self.member: Any = version.member(name, f"{name}_{number}", world.slots)
        self.wrong = world.random.uniform(-1, 1)
        self.offset = world.random.uniform(0, 1000)
        self.paused = self.dead = self.cut = self.blind = self.leaving = False
        self.stalled: list[Callable[[], None]] = []
        #: Slot -> when its work ends by itself.
        self.busy: dict[int, float] = {}
        self.was_paused = False
        self.wakes: Callable[[], None] | None = None
        self.observing = self.observe()
        self.proceed(self.renew(), None)
        self.proceed(self.observing, None)

    @property
    def clock(self) -> float:
        return self.world.now + self.offset

    def may_write(self) -> set[int]:
        """Return the slots in which this replica may write now."""
        return set(self.member.mine) if self.clock < self.member.deadline else set()

    # The loops. A generator yields a request, and gets the answer; or a number of seconds to wait.

    def proceed(self, loop: Generator[Any, Any, None], value: Any) -> None:
        if self.dead:
            return
        if self.paused:
            self.stalled.append(lambda: self.proceed(loop, value))
            return
        try:
            wanted = loop.send(value)
        except StopIteration:
            return
        finally:
            self.world.check(self)
        if isinstance(wanted, float):
            done = [False]

            def wake() -> None:
                if not done[0]:
                    done[0] = True
                    self.proceed(loop, None)

            if loop is self.observing:
                self.wakes = wake
            self.world.later(wanted, wake)
        else:
            self.world.send(self, wanted, lambda answer: self.proceed(loop, answer))

    def renew(self) -> Generator[Any, Any, None]:
        while not self.member.left and not self.member.leaving:
            request, sent = self.member.lease_request(), self.clock
            self.member.lease_answered(request, (yield request), sent)
            yield TIMES.retry_period

    def observe(self) -> Generator[Any, Any, None]:
        member = self.member
        while not member.left:
            sent = self.clock
            member.ring_read((yield READ_RING), sent, self.clock)
            leases = yield LIST_LEASES
            if isinstance(leases, AioinformerError):
                yield TIMES.retry_period
                continue
            member.leases_listed(leases, self.clock)
            self.work()
            if self.leaving and not self.busy and not member.leaving:
                member.leave()
            member.busy = set(self.busy)
            member.wall = int(self.world.now + YEAR_2026 + self.wrong)
            write, due = member.next_write(self.clock)
            if write is not None:
                sent = self.clock
                answer = yield write
                member.write_answered(write, answer, sent, self.clock)
                if not isinstance(answer, AioinformerError) or getattr(answer, "status", 0) in (404, 409):
                    continue
            yield max(0.05, min(TIMES.retry_period, due - self.clock))
        self.dead = True

    # Work.

    def work(self) -> None:
        """Begin work in some slots, and end what has ended or was cancelled."""
        now, may = self.clock, self.may_write()
        for slot, until in list(self.busy.items()):
            if until <= now:
                del self.busy[slot]
                self.world.ended(slot, self)
            elif slot not in may or self.leaving:
                self.busy[slot] = min(until, now + self.world.random.uniform(0, ENDING))
        if self.leaving:
            return
        for slot in may:
            if slot not in self.busy and self.member.accepts(slot) and self.world.random.random() < 0.2:
                self.busy[slot] = now + self.world.random.choice((0.1, 0.5, 3.0))
                self.world.began(slot, self)
            elif slot in self.busy and not self.member.accepts(slot):
                self.busy[slot] = min(self.busy[slot], now + 3)

    def expire(self) -> None:
        """Cancel the work whose deadline has passed, as a timer does; called several times a second."""
        if not self.dead:
            self.world.later(0.3, self.expire)
        if not self.paused and not self.dead:
            self.work()


class World:
    """Replicas and faults. `run` raises `Violation`."""

    def __init__(
        self,
        seed: int,
        *,
        slots: int = 64,
        faults: bool = True,
        latency: float = 0.02,
        versions: Sequence[Version] = (Version(),),
    ) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.slots = slots
        self.now = 0.0
        self.server = Server()
        self.down = False
        self.latency = latency
        self.faulty = faults
        self.versions = versions
        #: Leases of other programs.
        self.foreign: set[str] = set()
        #: Slot -> the highest token of an owner.
        self.tokens: dict[int, int] = {}
        self.replicas: list[Replica] = []
        self.log: list[str] = []
        #: How often each slot has changed its owner.
        self.moves = [0] * slots
        self._owners = [""] * slots
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._working: dict[int, list[Replica]] = {}

    # Time and network.

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._queue, (self.now + seconds, self._number, call))

    def run_until(self, until: float) -> None:
        """Let the time pass."""
        while self._queue and self._queue[0][0] <= until:
            self.now, _, call = heapq.heappop(self._queue)
            call()
        self.now = until

    def send(self, replica: Replica, request: Any, then: Callable[[Any], None]) -> None:
        """Send a request; faults lose it, or its answer, or delay it although the sender has given up."""
        settled, chance, timeout = [False], self.random.random(), 5.0
        lost = (replica.cut and chance < 0.7) or (replica.blind and request in (READ_RING, LIST_LEASES))
        answer_lost = replica.cut or (self.faulty and chance > 0.995)
        there = self.random.uniform(0.5, 1.5) * self.latency
        if self.faulty and self.random.random() < 0.01:
            there = self.random.uniform(0, 12)
        back = self.random.uniform(0.5, 1.5) * self.latency
        annotations = replica.version.annotations(replica.member)

        def settle(answer: Any) -> None:
            if not settled[0]:
                settled[0] = True
                then(answer)

        def arrive() -> None:
            if self.down:
                self.later(back, lambda: settle(TransportError("connection refused")))
                return
            before = self.server.ring
            member, version = replica.member, replica.version
            answer = self.server.execute(version.current(request), member.name, member.holder, annotations)
            if self.server.ring is not before:
                self.ring_changed()
            if not answer_lost:
                self.later(back, lambda: settle(answer))

        if not lost:
            self.later(there, arrive)
        self.later(timeout, lambda: settle(TransportError("no answer")))

    def ring_changed(self) -> None:
        """Count the moves, and wake the replicas, as the watch of the ring does."""
        ring = self.server.ring
        if ring is not None:
            document = _ring_of(ring)
            for number, (owner, _, _) in enumerate(document["slots"]):
                if owner and self._owners[number] and owner != self._owners[number]:
                    self.moves[number] += 1
                self._owners[number] = owner or self._owners[number]
        for each in self.living():
            if each.wakes is not None and not (each.cut or each.blind):
                self.later(self.latency, each.wakes)

    # Invariants.

    def check(self, replica: Replica) -> None:
        if replica.dead or replica.paused:
            return
        mine = replica.may_write()
        for other in self.replicas:
            if other is not replica and not other.dead and not other.paused and (both := mine & other.may_write()):
                raise Violation(f"{self.now:.2f} s: slots {sorted(both)} have the owners {_names(replica, other)}")

    def began(self, slot: int, replica: Replica) -> None:
        token = replica.member.mine[slot].epoch
        # A replica of the version before may make a ring, and knows nothing of earlier ones.
        if token < self.tokens.get(slot, 0) and len(self.versions) == 1:
            raise Violation(f"{self.now:.2f} s: the token of slot {slot} goes back to {token}")
        self.tokens[slot] = token
        working = self._working.setdefault(slot, [])
        for other in working:
            if not other.dead and not other.paused and not other.was_paused:
                raise Violation(f"{self.now:.2f} s: slot {slot} has runs of {_names(replica, other)}")
        working.append(replica)

    def ended(self, slot: int, replica: Replica) -> None:
        self._working[slot] = [each for each in self._working[slot] if each is not replica]
        if not replica.busy:
            replica.was_paused = False

    def unowned(self) -> set[int]:
        owned: set[int] = set()
        for each in self.living():
            if not each.paused:
                owned |= each.may_write()
        return set(range(self.slots)) - owned

    # Replicas.

    def living(self) -> list[Replica]:
        return [each for each in self.replicas if not each.dead]

    def add(self, name: str = "") -> Replica:
        number = len(self.replicas)
        replica = Replica(self, name or f"ring-{number}", number, self.random.choice(self.versions))
        self.replicas.append(replica)
        replica.expire()
        return replica

    def joins(self) -> None:
        self.add()

    # Faults: each returns how to end it.

    def inject(self) -> Callable[[], None]:
        kinds = ["kill", "pause", "cut", "leave", "join", "restart", "server", "delete ring", "delete lease", "reset"]
        kinds += ["blind", "blind and delete ring"]
        if len(self.versions) == 1:  # a former one believes what was edited
            kinds += ["edit duration", "foreign lease", "replace all"]
        kind, replica = self.random.choice(kinds), self.random.choice(self.living())
        self.log.append(f"{self.now:.2f} s: {kind} {replica.member.name}")
        enough = len([each for each in self.living() if not each.leaving]) > 1
        if kind == "kill" and enough:
            replica.dead = True
        elif kind == "pause":
            replica.paused = replica.was_paused = True

            def resume() -> None:
                replica.paused = False
                stalled, replica.stalled = replica.stalled, []
                replica.work()
                self.random.shuffle(stalled)
                for each in stalled:
                    each()

            return resume
        elif kind == "cut":
            replica.cut = True
            return lambda: setattr(replica, "cut", False)
        elif kind.startswith("blind"):
            replica.blind = True
            if kind != "blind":
                self.server.ring = None
                self.ring_changed()
            return lambda: setattr(replica, "blind", False)
        elif kind == "leave" and enough:
            replica.leaving = True
        elif kind == "join" and len(self.living()) < 60:
            self.add()
        elif kind == "restart":
            replica.dead = True
            self.add(replica.member.name)
        elif kind == "server":
            self.down = True
            return lambda: setattr(self, "down", False)
        elif kind in ("delete ring", "reset"):
            self.server.ring = None
            self.ring_changed()
            if kind == "reset":
                self.server.leases = {name: each for name, each in self.server.leases.items() if name in self.foreign}
        elif kind == "delete lease" and (names := sorted(self.server.leases.keys() - self.foreign)):
            del self.server.leases[self.random.choice(names)]
        elif kind == "edit duration" and (names := sorted(self.server.leases.keys() - self.foreign)):
            self.server.edit(self.random.choice(names), self.random.choice((1, 20_000)))
        elif kind == "foreign lease":
            name = f"ring-{'x' * len(self.foreign)}foreign"
            self.foreign.add(name)
            self.server.add_foreign(name)
        elif kind == "replace all" and len(self.living()) <= 8:
            for each in self.living():
                each.dead = True
                self.later(self.random.uniform(0, 3), self.joins)
            self.add()
            self.server.ring = None
            self.ring_changed()
        return lambda: None


def run(seed: int, *, faults: int = 12, versions: Sequence[Version] = (Version(),)) -> World:
    """Run one world with random faults; then check that each slot gets an owner in time, and the ring is balanced."""
    world = World(seed, slots=random.Random(seed).choice((16, 64, 64, 256)), versions=versions)
    for _ in range(world.random.choice((8, 20, 50) if seed % 25 == 0 else (2, 3, 3, 5, 8))):
        world.later(world.random.uniform(0, 3), world.joins)
    world.run_until(40)
    for _ in range(faults):
        end = world.inject()
        world.later(world.random.choice((0.3, 4, 9, 11, 14, 16, 30)), end)
        world.run_until(world.now + world.random.choice((0.1, 0.5, 2, 7, 13, 16, 40)))
    world.run_until(world.now + 31)
    world.faulty = False
    quiet(world)
    return world


def quiet(world: World) -> None:
    """Check the ring after the last fault."""
    world.run_until(world.now + 12)  # the requests that are still on their way
    until = world.now + BOUND
    world.run_until(until)
    left = world.unowned()
    if left:
        raise Violation(f"slots {sorted(left)} have no owner {BOUND:g} s after the last fault")
    world.run_until(until + 30)
    if world.unowned():
        raise Violation(f"slots {sorted(world.unowned())} lose their owner without a fault")
    assert world.server.ring is not None
    document = _ring_of(world.server.ring)
    loads = Counter(owner for owner, _, _ in document["slots"])
    names = {each.member.name for each in world.living()}
    loads.update(dict.fromkeys(names, 0))
    if set(loads) != names or max(loads.values()) - min(loads.values()) > 1:
        raise Violation(f"the ring is not balanced: {loads}, members {names}")
    if world.foreign - set(world.server.leases):
        raise Violation(f"Leases of other programs are deleted: {world.foreign - set(world.server.leases)}")
    if set(world.server.leases) - world.foreign != names:
        raise Violation(f"Leases of dead replicas are left: {set(world.server.leases) - names}")
    writes = world.server.ring_writes
    world.run_until(world.now + 60)
    if world.server.ring_writes != writes:
        raise Violation("the ring is written although nothing changes")


def _ring_of(config_map: dict[str, Any]) -> Any:
    return msgspec.json.decode(config_map["data"][FIELD])["ring"]


def _identity(obj: dict[str, Any]) -> tuple[str, str]:
    return obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]


def _names(*replicas: Replica) -> str:
    return " and ".join(each.member.holder for each in replicas)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    for seed in range(options.first, options.first + options.seeds):
        try:
            run(seed)
        except Exception as error:
            print(f"seed {seed}: {error!r}")
            if not isinstance(error, Violation):
                raise
            sys.exit(1)
    print(f"{options.seeds} seeds: no violation")


if __name__ == "__main__":
    main()
