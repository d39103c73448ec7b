"""What waits for one handler: batches of notifications in the queue of its listener, and their counts."""

from __future__ import annotations

import asyncio
from itertools import islice
from operator import length_hint
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from aioinformer.handlers.handler_lines import HandlerLines
from aioinformer.handlers.notifications import AddNotification

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aioinformer.handlers.notifications import Notification

T = TypeVar("T")

#: A backlog of this many notifications in later batches is logged, and again each time it doubles.
_BACKLOG: Final = 10_000
#: A backlog is not logged in its first seconds: a resync or a relist may enqueue as many at once.
_PATIENCE: Final = 2.0


class Batch(msgspec.Struct, Generic[T], frozen=True, eq=False):
    """Notifications that are enqueued together.

    All listeners share one batch: a hundred listeners that fall behind would otherwise keep a hundred of them. It is a
    tuple, which the garbage collector walks once at most: to walk lists of 200,000 pending notifications takes 10 ms.

    Attributes:
        notifications: the notifications. They may be an iterator, which can be read only once.
        size: how many.
        initial: how many of them belong to the initial list.
        source: the iterator from which `notifications` are made; None if they exist already. Its length hint is the
            number that is left.
    """

    notifications: Iterable[Notification[T]]
    size: int
    initial: int = 0
    source: Iterator[Any] | None = None

    @classmethod
    def of(cls, notifications: list[Notification[T]], counted: int = 0, initial: int = 0) -> Batch[T]:
        """Return the batch of these notifications. Of the first ones, `counted` of them, `initial` are initial."""
        for each in islice(notifications, counted, None) if counted else notifications:
            if type(each) is AddNotification and each.is_in_initial_list:
                initial += 1
        return cls(tuple(notifications), len(notifications), initial)


class Backlog(msgspec.Struct, Generic[T], eq=False):
    """The notifications of one handler that have not been delivered: the two queues, and the counts that match them.

    Attributes:
        name: of the listener, for logs.
        ready: the queue of the run task.
        closed: whether nothing more is accepted and delivered.
        waiting: how many notifications are in batches that have not begun.
        left: the rest of the batch that has begun.
        added: how many notifications were added, without those that were dropped.
        initial: how many of the initial list have not been delivered.
        limit: how many waiting notifications are logged next.
        growth: when the backlog began to grow, and how many notifications had been added and delivered until then.
        lines: logs this; the listeners of an informer share it.
    """

    name: str
    ready: asyncio.Queue[Batch[T]] = msgspec.field(default_factory=asyncio.Queue)
    closed: bool = False
    waiting: int = 0
    left: Iterator[Any] = iter(())
    added: int = 0
    initial: int = 0
    limit: int = msgspec.field(default_factory=lambda: _BACKLOG)
    growth: tuple[float, int, int] | None = None
    lines: HandlerLines = msgspec.field(default_factory=HandlerLines)

    @property
    def behind(self) -> int:
        """How many notifications wait behind the current call."""
        return self.waiting + length_hint(self.left)

    @property
    def calls(self) -> int:
        """How many notifications have been delivered, the one of the current call included."""
        return self.added - self.behind

    def add(self, batch: Batch[T]) -> None:
        """Enqueue a batch, unless the backlog is closed."""
        if self.closed:
            return
        self.ready.put_nowait(batch)
        self.added += batch.size
        self.waiting += batch.size
        self.initial += batch.initial
        if self.waiting >= self.limit + self.initial:
            # Not here: a failure of the log must not look like one of `add`, after which the batch is added again.
            asyncio.get_running_loop().call_soon(self._check_growth)

    def begin(self, batch: Batch[T]) -> Iterable[Notification[T]]:
        """Begin a batch from `ready`, and return its notifications. They are read once."""
        self.waiting -= batch.size
        notifications = iter(batch.notifications)
        self.left = batch.source or notifications
        return notifications

    def pass_over(self) -> None:
        """Drop an object of the initial list from the counts."""
        self.added -= 1
        self.initial -= 1

    def close(self) -> None:
        """Drop everything behind the current call: queued objects must not live as long as the registration."""
        self.closed = True
        self.added -= self.behind
        self.waiting = 0
        self.left = iter(())
        self.ready = asyncio.Queue()

    def _check_growth(self) -> None:
        """Log the backlog if it has lasted a while. Each call may be quick. The initial list does not count."""
        loop = asyncio.get_running_loop()
        waiting = self.behind - self.initial
        if waiting < self.limit:
            return
        if self.growth is None:
            self.growth = loop.time(), self.added, self.calls
            loop.call_later(1.1 * _PATIENCE, self._check_growth)  # timers may be early
        began, added, calls = self.growth
        if (seconds := loop.time() - began) < _PATIENCE:
            return
        self.limit = 2 * waiting
        self.lines.warning(
            "fall behind",
            "%s falls behind: %d notifications are pending; in the last %.0f s, %.0f arrived and %.0f were delivered "
            "per second. Make the handler faster, or merge the changes of an object with CoalescingHandler",
            *(self.name, waiting, seconds, (self.added - added) / seconds, (self.calls - calls) / seconds),
        )

    def end_growth(self) -> None:
        """Log that nothing waits any more, if the backlog has been logged."""
        if self.limit > _BACKLOG and self.growth is not None:
            seconds = asyncio.get_running_loop().time() - self.growth[0]
            self.lines.warning("have caught up", "%s has caught up after %.0f s", self.name, seconds)
        self.limit = _BACKLOG
        self.growth = None
