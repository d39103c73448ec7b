"""Metrics for Prometheus, with client-go's metric names. Needs the extra `aioinformer[prometheus]`.

    metrics = PrometheusMetrics()
    factory = SharedInformerFactory(transport, metrics=metrics, name="shop")
    queue = RateLimitingQueue(name="orders", metrics=metrics)

Statistics are read when Prometheus scrapes. Each series describes one informer or queue. Its labels are the name that
the program chose, the resource, and the part of the collection that the informer watches. No label and no value
contains content of objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import ref

from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, SummaryMetricFamily
from prometheus_client.registry import Collector

from aioinformer.errors import UsageError
from aioinformer.metrics import QueueStatistics, RingStatistics
from aioinformer.reflector.state import Phase

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client.core import Metric
    from prometheus_client.registry import CollectorRegistry

    from aioinformer.metrics import Durations, InformerStatistics, MetricsSource

#: The scope comes last: a series without a scope does not have the label.
_INFORMER: Final = ("name", "group", "version", "resource", "scope")
_PHASE: Final = (*_INFORMER[:4], "phase", "scope")
_REASON: Final = (*_INFORMER[:4], "reason", "scope")
_QUEUE: Final = ("name",)
_RING: Final = ("name", "member")


class PrometheusMetrics(Collector):
    """A `MetricsProvider` that exports informers and work queues to a Prometheus registry.

    It refers to them weakly. A queue that was shut down, or an informer whose identity was released, leaves its name
    to others; the metrics of such an informer are no longer exported.

    Args:
        registry: the registry; by default that of the process.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self.registry = registry
        self._sources: dict[tuple[str, ...], ref[MetricsSource]] = {}  # by their labels
        registry.register(self)

    def register(self, source: MetricsSource) -> None:
        """Export the metrics of a source.

        Raises:
            UsageError: another source of the same name is exported.
        """
        labels = _labels(source.statistics())
        known = self._sources.get(labels)
        other = known() if known is not None else None
        if other is not None and other is not source and not _has_ended(other.statistics()):
            raise UsageError(f"name={labels[0]!r} is in use: there are metrics of this name already; choose another")

        def forget(gone: ref[MetricsSource]) -> None:
            if self._sources.get(labels) is gone:
                del self._sources[labels]

        self._sources[labels] = ref(source, forget)

    def describe(self) -> Iterator[Metric]:
        """Yield the metrics without values."""
        yield from _informer_metrics([])
        yield from _queue_metrics([])
        yield from _ring_metrics([])

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics with their current values."""
        informers: list[InformerStatistics] = []
        queues: list[QueueStatistics] = []
        rings: list[RingStatistics] = []
        for reference in tuple(self._sources.values()):
            source = reference()
            numbers = source.statistics() if source is not None else None
            if isinstance(numbers, QueueStatistics):
                queues.append(numbers)
            elif isinstance(numbers, RingStatistics):
                rings.append(numbers)
            elif numbers is not None and not _has_ended(numbers):
                informers.append(numbers)
        yield from _informer_metrics(informers)
        yield from _queue_metrics(queues)
        yield from _ring_metrics(rings)


def _informer_metrics(informers: Sequence[InformerStatistics]) -> list[Metric]:
    objects = GaugeMetricFamily("informer_store_items", "Objects in the cache.", labels=_INFORMER)
    version = GaugeMetricFamily(
        "informer_store_resource_version", "The last 15 digits of the resource version of the cache.", labels=_INFORMER
    )
    queued = GaugeMetricFamily(
        "informer_queued_items", "Deltas that wait between reflector and cache.", labels=_INFORMER
    )
    pending = GaugeMetricFamily(
        "informer_pending_notifications",
        "Notifications that wait for the slowest handler.",
        labels=_INFORMER,
    )
    processing = HistogramMetricFamily(
        "informer_processing_latency_seconds",
        "Durations of batches, from the queue into cache and notifications.",
        labels=_INFORMER,
    )
    lists = CounterMetricFamily("reflector_lists", "Lists that have ended, failures included.", labels=_INFORMER)
    list_duration = SummaryMetricFamily("reflector_list_duration_seconds", "Durations of lists.", labels=_INFORMER)
    listed = SummaryMetricFamily("reflector_items_per_list", "Objects in each list.", labels=_INFORMER)
    watches = CounterMetricFamily("reflector_watches", "Watches that have ended.", labels=_INFORMER)
    short = CounterMetricFamily(
        "reflector_short_watches", "Watches that ended within a second and without an event.", labels=_INFORMER
    )
    watch_duration = SummaryMetricFamily("reflector_watch_duration_seconds", "Durations of watches.", labels=_INFORMER)
    watched = SummaryMetricFamily("reflector_items_per_watch", "Events in each watch.", labels=_INFORMER)
    healthy = GaugeMetricFamily("informer_healthy", "Whether the cache follows the server.", labels=_INFORMER)
    phase = GaugeMetricFamily("informer_phase", "1 for the current phase of the informer, else 0.", labels=_PHASE)
    errors = CounterMetricFamily("informer_handler_errors", "Exceptions that handlers raised.", labels=_INFORMER)
    undecodable = GaugeMetricFamily(
        "informer_undecodable_objects",
        "Objects whose latest version cannot be decoded or converted.",
        labels=_INFORMER,
    )
    skipped = CounterMetricFamily(
        "informer_skipped_objects",
        "How often an object was skipped because it cannot be decoded or converted.",
        labels=_INFORMER,
    )
    age = GaugeMetricFamily(
        "informer_last_event_age_seconds", "Seconds since the server last sent anything.", labels=_INFORMER
    )
    relists = CounterMetricFamily("reflector_relists", "Lists that became necessary, by reason.", labels=_REASON)
    for each in informers:
        labels = _labels(each)
        place, scope = labels[:4], labels[4:]
        healthy.add_metric(labels, each.healthy)
        for known in Phase:
            phase.add_metric((*place, known, *scope), known == each.phase)
        errors.add_metric(labels, each.handler_errors)
        undecodable.add_metric(labels, each.undecodable)
        skipped.add_metric(labels, each.skipped)
        if each.last_event_age is not None:
            age.add_metric(labels, each.last_event_age)
        for reason, count in each.relists.items():
            relists.add_metric((*place, reason, *scope), count)
        objects.add_metric(labels, each.objects)
        queued.add_metric(labels, each.queued)
        pending.add_metric(labels, each.pending)
        if each.version_number is not None:
            version.add_metric(labels, each.version_number)
        _add(processing, labels, each.processing)
        lists.add_metric(labels, each.lists.count)
        list_duration.add_metric(labels, each.lists.count, each.lists.total)
        listed.add_metric(labels, each.lists.count, each.listed)
        watches.add_metric(labels, each.watches.count)
        short.add_metric(labels, each.short_watches)
        watch_duration.add_metric(labels, each.watches.count, each.watches.total)
        watched.add_metric(labels, each.watches.count, each.watched)
    return [
        *(healthy, phase, age, errors, undecodable, skipped),
        *(objects, version, queued, pending, processing),
        *(lists, list_duration, listed, relists, watches, short, watch_duration, watched),
    ]


def _queue_metrics(queues: Sequence[QueueStatistics]) -> list[Metric]:
    depth = GaugeMetricFamily("workqueue_depth", "Items that wait for a worker.", labels=_QUEUE)
    adds = CounterMetricFamily("workqueue_adds", "Items added.", labels=_QUEUE)
    retries = CounterMetricFamily("workqueue_retries", "Items added with a delay.", labels=_QUEUE)
    waited = HistogramMetricFamily(
        "workqueue_queue_duration_seconds", "Durations for which items wait for a worker.", labels=_QUEUE
    )
    worked = HistogramMetricFamily(
        "workqueue_work_duration_seconds", "Durations for which workers process an item.", labels=_QUEUE
    )
    unfinished = GaugeMetricFamily(
        "workqueue_unfinished_work_seconds", "Sum of the times since each worker got its item.", labels=_QUEUE
    )
    longest = GaugeMetricFamily(
        "workqueue_longest_running_processor_seconds",
        "The longest time since a worker got its item.",
        labels=_QUEUE,
    )
    for each in queues:
        labels = _labels(each)
        depth.add_metric(labels, each.depth)
        adds.add_metric(labels, each.adds)
        retries.add_metric(labels, each.retries)
        _add(waited, labels, each.waited)
        _add(worked, labels, each.worked)
        unfinished.add_metric(labels, each.unfinished_work)
        longest.add_metric(labels, each.longest_running)
    return [depth, adds, retries, waited, worked, unfinished, longest]


def _ring_metrics(rings: Sequence[RingStatistics]) -> list[Metric]:
    unowned = GaugeMetricFamily(
        "ring_unowned_slots_seconds",
        "For how long the slot that has waited longest has had no living owner; 0 for none.",
        labels=_RING,
    )
    owner = GaugeMetricFamily("ring_slot_owner", "1 for the owner of a slot.", labels=(*_RING, "slot", "owner"))
    for each in rings:
        labels = _labels(each)
        unowned.add_metric(labels, each.unowned)
        for slot, name in enumerate(each.owners):
            owner.add_metric((*labels, str(slot), name), 1)
    return [unowned, owner]


def _add(histogram: HistogramMetricFamily, labels: tuple[str, ...], durations: Durations) -> None:
    counts = [(str(bound), float(count)) for bound, count in zip(durations.bounds, durations.buckets, strict=True)]
    histogram.add_metric(labels, [*counts, ("+Inf", float(durations.count))], durations.total)


def _labels(numbers: InformerStatistics | QueueStatistics | RingStatistics) -> tuple[str, ...]:
    if isinstance(numbers, RingStatistics):
        return (numbers.name, numbers.member)
    if isinstance(numbers, QueueStatistics):
        return (numbers.name,)
    identity, resource = numbers.identity, numbers.identity.resource
    labels = (identity.name, resource.group, resource.version, resource.plural)
    return (*labels, identity.scope) if identity.scope else labels


def _has_ended(numbers: InformerStatistics | QueueStatistics | RingStatistics) -> bool:
    if isinstance(numbers, RingStatistics):
        return False
    if isinstance(numbers, QueueStatistics):
        return numbers.shutting_down
    return not numbers.identity.reserved
