"""The objects of the model server: what is written, what is kept of the past, and what comes back of it.

A pure state machine. It knows the selection of the one informer that looks at it, and keeps the history of what that
informer may see.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tests.simulation.history import ABSENT, History

if TYPE_CHECKING:
    from random import Random

#: Versions are those of other resources, too.
MOST_VERSIONS_A_WRITE = 5

#: The label of objects that a transform refuses.
REFUSED = "refused"

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Stored:
    """One version of one object."""

    key: str
    uid: str
    version: int
    serial: int
    app: str
    node: str
    size: int = 0
    readable: bool = True
    refusable: bool = False

    def body(self, *, version: int = 0, kind: bool = True) -> bytes:
        """Its JSON. What is not readable has a uid of a wrong type, or a label that a transform refuses."""
        namespace, name = self.key.split("/")
        refused = not self.readable and self.refusable
        metadata = {
            "name": name,
            "namespace": namespace,
            "uid": self.uid if self.readable or refused else 7,
            "resourceVersion": str(version or self.version),
            "labels": {"app": self.app, "write": str(self.serial)} | ({REFUSED: ""} if refused else {}),
        }
        if self.size:
            metadata["annotations"] = {"pad": "x" * self.size}
        document = {"kind": "Pod", "apiVersion": "v1"} if kind else {}
        return _encode(
            document | {"metadata": metadata, "spec": {"nodeName": self.node}, "status": {"phase": "Running"}}
        )


class Event(NamedTuple):
    """What a watch is told of one write.

    Attributes:
        version: of the write.
        line: as kube-apiserver writes it.
        own: as servers write it that show deletions with the last version of the object.
    """

    version: int
    line: bytes
    own: bytes


@dataclass(frozen=True, slots=True)
class Selection:
    """What the informer asks for.

    Attributes:
        namespace: "" for all.
        app: the value of this label, "" for any.
    """

    namespace: str = ""
    app: str = ""

    def sees(self, obj: Stored | None) -> bool:
        """Whether an object is in it."""
        if obj is None or not obj.key.startswith(self.namespace and f"{self.namespace}/"):
            return False
        return self.app in ("", obj.app)


class Snapshot(NamedTuple):
    """The whole collection at one moment."""

    version: int
    moment: int
    objects: dict[str, Stored]


@dataclass
class Collection:
    """Objects by key, each write with a new version.

    Attributes:
        selection: of the informer.
        random: makes gaps between versions, as other resources do.
        refusing: every other object that is not readable is one that a transform refuses.
        history: of what the informer may see.
        version: of the last write.
        oldest: watches may begin here, and no earlier.
        events: of the selection, oldest first.
        snapshots: after each write, oldest first.
    """

    selection: Selection
    random: Random
    refusing: bool = False
    history: History = field(default_factory=History)
    version: int = 100
    oldest: int = 100
    objects: dict[str, Stored] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)
    _serial: int = 0
    _uid: int = 0

    def __post_init__(self) -> None:
        self._keep()

    def put(
        self, key: str, *, app: str, node: str, size: int, readable: bool = True, version: int | None = None
    ) -> Stored:
        """Makes or changes an object, at the next version or at one that is given."""
        old = self.objects.get(key)
        if version is None:
            self._tick()
        else:
            self.version = version
        self._serial += 1
        if old is None:
            self._uid += 1
        uid = old.uid if old is not None else f"uid-{self._uid}"
        refusable = self.refusing and self._serial % 2 == 0
        new = Stored(key, uid, self.version, self._serial, app, node, size, readable, refusable)
        self.objects[key] = new
        self._happened(old, new)
        return new

    def touch(self, key: str) -> Stored:
        """Changes the status of an object."""
        old = self.objects[key]
        return self.put(key, app=old.app, node=old.node, size=old.size, readable=old.readable)

    def delete(self, key: str) -> Stored:
        """Takes an object away; returns its last version."""
        old = self.objects.pop(key)
        self._tick()
        self._happened(old, None)
        return old

    def compact(self, version: int) -> None:
        """What was before this version is gone."""
        self.oldest = max(self.oldest, min(version, self.version))

    def restore(self, back: int, *, bump: bool) -> list[Stored]:
        """An old state comes back, with its version; or with a version far ahead, as careful operators do it.

        Returns:
            What had been written since, in order.
        """
        kept = max(1, len(self.snapshots) - back)
        undone = [
            obj
            for snapshot in self.snapshots[kept:]
            for obj in snapshot.objects.values()
            if obj.version == snapshot.version
        ]
        del self.snapshots[kept:]
        then = self.snapshots[-1]
        for key in sorted(self.objects.keys() | then.objects.keys()):
            self._became(key, self.objects.get(key), then.objects.get(key))
        self.history.undo(then.moment)
        self.objects = dict(then.objects)
        if bump:
            self.version = self.oldest = self.version + 1000
            self.events.clear()
        else:
            self.version = then.version
            self.oldest = min(self.oldest, self.version)
            self.events = [event for event in self.events if event.version <= self.version]
        self._keep()
        return undone

    def now(self) -> Snapshot:
        """The state of now."""
        return self.snapshots[-1]

    def visible(self, snapshot: Snapshot | None = None) -> dict[str, Stored]:
        """What the informer may see, by key in order."""
        objects = (snapshot or self.now()).objects
        return {key: objects[key] for key in sorted(objects) if self.selection.sees(objects[key])}

    def _tick(self) -> None:
        self.version += 1 if self.random.random() < 0.8 else self.random.randint(2, MOST_VERSIONS_A_WRITE)

    def _happened(self, old: Stored | None, new: Stored | None) -> None:
        before, after = self.selection.sees(old), self.selection.sees(new)
        if before and not after:
            assert old is not None  # what leaves the selection is told as it was, with the version of the change
            self._tell("DELETED", replace(old, version=self.version), old)
        elif after:
            assert new is not None
            self._tell("MODIFIED" if before else "ADDED", new)
        key = (new or old).key  # type: ignore[union-attr]
        self._became(key, old, new)
        self._keep()

    def _became(self, key: str, old: Stored | None, new: Stored | None) -> None:
        before = old if self.selection.sees(old) else None
        after = new if self.selection.sees(new) else None
        if before is not after:
            serial = ABSENT if after is None else after.serial
            self.history.add(key, serial, readable=after is None or after.readable)

    def _tell(self, kind: str, obj: Stored, own: Stored | None = None) -> None:
        said, owned = (b'{"type":"%b","object":%b}\n' % (kind.encode(), each.body()) for each in (obj, own or obj))
        self.events.append(Event(self.version, said, owned))

    def _keep(self) -> None:
        self.snapshots.append(Snapshot(self.version, self.history.moment, dict(self.objects)))
