"""An observer of all writes to the objects of a ring, from the audit log of the API server and from a watch.

The audit log says who has written each version. If a client has closed the connection before the answer, the log does
not say whether there is a version: the watch shows it.

The observer shares no code with the replicas. A write of a replica says which member made it, and in which epoch of the
slot. In the order of the versions, which etcd gives to all objects together:

- the epoch of an object (uid) never goes back, and has one writer;
- the last ring before each write gives the slot of the object to the writer, in the epoch of the write. A ring that was
  deleted counts until another one gives the slots to members.
"""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: RequestResponse
  verbs: [create, update, patch, delete, deletecollection]
  resources: [{group: "", resources: [RESOURCES]}]
- level: None
"""
_LOG = "audit.log"


def audited(folder: Path, *others: str) -> tuple[str, ...]:
    """Return the flags of an API server that logs the writes of ConfigMaps and others in this folder, in one file."""
    policy = folder / "audit.yaml"
    policy.write_text(_POLICY.replace("RESOURCES", ", ".join(("configmaps", *others))))
    path = folder / _LOG
    return f"--audit-policy-file={policy}", f"--audit-log-path={path}", "--audit-log-maxsize=100000"


class AuditLog:
    """The log of an API server that was started with `audited`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _LOG
        self._read = 0

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the events that were added."""
        with self._path.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                yield json.loads(line)


class Write(NamedTuple):
    """One version of an object.

    Attributes:
        version: of the object, in the order of all writes.
        began, ended: when the request came, and when the answer had been sent; or when the watch showed it.
        by: the member that wrote it; "" for a change by the operator; None if only the watch has shown it.
        sequence: the number of the last change.
        processed: what the last member to write has written: the number of the change, its own name, and the epoch.
    """

    version: int
    began: float
    ended: float
    by: str | None
    sequence: str
    processed: tuple[str, str, int]

    @property
    def epoch(self) -> int:
        return self.processed[2]

    @property
    def is_processed(self) -> bool:
        """Whether a member has processed the last change in this version."""
        return self.processed[0] == self.sequence


class RingWrite(NamedTuple):
    """One version of the ring object. A ring that forms, and one that was deleted, has no slots."""

    version: int
    ended: float
    slots: list[tuple[str, int, str]]


class Mark(NamedTuple):
    """From when on a member is able to work, or is not."""

    at: float
    member: str
    is_able: bool


class Gap(NamedTuple):
    """A time in which a slot had no owner that was able to work; `ended` is infinite if it still has none."""

    slot: int
    began: float
    ended: float


class Observer:
    """Reads the audit log.

    Args:
        folder: with the log; see `audited`.
        ring: the name of the ring.

    Attributes:
        writes: all versions of the objects, by uid and version.
        last: the last version of each object, by name.
        ring: all versions of the ring object.
    """

    def __init__(self, folder: Path, ring: str) -> None:
        self._log = AuditLog(folder)
        self._name = ring
        self.writes: defaultdict[str, dict[int, Write]] = defaultdict(dict)
        self.last: dict[str, Write] = {}
        self.ring: list[RingWrite] = []

    async def follow(self) -> None:
        """Read the log while it grows."""
        while True:
            self.read()
            await asyncio.sleep(0.1)

    def read(self) -> None:
        """Take the events that were added into account."""
        for event in self._log.events():
            self.take(event)

    def take(self, event: Mapping[str, Any]) -> None:
        """Take one event of the log into account."""
        if event["stage"] != "ResponseComplete" or event["responseStatus"]["code"] >= 300:
            return
        answer, ended = event["responseObject"], _time(event["stageTimestamp"])
        metadata = answer.get("metadata", {})
        if event["verb"] == "delete":
            if event["objectRef"]["name"] == f"{self._name}-ring":
                self.ring.append(RingWrite(self.ring[-1].version, ended, []))
        elif metadata["name"] == f"{self._name}-ring":
            self._note_ring(answer, ended)
        elif metadata.get("labels", {}).get("app") == "web":
            sent = event["requestObject"].get("data", {})
            by = f"{self._name}-{sent['by']}" if "by" in sent else "" if "seq" in sent else "unknown"
            self._note(answer, _time(event["requestReceivedTimestamp"]), ended, by)

    def see(self, obj: Mapping[str, Any], now: float) -> None:
        """Take a version that the watch has shown into account."""
        metadata = obj["metadata"]
        if metadata["name"] == f"{self._name}-ring":
            self._note_ring(obj, now)
        elif (
            metadata.get("labels", {}).get("app") == "web"
            and int(metadata["resourceVersion"]) not in self.writes[metadata["uid"]]
        ):
            self._note(obj, now, now, None)

    def _note_ring(self, obj: Mapping[str, Any], at: float) -> None:
        version, ring = int(obj["metadata"]["resourceVersion"]), json.loads(obj["data"]["ring.json"])["ring"]
        if all(each.version != version for each in self.ring):
            self.ring.append(RingWrite(version, at, ring["slots"] if ring["of"] else []))

    def _note(self, obj: Mapping[str, Any], began: float, ended: float, by: str | None) -> None:
        metadata, data = obj["metadata"], obj["data"]
        processed = data.get("done", ""), f"{self._name}-{data.get('by')}", int(data.get("epoch", -1))
        write = Write(int(metadata["resourceVersion"]), began, ended, by, data["seq"], processed)
        self.writes[metadata["uid"]][write.version] = write
        last = self.last.get(metadata["name"])
        if last is None or last.version <= write.version:
            self.last[metadata["name"]] = write

    def histories(self) -> Iterator[tuple[str, list[Write]]]:
        """Yield the uid and the versions of each object, in order. A write of a member changes what it has written."""
        for uid, writes in self.writes.items():
            found, processed = list[Write](), ("", "", -1)
            for _, write in sorted(writes.items()):
                by = write.by if write.by is not None else write.processed[1] if write.processed != processed else ""
                found.append(write._replace(by=by))
                processed = write.processed
            yield uid, found

    def violations(self) -> dict[str, list[tuple[float, str]]]:
        """Return when and how objects had two owners, by uid."""
        rings = sorted(each for each in self.ring if each.slots)
        versions, found = [each.version for each in rings], defaultdict(list)
        for uid, writes in self.histories():
            epoch, by = -1, ""
            for write in [each for each in writes if each.by]:
                if write.epoch < epoch or (write.epoch == epoch and write.by != by):
                    found[uid].append((write.ended, f"{by} in epoch {epoch}, and then {write.by} in {write.epoch}"))
                epoch, by = write.epoch, write.by or ""
                at = bisect_left(versions, write.version) - 1
                slots = rings[at].slots if at >= 0 else [("", 0, "")]
                owner = slots[hash_of(uid) * len(slots) >> 64]
                if (owner[0], owner[1]) != (write.by, write.epoch):
                    found[uid].append((write.ended, f"{write.by} in epoch {write.epoch} in a slot of {owner}"))
        return dict(found)

    def unanswered(self) -> int:
        """Return how many versions only the watch has shown."""
        return sum(each.by is None for some in self.writes.values() for each in some.values())

    def delays(self) -> list[tuple[float, float]]:
        """Return for each change when it was sent, and for how long it was not processed."""
        found = []
        for _, writes in self.histories():
            waiting = list[tuple[int, float]]()
            for write in writes:
                if not write.by and not write.is_processed:
                    waiting.append((int(write.sequence), write.began))
                elif write.by:
                    done = int(write.processed[0] or 0)
                    found += [(began, write.ended - began) for number, began in waiting if number <= done]
                    waiting = [each for each in waiting if each[0] > done]
            found += [(began, float("inf")) for _, began in waiting]
        return found

    def gaps(self, marks: Iterable[Mark]) -> list[Gap]:
        """Return the times in which slots had no owner that was able to begin work in them.

        Args:
            marks: when members began and ceased to be able to work. All others are.
        """
        steps: list[tuple[float, RingWrite | Mark]] = [(each.at, each) for each in marks]
        steps += [(each.ended, each) for each in self.ring]
        count = max((len(each.slots) for each in self.ring), default=0)
        slots: list[tuple[str, int, str]] = []
        unable, since, found = set[str](), dict[int, float](), []
        for at, step in sorted(steps, key=lambda each: each[0]):
            if isinstance(step, RingWrite):
                slots = step.slots
            else:
                (unable.discard if step.is_able else unable.add)(step.member)
            for slot, (owner, _, to) in enumerate(slots or [("", 0, "")] * count):
                if not owner or to or owner in unable:
                    since.setdefault(slot, at)
                elif slot in since:
                    found.append(Gap(slot, since.pop(slot), at))
        return found + [Gap(slot, began, float("inf")) for slot, began in since.items()]


def figures(
    observer: Observer, windows: list[tuple[float, str]], marks: Iterable[Mark], bound: float
) -> dict[str, dict[str, Any]]:
    """Return what was observed in each window of time.

    Args:
        observer: has read all of the log.
        windows: when each began, and its name.
        marks: as for `Observer.gaps`.
        bound: the most seconds for which a slot may have no owner.
    """
    starts = [began for began, _ in windows]

    def label(at: float) -> str:
        return windows[max(0, bisect_right(starts, at) - 1)][1]

    found: dict[str, dict[str, Any]] = {}
    gaps, delays = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    for slot_gap in observer.gaps(marks):
        gaps[label(slot_gap.began)].append(slot_gap.ended - slot_gap.began)
    for began, seconds in observer.delays():
        delays[label(began)].append(seconds)
    writes = Counter(label(each.ended) for _, some in observer.histories() for each in some if each.by)
    violated = Counter(name for some in observer.violations().values() for name in {label(at) for at, _ in some})
    for at, (began, name) in enumerate(windows):
        seconds = (
            starts[at + 1] if at + 1 < len(starts) else max(began, *(each.ended for each in observer.last.values()))
        ) - began
        found[name] = {
            "seconds": round(seconds, 1),
            "writes of replicas": writes[name],
            "changes": len(delays[name]),
            "changes a second": round(len(delays[name]) / seconds, 1) if seconds else 0.0,
            "objects with two owners": violated[name],
            "changes lost": sum(each == float("inf") for each in delays[name]),
            "s from a change to its write": quantiles(delays[name]),
            "slots without an owner for a time": len(gaps[name]),
            "s without an owner": quantiles(gaps[name]),
            "slots without an owner for too long": sum(each > bound for each in gaps[name]),
        }
    return found


def quantiles(values: list[float]) -> dict[str, float]:
    """Return p50, p99 and the largest of some values."""
    ordered = sorted(values)
    places = {"p50": len(ordered) // 2, "p99": len(ordered) * 99 // 100, "most": len(ordered) - 1}
    return {name: round(ordered[at], 3) for name, at in places.items()} if ordered else {}


def hash_of(uid: str) -> int:
    """Return the hash of the API server's shards: FNV-1a with 64 bits."""
    value = 0xCBF29CE484222325
    for byte in uid.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
