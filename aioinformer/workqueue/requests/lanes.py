"""The order of requests that are ready: priorities, turns of groups, ageing, and limits of groups."""

from __future__ import annotations

from bisect import insort
from collections import OrderedDict
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Hashable

    from aioinformer.resources.keys import ObjectName
    from aioinformer.workqueue.requests.causes import Cause
    from aioinformer.workqueue.requests.outcomes import Run

#: How many lanes `pop` looks at for their age. Lanes that become overdue at once are found faster than they are served.
_LOOKS: Final = 4


@dataclass(slots=True, eq=False)
class Entry:
    """A key in the queue; while it is ready, a node in the list of its lane."""

    key: ObjectName
    group: Hashable
    state: int = 0
    run: Run | None = None
    started: float = float("-inf")
    # Of the request, if there are causes.
    causes: tuple[Cause, ...] = ()
    left_out: int = 0
    changed: float | None = None  # when the first change of an input arrived
    enqueued: float = 0.0
    priority: int = 0
    at: float = 0.0
    # In the lane.
    since: float = 0.0
    previous: Entry | None = None
    next: Entry | None = None


@dataclass(slots=True, eq=False)
class _Group:
    id: Hashable
    runs: int = 0
    lanes: dict[int, _Lane] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _Lane:
    """The requests of one group and priority, first in, first out: a linked list, so that any can be removed."""

    group: _Group
    priority: int
    first: Entry | None = None
    last: Entry | None = None
    watched: bool = False


#: Seconds after which a request is overdue.
AGEING: Final = 30.0
#: Lanes in the order of their turns.
_Ring: TypeAlias = "OrderedDict[_Lane, None]"


class Lanes:
    """Requests that are ready, in the order that `schedule` documents. Each operation takes O(log n) on average.

    Args:
        limit: the number of runs that a group may have at a time; None for no limit.
    """

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._size = 0
        self._groups: dict[Hashable, _Group] = {}
        #: Lanes that have a request that may run, by priority; the priorities, lowest first; and the overdue ones.
        self._rings: dict[int, _Ring] = {}
        self._priorities: list[int] = []
        self._overdue: _Ring = OrderedDict()
        self._turn_of_overdue = False
        #: When to look whether a lane is overdue: at most one entry for each, maybe early.
        self._ages: list[tuple[float, int, _Lane]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return self._size

    def available(self) -> bool:
        """Return whether `pop` has a request."""
        return bool(self._priorities)

    def push(self, entry: Entry, now: float) -> None:
        """Append a request to the lane of its group and priority."""
        group = self._groups.get(entry.group)
        if group is None:
            group = self._groups[entry.group] = _Group(entry.group)
        lane = group.lanes.get(entry.priority)
        if lane is None:
            lane = group.lanes[entry.priority] = _Lane(group, entry.priority)
        entry.since, entry.previous, entry.next = now, lane.last, None
        lane.last = entry
        self._size += 1
        if entry.previous is not None:
            entry.previous.next = entry
        else:
            lane.first = entry
            self._update(lane, now)

    def remove(self, entry: Entry, now: float) -> None:
        """Remove a request."""
        lane = self._groups[entry.group].lanes[entry.priority]
        before, after = entry.previous, entry.next
        entry.previous = entry.next = None
        self._size -= 1
        if after is not None:
            after.previous = before
        else:
            lane.last = before
        if before is not None:
            before.next = after
            return
        lane.first = after
        if after is None or self._overdue:
            self._update(lane, now)

    def pop(self, now: float) -> Entry | None:
        """Remove and return the next request, and count a run of its group; None if none may run."""
        if self._ages and self._is_due(now):
            self._look(now)
        if not self._priorities:
            return None
        ring = self._overdue if self._turn_of_overdue and self._overdue else self._rings[self._priorities[-1]]
        self._turn_of_overdue = ring is not self._overdue
        lane = next(iter(ring))
        if len(ring) > 1:
            ring.move_to_end(lane)
        entry, group = lane.first, lane.group
        assert entry is not None
        group.runs += 1
        self.remove(entry, now)
        if group.runs == self._limit:
            self._update_all(group, now)
        return entry

    def _is_due(self, now: float) -> bool:
        at, _, lane = self._ages[0]
        return at <= now or lane.first is None

    def _look(self, now: float) -> None:
        """Look at the lanes that may be overdue, a slice of them at most."""
        for _ in range(_LOOKS):
            lane = heappop(self._ages)[2]
            lane.watched = False
            self._update(lane, now)
            if not self._ages or not self._is_due(now):
                break

    def end_run(self, group: Hashable, now: float) -> None:
        """Count the end of a run of a group."""
        ended = self._groups[group]
        ended.runs -= 1
        if self._limit is not None:
            self._update_all(ended, now)
        elif not ended.runs and not ended.lanes:
            del self._groups[group]

    def _update_all(self, group: _Group, now: float) -> None:
        for lane in list(group.lanes.values()):
            self._update(lane, now)
        if not group.lanes and not group.runs:
            self._groups.pop(group.id, None)

    def _update(self, lane: _Lane, now: float) -> None:
        """Put a lane into the rings in which it has turns, and take it out of the others."""
        group, priority = lane.group, lane.priority
        available = lane.first is not None and (self._limit is None or group.runs < self._limit)
        ring = self._rings.get(priority)
        if available and ring is None:
            self._rings[priority] = OrderedDict({lane: None})
            insort(self._priorities, priority)
        elif available and ring is not None:
            ring[lane] = None
        elif ring is not None and lane in ring:
            del ring[lane]
            if not ring:
                del self._rings[priority]
                self._priorities.remove(priority)
        overdue = lane.first is not None and lane.first.since + AGEING <= now
        if available and overdue:
            self._overdue[lane] = None
        else:
            self._overdue.pop(lane, None)
        if lane.first is None:
            if not lane.watched:
                group.lanes.pop(priority, None)
                if not group.lanes and not group.runs:
                    self._groups.pop(group.id, None)
        elif not overdue and not lane.watched:
            lane.watched = True
            heappush(self._ages, (lane.first.since + AGEING, next(self._numbers), lane))
