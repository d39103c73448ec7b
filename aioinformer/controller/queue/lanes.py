"""The order of requests that are ready: priorities, turns of groups, ageing, and limits of groups."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable

    from aioinformer.controller.queue.causes import Cause
    from aioinformer.controller.queue.outcomes import Run
    from aioinformer.resources.keys import ObjectName

#: How many lanes are looked at for their age when a request is handed out. Two would do to keep the bound.
_LOOKS: Final = 4


class Entry:
    """A key in the queue, and a node of the list of its lane. Times are seconds of the queue's clock.

    Attributes:
        key: of the object.
        group: of the key.
        state: one of the schedule's states.
        causes: of the next run; empty if none is requested.
        left_out: how many causes of the next run are not in `causes`.
        changed: whether one of them is a change.
        priority: of the next run.
        enqueued: when its first cause arrived.
        at: when the next run may start; for a resting key, when it may be dropped.
        since: when it entered its lane.
        run: the current run.
        started: the start of the last run.
        previous: in the lane.
        next: in the lane.
    """

    __slots__ = (
        *("at", "causes", "changed", "enqueued", "group", "key", "left_out"),
        *("next", "previous", "priority", "run", "since", "started", "state"),
    )

    def __init__(self, key: ObjectName, group: Hashable) -> None:
        self.key = key
        self.group = group
        self.state = 0
        self.causes: tuple[Cause, ...] = ()
        self.left_out = 0
        self.changed = False
        self.priority = 0
        self.enqueued = self.at = self.since = 0.0
        self.run: Run | None = None
        self.started = float("-inf")
        self.previous: Entry | None = None
        self.next: Entry | None = None


class _Group:
    """The lanes and the number of runs of a group; exists while there are any."""

    __slots__ = ("id", "lanes", "runs")

    def __init__(self, id: Hashable) -> None:
        self.id = id
        self.runs = 0
        self.lanes: dict[int, _Lane] = {}


class _Lane:
    """The requests of one group and priority, first in, first out: a linked list, so that any can be removed."""

    __slots__ = ("aged", "first", "group", "last", "priority", "turn", "watched")

    def __init__(self, group: _Group, priority: int) -> None:
        self.group = group
        self.priority = priority
        self.first: Entry | None = None
        self.last: Entry | None = None
        # Whether it is in the ring of its priority, in the ring of overdue lanes, and in the heap of ages.
        self.turn = self.aged = self.watched = False


class Lanes:
    """Requests that are ready, in the order that `Schedule` documents.

    Each operation takes O(log n) on average: rings and heaps keep lanes that have nothing to give, and drop them when
    they come to the front.

    Args:
        ageing: seconds after which a request is overdue.
        limit: the number of runs that a group may have at a time; None for no limit.
    """

    def __init__(self, ageing: float, limit: int | None) -> None:
        self._ageing = ageing
        self._limit = limit
        self._groups: dict[Hashable, _Group] = {}
        #: The rings of lanes by priority, and the priorities, highest first.
        self._rings: dict[int, deque[_Lane]] = {}
        self._priorities: list[int] = []
        self._overdue: deque[_Lane] = deque()
        #: (earliest time at which the first request may be overdue, number, lane).
        self._ages: list[tuple[float, int, _Lane]] = []
        self._numbers = count()
        self._turn_of_overdue = False
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def push(self, request: Entry, now: float) -> None:
        """Append a request to the lane of its group and priority."""
        group = self._groups.get(request.group)
        if group is None:
            group = self._groups[request.group] = _Group(request.group)
        lane = group.lanes.get(request.priority)
        if lane is None:
            lane = group.lanes[request.priority] = _Lane(group, request.priority)
        request.since = now
        request.previous, request.next = lane.last, None
        if lane.last is None:
            lane.first = request
        else:
            lane.last.next = request
        lane.last = request
        self._size += 1
        self._activate(lane)

    def remove(self, request: Entry) -> None:
        """Remove a request that was pushed."""
        lane = self._groups[request.group].lanes[request.priority]
        self._unlink(lane, request)
        self._drop_if_unused(lane)

    def pop(self, now: float) -> Entry | None:
        """Remove and return the next request, and count a run of its group; None if none may run."""
        self._find_overdue(now)
        overdue = self._first_overdue(now) if self._turn_of_overdue else None
        lane = overdue or self._first_urgent()
        request = lane.first if lane is not None else None
        if lane is None or request is None:
            return None
        self._turn_of_overdue = overdue is None
        self._unlink(lane, request)
        lane.group.runs += 1
        # The lane goes to the end of the ring in which it had its turn. In the other one it keeps its place.
        ring = self._rings[lane.priority] if overdue is None else self._overdue
        if lane.first is not None:
            ring.rotate(-1)
        else:
            ring.popleft()
            lane.turn, lane.aged = (False, lane.aged) if overdue is None else (lane.turn, False)
            self._drop_if_unused(lane)
        return request

    def end_run(self, group: Hashable) -> None:
        """Count the end of a run of a group."""
        ended = self._groups[group]
        was_full = self._is_full(ended)
        ended.runs -= 1
        for lane in ended.lanes.values() if was_full else ():
            if lane.first is not None:
                self._activate(lane)
        if not ended.lanes and not ended.runs:
            del self._groups[group]

    def available(self) -> bool:
        """Return whether `pop` has a request."""
        return self._first_urgent() is not None

    def _activate(self, lane: _Lane) -> None:
        if not lane.turn and not self._is_full(lane.group):
            ring = self._rings.get(lane.priority)
            if ring is None:
                ring = self._rings[lane.priority] = deque()
                heappush(self._priorities, -lane.priority)
            lane.turn = True
            ring.append(lane)
        self._watch(lane)

    def _watch(self, lane: _Lane) -> None:
        if lane.first is not None and not lane.watched and not lane.aged and self._ageing < float("inf"):
            lane.watched = True
            heappush(self._ages, (lane.first.since + self._ageing, next(self._numbers), lane))

    def _find_overdue(self, now: float) -> None:
        """Move lanes whose first request is overdue to the ring of overdue lanes, the longest overdue first."""
        for _ in range(_LOOKS):
            if not self._ages or self._ages[0][0] > now:
                return
            lane = heappop(self._ages)[2]
            lane.watched = False
            if lane.first is not None and lane.first.since + self._ageing <= now:
                lane.aged = True
                self._overdue.append(lane)
            else:
                self._watch(lane)
                self._drop_if_unused(lane)

    def _first_overdue(self, now: float) -> _Lane | None:
        while self._overdue:
            lane = self._overdue[0]
            overdue = lane.first is not None and lane.first.since + self._ageing <= now
            if overdue and not self._is_full(lane.group):
                return lane
            self._overdue.popleft()
            lane.aged = False
            if not overdue:
                self._watch(lane)
                self._drop_if_unused(lane)
        return None

    def _first_urgent(self) -> _Lane | None:
        while self._priorities:
            ring = self._rings[-self._priorities[0]]
            while ring:
                lane = ring[0]
                if lane.first is not None and not self._is_full(lane.group):
                    return lane
                ring.popleft()
                lane.turn = False
                self._drop_if_unused(lane)
            del self._rings[-heappop(self._priorities)]
        return None

    def _is_full(self, group: _Group) -> bool:
        return self._limit is not None and group.runs >= self._limit

    def _unlink(self, lane: _Lane, request: Entry) -> None:
        previous, following = request.previous, request.next
        if previous is None:
            lane.first = following
        else:
            previous.next = following
        if following is None:
            lane.last = previous
        else:
            following.previous = previous
        request.previous = request.next = None
        self._size -= 1

    def _drop_if_unused(self, lane: _Lane) -> None:
        if lane.first is None and not (lane.turn or lane.aged or lane.watched):
            group = lane.group
            group.lanes.pop(lane.priority, None)
            if not group.lanes and not group.runs:
                self._groups.pop(group.id, None)
