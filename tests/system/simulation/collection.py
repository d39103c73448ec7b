"""The objects of the model server, with their history, compaction, and restores from a backup.

A pure state machine. It knows the selection of its one informer, and keeps the history of what that informer may see.
The functions at the end read objects of any storage tier.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tests.system.simulation.history import ABSENT, History

if TYPE_CHECKING:
    from random import Random


#: Gaps between versions: other resources are written, too.
MOST_VERSIONS_A_WRITE = 5

#: The label of objects that a transform refuses.
REFUSED = "refused"

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Stored:
    """A version of an object."""

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
        """Its JSON. An unreadable object has a uid of a wrong type, or a label that a transform refuses."""
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
    """The event of a write, as kube-apiserver sends it; `own` has the last version of the object in a delete."""

    version: int
    line: bytes
    own: bytes


@dataclass(frozen=True, slots=True)
class Selection:
    """The selection of the informer; "" selects all."""

    namespace: str = ""
    app: str = ""

    def sees(self, obj: Stored | None) -> bool:
        """Return whether it contains an object."""
        if obj is None or not obj.key.startswith(self.namespace and f"{self.namespace}/"):
            return False
        return self.app in ("", obj.app)


class Snapshot(NamedTuple):
    """The state of the collection at one moment."""

    version: int
    moment: int
    objects: dict[str, Stored]


@dataclass
class Collection:
    """Objects by key; each write has a new version.

    Attributes:
        refusing: whether a transform refuses every other unreadable object.
        history: of what the informer may see.
        oldest: the oldest version from which watches may start.
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
        """Create or change an object, at the next version or at a given one."""
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
        """Change the status of an object."""
        old = self.objects[key]
        return self.put(key, app=old.app, node=old.node, size=old.size, readable=old.readable)

    def delete(self, key: str) -> Stored:
        """Delete an object, and return its last version."""
        old = self.objects.pop(key)
        self._tick()
        self._happened(old, None)
        return old

    def compact(self, version: int) -> None:
        """Drop the history before a version."""
        self.oldest = max(self.oldest, min(version, self.version))

    def restore(self, back: int, *, bump: bool) -> list[Stored]:
        """Restore an old state with its version, or with a version far ahead, as careful operators do.

        Returns:
            The writes that were undone, in order.
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
        """The current state."""
        return self.snapshots[-1]

    def visible(self, snapshot: Snapshot | None = None) -> dict[str, Stored]:
        """The objects that the informer may see, ordered by key."""
        objects = (snapshot or self.now()).objects
        return {key: objects[key] for key in sorted(objects) if self.selection.sees(objects[key])}

    def _tick(self) -> None:
        self.version += 1 if self.random.random() < 0.8 else self.random.randint(2, MOST_VERSIONS_A_WRITE)

    def _happened(self, old: Stored | None, new: Stored | None) -> None:
        before, after = self.selection.sees(old), self.selection.sees(new)
        if before and not after:
            assert (
                old is not None
            )  # an object that leaves the selection is sent in its old state, with the version of the change
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


def key_of(obj: Any) -> str:
    """Return `namespace/name`."""
    if isinstance(obj, dict):
        return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
    metadata = obj.metadata
    return f"{metadata.namespace}/{metadata.name}"


def serial_of(obj: Any) -> int:
    """Return the serial number of its write."""
    return int(_labels(obj)["write"])


def app_of(obj: Any) -> str:
    """Return the label of selections."""
    return str(_labels(obj)["app"])


def refused(obj: Any) -> bool:
    """Return whether a transform refuses it."""
    return REFUSED in _labels(obj)


def identity_of(obj: Any) -> tuple[str, str, int]:
    """Return uid, version and serial number."""
    if isinstance(obj, dict):
        return obj["metadata"]["uid"], obj["metadata"]["resourceVersion"], serial_of(obj)
    return obj.metadata.uid, obj.metadata.resource_version, serial_of(obj)


def _labels(obj: Any) -> Any:
    return obj["metadata"]["labels"] if isinstance(obj, dict) else obj.metadata.labels
