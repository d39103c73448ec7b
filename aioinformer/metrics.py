"""Where informers and work queues announce that they can be asked for their numbers.

Nobody is told of each event: whoever keeps metrics asks for them when it is asked itself, once for each scrape. What is
counted in between is counted once for each batch, list and watch, and only if somebody may ask. So a metric costs
nothing where there is none, and next to nothing where there are.

`aioinformer.prometheus` has a provider; one for anything else is a class with one method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from aioinformer.informer_statistics import InformerStatistics
    from aioinformer.queue_statistics import QueueStatistics


class MetricsSource(Protocol):
    """An informer or a work queue."""

    def statistics(self) -> InformerStatistics | QueueStatistics:
        """Its numbers now; may be called from any thread."""
        ...


class MetricsProvider(Protocol):
    """Keeps metrics."""

    def register(self, source: MetricsSource) -> None:
        """There is one more to ask. To be held weakly, or what has ended never leaves memory.

        Raises:
            UsageError: what it tells of itself would mix with what another one does.
        """
        ...
