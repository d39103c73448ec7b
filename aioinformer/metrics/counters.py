"""The counters behind the statistics. They change once a batch, list, watch, run or request."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from aioinformer.logs import get_logger
from aioinformer.metrics.statistics import Durations, RequestStatistics, WebhookStatistics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aioinformer.metrics.provider import MetricsProvider

_log = get_logger("aioinformer.metrics")

#: Upper bounds in seconds, those of client-go: 10 ns to 1000 s.
DURATION_BOUNDS: Final = tuple(10.0**exponent for exponent in range(-8, 4))
#: Upper bounds in seconds, those of client-go: 1 ms to 10 s.
PROCESSING_BOUNDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
#: Upper bounds in seconds, those of controller-runtime: 5 ms to a minute.
RUN_BOUNDS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0),
    *(30.0, 40.0, 50.0, 60.0),
)
#: Both in one histogram, so that a run is counted once for two metrics.
WORK_BOUNDS: Final = tuple(sorted({*DURATION_BOUNDS, *RUN_BOUNDS}))
#: Upper bounds in seconds: how late timers are.
LATENESS_BOUNDS: Final = PROCESSING_BOUNDS
#: Upper bounds in seconds: from a change to the end of its run, or to the own writes in the caches.
DELAY_BOUNDS: Final = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 3600.0)
#: Upper bounds in seconds, those of client-go: 5 ms to a minute.
ANSWER_BOUNDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
#: Upper bounds in seconds, those of controller-runtime: 5 ms to 10 s.
WEBHOOK_BOUNDS: Final = PROCESSING_BOUNDS[1:]
#: Upper bounds in seconds: lists take from milliseconds to minutes, and watches last as long as the server allows.
REQUEST_BOUNDS: Final = (0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0)
#: The counters of requests by provider and server: transports for the same server share them, and so do providers of
#: one registry of Prometheus, which export the same sources.
_requests: WeakValueDictionary[tuple[int, str], RequestCounters] = WeakValueDictionary()


class InformerCounters:
    """The counters of one informer."""

    __slots__ = ("listed", "lists", "processing", "relists", "short_watches", "watched", "watches")

    def __init__(self) -> None:
        self.processing = DurationCounter(PROCESSING_BOUNDS)
        self.lists = DurationCounter(REQUEST_BOUNDS)
        self.listed = 0
        self.watches = DurationCounter(REQUEST_BOUNDS)
        self.short_watches = 0
        self.watched = 0
        self.relists: Counter[str] = Counter()  # by reason


class DurationCounter:
    """Counts durations into a histogram.

    Args:
        bounds: upper bounds in seconds, the lowest first.
    """

    __slots__ = ("_bounds", "_counts", "_total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._total = 0.0

    def observe(self, seconds: float) -> None:
        """Count one duration."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._total += seconds

    def snapshot(self) -> Durations:
        """Return the histogram as it is now."""
        below = tuple(accumulate(self._counts))
        return Durations(below[-1], self._total, below[:-1], self._bounds)


class WebhookCounters:
    """Counts the requests to the admission functions at one path.

    Attributes:
        failures: answers without a decision since the last one with a decision.
        failed_at: when the last of them was, by the event loop's clock.
        error: why.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.failures = 0
        self.failed_at = 0.0
        self.error = ""
        self._answers = {"200": 0, "500": 0}
        self._in_flight = 0
        self._panics = 0
        self._latency = DurationCounter(WEBHOOK_BOUNDS)

    def begin(self) -> None:
        """Count a request that has come."""
        self._in_flight += 1

    def end(self, status: int, seconds: float) -> None:
        """Count its answer."""
        self._in_flight -= 1
        self._answers[str(status)] = self._answers.get(str(status), 0) + 1
        self._latency.observe(seconds)
        if status == 200:
            self.failures = 0

    def fail(self, error: str, now: float, *, panics: bool) -> None:
        """Count a request that gets no decision.

        Args:
            now: by the event loop's clock.
            panics: whether a function has raised an exception.
        """
        self.failures += 1
        self.failed_at = now
        self.error = error
        self._panics += panics

    def statistics(self) -> WebhookStatistics:
        """Return the numbers as they are now."""
        latency = self._latency.snapshot()
        return WebhookStatistics(self.path, self._answers.copy(), self._in_flight, self._panics, latency)


class RequestCounters:
    """Counts the requests to one server."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._answers: Counter[tuple[str, str]] = Counter()
        self._durations: dict[str, DurationCounter] = {}

    def count(self, method: str, code: str, seconds: float | None) -> None:
        """Count a request: its method, the status of the answer, and the time to its head, None for a watch."""
        self._answers[method, code] += 1
        if seconds is not None:
            if (durations := self._durations.get(method)) is None:
                durations = DurationCounter(ANSWER_BOUNDS)
                self._durations[method] = durations
            durations.observe(seconds)

    def statistics(self) -> RequestStatistics:
        """Return the numbers. Any thread may call this."""
        durations = {method: each.snapshot() for method, each in self._durations.copy().items()}
        return RequestStatistics(self._host, self._answers.copy(), durations)


def count_requests(transport: object, metrics: MetricsProvider) -> None:
    """Let a transport count its requests. Transports of the user do not count."""
    count = getattr(transport, "count_requests", None)
    if count is None:
        return

    def counters(host: str) -> RequestCounters:
        key = (id(getattr(metrics, "registry", metrics)), host)
        if (known := _requests.get(key)) is None:
            known = RequestCounters(host)
            _requests[key] = known
        return known

    try:
        metrics.register(count(counters))
    except Exception:
        _log.exception("the metrics provider raised, so metrics do not show the requests of %r", transport)
