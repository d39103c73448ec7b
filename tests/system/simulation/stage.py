"""The stage of a scenario: the informer, its server and witnesses, and the actions on them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer import ListWatch, SharedIndexInformer
from aioinformer.errors import DecodeError, InformerStopped
from aioinformer.models import core_v1
from tests.system.simulation.collection import MOST_VERSIONS_A_WRITE, Collection, app_of, key_of, refused, serial_of
from tests.system.simulation.history import ABSENT
from tests.system.simulation.model_server import ModelServer
from tests.system.simulation.scenario import Manner
from tests.system.simulation.witness import OnPurpose, Witness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from aioinformer import Resource
    from tests.system.simulation.scenario import Action, Fault, Scenario
    from tests.system.simulation.world import Story

PODS: Resource[Any] = core_v1.PODS

#: Seconds without writes after a restore, at least.
_AFTER_RESTORE = 2.0


def by_app(obj: Any) -> list[str]:
    """Index objects by the label of selections."""
    return [app_of(obj)]


def by_fragile_app(obj: Any) -> list[str]:
    """Index objects by the label, and raise for some, which are absent from the index then."""
    if app_of(obj) == "c":
        raise OnPurpose
    return by_app(obj)


def by_write_parity(obj: Any) -> list[str]:
    """Index objects by a value that most changes alter."""
    return ["odd" if serial_of(obj) % 2 else "even"]


def fastidious(obj: Any) -> Any:
    """Refuse some objects, as a transform, and return the others unchanged."""
    if refused(obj):
        raise OnPurpose
    return obj


class Stage:
    """An informer and its environment.

    Attributes:
        witnesses: all handlers, removed ones included.
        places: the place of each cached object in its history.
        waiters: tasks that wait on the informer.
    """

    def __init__(self, scenario: Scenario, story: Story) -> None:
        self.scenario = scenario
        self.story = story
        self._random = Random(f"stage {scenario.seed}")
        refusing = scenario.seed % 3 == 0
        self.collection = Collection(scenario.selection, Random(f"collection {scenario.seed}"), refusing)
        self.server = ModelServer(self.collection, story, Random(f"server {scenario.seed}"))
        selection = scenario.selection
        lister_watcher = ListWatch(
            self.server, PODS, selection.namespace, f"app={selection.app}" if selection.app else ""
        )
        self.indexers: dict[str, Any] = {"app": by_app, "fragile": by_fragile_app}
        self.informer: SharedIndexInformer[Any] = SharedIndexInformer(
            lister_watcher,
            scenario.resync,
            indexers=self.indexers,
            storage=scenario.storage,
            fields=["spec.nodeName"] if scenario.storage == "projection" else (),
            options=msgspec.structs.replace(scenario.options, queue=scenario.queue),
            name="informer",
        )
        if refusing:
            self.informer.set_transform(fastidious)
        self.informer.add_state_handler(lambda state: story.tell("informer", "is %s", state))
        self.witnesses: list[Witness] = []
        self.waiters: list[asyncio.Task[None]] = []
        self.places: Callable[[], Mapping[str, int]] = dict
        self._writes_held_since: float | None = None

    # Handlers.

    def register(self, manner: Manner) -> None:
        """Register a handler."""
        name = f"handler {len(self.witnesses) + 1}"
        period = self.scenario.resync if manner.resync is None else manner.resync
        manner = replace(manner, resync=period)
        random = Random(f"{name} {self.scenario.seed}")
        witness = Witness(name, manner, random, self.collection.history, self.cached, self.story)
        witness.joined = asyncio.get_running_loop().time()
        witness.leave = self.remove
        witness.bring = lambda: self.register(Manner())
        cached = {key_of(obj): serial_of(obj) for obj in self.informer.get_store().list()}
        if self.begun:
            witness.greeting = cached
            witness.begin_at(self.places())
            witness.joined_synced = self.informer.has_synced()
            witness.initial = set(cached)
        self.story.tell(name, "joins %d objects: %s", len(cached), manner)
        try:
            registration = self.informer.add_event_handler(witness.handler(), manner.resync)
        except InformerStopped:
            return
        witness.registration = registration
        self.witnesses.append(witness)
        self.waiters.append(asyncio.create_task(self._wait_for_handler(witness), name=f"{name} waits"))

    def remove(self, witness: Witness) -> None:
        """Remove a handler."""
        if witness.registration is not None and not witness.removed:
            self.story.tell(witness.name, "leaves")
            self.informer.remove_event_handler(witness.registration)
            witness.removed = True

    @property
    def begun(self) -> bool:
        """Whether the informer has been started."""
        return self.informer.state.phase != "new"

    @property
    def present(self) -> list[Witness]:
        """The witnesses that are registered."""
        return [witness for witness in self.witnesses if not witness.removed]

    def cached(self, key: str) -> int:
        """Return the serial number of a cached object."""
        obj = self.informer.get_store().get_by_key(key)
        return serial_of(obj) if obj is not None else ABSENT

    # Actions.

    def perform(self, action: Action) -> None:
        """Perform an action."""
        if action.kind in ("put", "touch", "delete", "noop"):
            self._write(action.kind, **action.params)
        else:
            getattr(self, f"_{action.kind}")(**action.params)

    def writable(self) -> bool:
        """Return whether objects may be written.

        If versions go back and then exceed those of the cache before the informer has noticed, no client can notice.
        So there are no writes until the informer has noticed, by events or by a second restore.
        """
        if self._writes_held_since is None:
            return True
        version = self.informer.last_sync_resource_version or "0"
        now = asyncio.get_running_loop().time()
        if int(version) > self.collection.version:
            return int(version) > self.collection.version + MOST_VERSIONS_A_WRITE
        if now < self._writes_held_since + _AFTER_RESTORE:
            return False
        self._writes_held_since = None
        return True

    def _write(self, kind: str, key: str, **fields: Any) -> None:
        if self.writable():
            self._write_now(kind, key, **fields)

    def _write_now(self, kind: str, key: str, **fields: Any) -> None:
        objects = self.collection.objects
        if kind == "noop" or (kind in ("touch", "delete") and key not in objects):
            self.story.tell("server", "%s %s: nothing changes", kind, key)
            return
        if kind == "delete":
            self.collection.delete(key)
            self.story.tell("server", "deletes %s: version %d", key, self.collection.version)
        else:
            obj = self.collection.touch(key) if kind == "touch" else self.collection.put(key, **fields)
            seen = "" if obj.readable else ", unreadable"
            what = "writes %s: write %d, version %d, %s%s"
            self.story.tell("server", what, key, obj.serial, obj.version, obj.uid, seen)
        self.server.poke()

    def _fault(self, fault: Fault) -> None:
        now = asyncio.get_running_loop().time()
        fault = replace(fault, until=now + fault.until)
        before = self.collection.version
        if fault.params.get("bump") and not self.writable():
            return
        self.story.tell("server", "FAULT for %.1f s: %s", fault.until - now, fault)
        self.server.start(fault)
        if self.collection.version < before:
            self.story.tell("server", "is back at version %d from %d", self.collection.version, before)
            self._writes_held_since = now
            if fault.params.get("redo"):
                self._redo()

    def _redo(self) -> None:
        """Repeat undone writes, as clients do: other contents get the same versions."""
        held = int(self.informer.last_sync_resource_version or 0)
        for obj in self.server.undone:
            there = self.collection.objects.get(obj.key)
            if there is None or there.uid != obj.uid or not self.collection.version < obj.version < held:
                continue
            self._write_now("put", key=obj.key, app=there.app, node=there.node, size=there.size, version=obj.version)

    def _join(self, manner: Manner) -> None:
        self.register(manner)

    def _leave(self, number: int) -> None:
        if number < len(self.present):
            self.remove(self.present[number])

    def _index(self, in_slices: bool) -> None:
        if in_slices:
            self.waiters.append(asyncio.create_task(self._index_in_slices(), name="adds an index"))
        else:
            self.informer.add_indexers({"parity": by_write_parity})
            self.indexers["parity"] = by_write_parity
            self.story.tell("informer", "is given an index")

    async def _index_in_slices(self) -> None:
        await self.informer.add_indexers_in_slices({"parity": by_write_parity})
        self.indexers["parity"] = by_write_parity
        self.story.tell("informer", "is given an index, in slices")

    # The end.

    def unreadable(self) -> list[str]:
        """The keys of unreadable objects."""
        return sorted(key for key, obj in self.collection.objects.items() if not obj.readable)

    def mend(self, key: str) -> None:
        """Make an object readable."""
        obj = self.collection.objects[key]
        self._write("put", key=key, app=obj.app, node=obj.node, size=obj.size)

    def mark(self) -> None:
        """Write an object that only a live connection can deliver."""
        self._write("put", key="default/mark", app="a", node="node-0", size=0)

    def probe(self) -> Iterator[float]:
        """Write some objects at rest; yield the seconds to wait in between."""
        for _ in range(6):
            key = self._random.choice(("default/probe", "default/other-probe"))
            kind = self._random.choice(("put", "put", "delete"))
            self._write(kind, key, app="a", node="node-0", size=0)
            yield self._random.choice((0.0, 0.0, 1e-5, 1e-4, 1e-3))

    # Waiters.

    def _wait_for(self, key: str, gone: bool, patience: float) -> None:
        self.waiters.append(asyncio.create_task(self._wait_for_key(key, gone, patience), name=f"waits for {key}"))

    def _write_and_wait(self, object: dict[str, Any], patience: float) -> None:
        # Versions that were assigned twice prove nothing.
        if self.writable() and self._writes_held_since is None:
            self._write("put", **object)
            stored = self.collection.objects[object["key"]]
            place = self.collection.history.latest(stored.key)
            wait = self._wait_for_version(stored.key, place, stored.version, patience)
            self.waiters.append(asyncio.create_task(wait, name=f"waits for version {stored.version}"))

    async def _wait_for_key(self, key: str, gone: bool, patience: float) -> None:
        try:
            obj = await self.informer.wait_for(key, lambda obj: (obj is None) is gone, patience)
        except (TimeoutError, InformerStopped):
            return
        except DecodeError as error:
            if not gone or "exists and cannot be decoded" not in str(error):
                raise
            self.story.tell("waiter", "%s exists, and cannot be decoded", key)
            return
        self.story.tell("waiter", "%s is %s", key, "gone" if obj is None else f"at write {serial_of(obj)}")
        if (obj is None) is not gone:
            self.story.violate(
                "wrong wake-up", f"a wait for {key} to {'be deleted' if gone else 'exist'} returned {obj}"
            )

    async def _wait_for_version(self, key: str, place: int, version: int, patience: float) -> None:
        restores = self.server.restores
        try:
            async with asyncio.timeout(patience):
                await self.informer.wait_for_resource_version(str(version), timeout=None)
        except (TimeoutError, InformerStopped):
            return
        self.story.tell("waiter", "version %d is reached", version)
        history = self.collection.history
        # After a restore, versions prove nothing; unreadable objects are not cached.
        comparable = restores == self.server.restores and not history.lacks_readable(key)
        if comparable and not history.covers(key, place, self.cached(key)):
            self.story.violate("wrong wake-up", f"version {version} counts as reached, but {key} is older")

    async def _wait_for_handler(self, witness: Witness) -> None:
        assert witness.registration is not None
        try:
            await witness.registration.wait_for_sync()
        except InformerStopped:
            return
        self.story.tell(witness.name, "has synced")
        if not witness.registration.has_synced():
            self.story.violate("synced too early", f"the wait for {witness.name} returned, but it has not synced")
