"""The account of a reflector: how long lists and watches take, what they bring, and which are slow (REF-25, REF-35).

It is told what the reflector does and hears, and has no say in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aioinformer.steps import Accepted, Ended, Failed, Idled, Pending, Watched
from aioinformer.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.informer_statistics import InformerCounters
    from aioinformer.steps import Answer, Send

#: Lists that take longer are written of in the log, in seconds.
SLOW_LIST: Final = 10.0
#: A watch that ends sooner, and brings nothing, is a short one.
_SHORT_WATCH: Final = 1.0


class ListWatchAccount:
    """Keeps the account of one reflector.

    Args:
        name: of the reflector.
        clock: of the event loop.
        counters: counts there; None if nobody will ask.
    """

    def __init__(self, name: str, clock: Callable[[], float], counters: InformerCounters | None) -> None:
        self._name = name
        self._clock = clock
        self._counters = counters
        self._list: Trace | None = None
        self._asked_watch = False
        #: Why a list is necessary; "" while none is.
        self._needed = ""
        self._watch_since: float | None = None
        self._events = 0

    def sends(self, step: Send, reason: str = "first") -> None:
        """A request is about to be sent.

        Args:
            step: the request.
            reason: why the last list was necessary.
        """
        self._watch_over()
        self._asked_watch = step.options.watch
        if step.initial and self._needed != reason:
            self._needed = reason
            if self._counters is not None:
                self._counters.relists[reason] += 1
        if step.initial and self._list is None:
            kind = "streaming list" if step.options.watch else "list"
            self._list = Trace(f"{self._name}: {kind}", self._clock)
        elif step.initial and not step.options.continue_token:
            assert self._list is not None
            self._list.step("began anew")

    def hears(self, answer: Answer) -> None:
        """The server, or the clock, has answered."""
        match answer:
            case Watched(events) if self._watch_since is not None:
                self._events += len(events)
                if self._counters is not None:
                    self._counters.watched += len(events)
            case Accepted() | Pending() if self._asked_watch and self._list is None and self._watch_since is None:
                self._watch_since = self._clock()
            case Failed() | Ended():
                self._watch_over()
                self._list_failed()
            case Idled():  # which ends a list, but not a watch, unless another request follows
                self._list_failed()

    def listed(self, objects: int, *, streamed: bool) -> None:
        """A list is complete; if it was streamed, its stream is a watch from now on."""
        if self._list is not None:
            self._list.step(f"{objects} objects listed")
        if self._counters is not None:
            self._counters.listed += objects
        if streamed:
            self._watch_since = self._clock()

    def queued(self) -> None:
        """All of a list is in the queue."""
        self._needed = ""
        if self._list is not None:
            self._list.step("queued")
            self._list_over()

    def _list_failed(self) -> None:
        if self._list is not None:
            self._list.step("failed")
            self._list_over()

    def _list_over(self) -> None:
        if self._list is None:
            return
        self._list.log_if_long(SLOW_LIST)
        if self._counters is not None:
            self._counters.lists.observe(self._list.seconds)
        self._list = None

    def _watch_over(self) -> None:
        since, self._watch_since = self._watch_since, None
        events, self._events = self._events, 0
        if since is None or self._counters is None:
            return
        seconds = self._clock() - since
        self._counters.watches.observe(seconds)
        self._counters.short_watches += seconds < _SHORT_WATCH and not events
