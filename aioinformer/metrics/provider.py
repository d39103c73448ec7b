"""The protocols between what has metrics and what exports them."""

from __future__ import annotations

from typing import Protocol

from aioinformer.metrics.statistics import Statistics


class MetricsProvider(Protocol):
    """Collects the metrics of informers, work queues, managers, electors and requests."""

    def register(self, source: MetricsSource) -> None:
        """Add a source, and read its statistics whenever metrics are needed.

        The provider must refer to the source weakly. Otherwise an informer or queue that has ended stays in memory.
        There may be more kinds of statistics in later versions: ignore those that you do not know.

        A source may be registered more than once, which has no further effect.

        Raises:
            UsageError: another source has the same name, and their metrics would mix.
        """


class MetricsSource(Protocol):
    """An informer, a work queue, a manager, an elector, the membership in a ring, or the requests to a server."""

    def statistics(self) -> Statistics:
        """Return its current numbers. Callable from any thread."""
