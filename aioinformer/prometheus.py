"""Metrics for Prometheus, with the names of client-go and controller-runtime. The extra is `aioinformer[prometheus]`.

    metrics = PrometheusMetrics()
    factory = SharedInformerFactory(transport, metrics=metrics, name="shop")
    queue = RateLimitingQueue(name="orders", metrics=metrics)

Statistics are read when Prometheus scrapes. Each series describes one informer, queue, controller, manager, elector or
server. Its labels are names that the program chose, the resource, the part of the collection that the informer watches,
and words of this package. No label and no value contains content of objects.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, SummaryMetricFamily
from prometheus_client.registry import Collector

from aioinformer.errors import UsageError
from aioinformer.metrics import (
    ControllerStatistics,
    ElectorStatistics,
    InformerStatistics,
    ManagerStatistics,
    QueueStatistics,
    RequestStatistics,
    RingStatistics,
)
from aioinformer.reflector.state import Phase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prometheus_client.core import Metric
    from prometheus_client.registry import CollectorRegistry

    from aioinformer.metrics import Durations, MetricsSource, Statistics

#: The scope comes last: a series without a scope does not have the label.
_INFORMER: Final = ("name", "group", "version", "resource", "scope")
_PHASE: Final = (*_INFORMER[:4], "phase", "scope")
_REASON: Final = (*_INFORMER[:4], "reason", "scope")
_NAME: Final = ("name",)
_RING: Final = ("name", "member")
_CONTROLLER: Final = ("controller",)
#: The phases of a controller; see `ControllerSnapshot`.
_PHASES: Final = ("syncing", "standby", "catching up", "working", "stopping", "failed")
#: Results of attempts under the names of controller-runtime; the others are those of `ControllerSnapshot`.
_RESULTS: Final = {"again": "requeue_after"}


class PrometheusMetrics(Collector):
    """A `MetricsProvider` that exports informers, queues, managers, electors and requests to a Prometheus registry.

    It refers to them weakly. A queue that was shut down, an informer whose identity was released, and a manager or an
    elector that has ended leave their names to others; only the metrics of such a queue are still exported.

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
            UsageError: another source of the same kind and name is exported.
        """
        numbers = source.statistics()
        labels = (type(numbers).__name__, *_labels(numbers))
        known = self._sources.get(labels)
        other = known() if known is not None else None
        if other is not None and other is not source and not _has_ended(other.statistics()):
            raise UsageError(f"name={labels[1]!r} is in use: there are metrics of this name already; choose another")

        def forget(gone: ref[MetricsSource]) -> None:
            if self._sources.get(labels) is gone:
                del self._sources[labels]

        self._sources[labels] = ref(source, forget)

    def describe(self) -> Iterator[Metric]:
        """Yield the metrics without values."""
        for metrics in _METRICS.values():
            yield from metrics([])

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics with their current values."""
        found: dict[type, list[Any]] = {kind: [] for kind in _METRICS}
        for reference in tuple(self._sources.values()):
            source = reference()
            numbers = source.statistics() if source is not None else None
            if numbers is not None and (isinstance(numbers, QueueStatistics) or not _has_ended(numbers)):
                found[type(numbers)].append(numbers)
        found[ControllerStatistics] = [each for manager in found[ManagerStatistics] for each in manager.controllers]
        for kind, metrics in _METRICS.items():
            yield from metrics(found[kind])


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
    stale = GaugeMetricFamily(
        "informer_stale_seconds",
        "Seconds since the cache ceased to follow the server; 0 while it does.",
        labels=_INFORMER,
    )
    longest = GaugeMetricFamily(
        "informer_longest_running_handler_seconds",
        "The longest time since the call of a handler began that has not returned.",
        labels=_INFORMER,
    )
    relists = CounterMetricFamily("reflector_relists", "Lists that became necessary, by reason.", labels=_REASON)
    for each in informers:
        labels = _labels(each)
        place, scope = labels[:4], labels[4:]
        healthy.add_metric(labels, each.healthy)
        stale.add_metric(labels, each.stale)
        longest.add_metric(labels, each.longest_call)
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
        *(healthy, phase, age, stale, errors, longest, undecodable, skipped),
        *(objects, version, queued, pending, processing),
        *(lists, list_duration, listed, relists, watches, short, watch_duration, watched),
    ]


def _queue_metrics(queues: Sequence[QueueStatistics]) -> list[Metric]:
    depth = GaugeMetricFamily("workqueue_depth", "Items that wait for a worker.", labels=_NAME)
    adds = CounterMetricFamily("workqueue_adds", "Items added.", labels=_NAME)
    retries = CounterMetricFamily("workqueue_retries", "Items added with a delay.", labels=_NAME)
    waited = HistogramMetricFamily(
        "workqueue_queue_duration_seconds", "Durations for which items wait for a worker.", labels=_NAME
    )
    worked = HistogramMetricFamily(
        "workqueue_work_duration_seconds", "Durations for which workers process an item.", labels=_NAME
    )
    unfinished = GaugeMetricFamily(
        "workqueue_unfinished_work_seconds", "Sum of the times since each worker got its item.", labels=_NAME
    )
    longest = GaugeMetricFamily(
        "workqueue_longest_running_processor_seconds",
        "The longest time since a worker got its item.",
        labels=_NAME,
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


def _controller_metrics(controllers: Sequence[ControllerStatistics]) -> list[Metric]:
    gauge, counter = partial(GaugeMetricFamily, labels=_CONTROLLER), partial(CounterMetricFamily, labels=_CONTROLLER)
    histogram = partial(HistogramMetricFamily, labels=_CONTROLLER)
    by_result, by_phase, by_reason, by_input = ((*_CONTROLLER, each) for each in ("result", "phase", "reason", "input"))
    prefix = "controller_runtime_"
    results = counter(f"{prefix}reconcile", "Attempts, by result.", labels=by_result)
    errors = counter(f"{prefix}reconcile_errors", "Attempts that ended with an error or the timeout.")
    worked = histogram(f"{prefix}reconcile_time_seconds", "Durations of attempts.")
    active = gauge(f"{prefix}active_workers", "Attempts that run.")
    most = gauge(f"{prefix}max_concurrent_reconciles", "Workers of the controller.")
    phase = gauge("controller_phase", "1 for the current phase of the controller, else 0.", labels=by_phase)
    answered = histogram("controller_change_to_end_seconds", "From a change to the end of the run that answers it.")
    parked = gauge(
        "controller_parked_keys", "Keys that wait for a change, by the kind of the reason.", labels=by_reason
    )
    failing = gauge("controller_failing_keys", "Keys whose last attempt did not succeed.")
    oldest = gauge("controller_oldest_key_seconds", "The longest time for which a ready key waits for a worker.")
    loops = counter("controller_self_caused_runs", "Runs that the writes of the runs before have caused.")
    writes = gauge("controller_own_writes", "Keys with writes that the caches may not show yet.")
    waits = histogram("controller_own_write_wait_seconds", "Durations for which keys wait for their own writes.")
    inputs = counter("controller_input_errors", "Exceptions of the functions of an input.", labels=by_input)
    lost = counter("controller_lost_changes", "Objects for whose changes no keys were found.", labels=by_input)
    for each in controllers:
        labels = (each.name,)
        for result, count in {"success": 0, "error": 0, **each.results}.items():
            results.add_metric((each.name, _RESULTS.get(result, result)), count)
        errors.add_metric(labels, each.results.get("error", 0) + each.results.get("timeout", 0))
        _add(worked, labels, each.worked)
        active.add_metric(labels, each.active)
        most.add_metric(labels, each.workers)
        for known in _PHASES:
            phase.add_metric((each.name, known), known == each.phase)
        _add(answered, labels, each.answered)
        for kind in ("result", "terminal", "attempts", "error"):
            parked.add_metric((each.name, kind), each.parked.get(kind, 0))
        failing.add_metric(labels, each.failing)
        oldest.add_metric(labels, each.oldest)
        loops.add_metric(labels, each.loops)
        writes.add_metric(labels, each.own_writes)
        _add(waits, labels, each.write_waits)
        for name, count in each.input_errors.items():
            inputs.add_metric((each.name, name), count)
        for name, count in each.lost_changes.items():
            lost.add_metric((each.name, name), count)
    return [
        *(results, errors, worked, active, most, phase, answered, parked),
        *(failing, oldest, loops, writes, waits, inputs, lost),
    ]


def _manager_metrics(managers: Sequence[ManagerStatistics]) -> list[Metric]:
    ready = GaugeMetricFamily("manager_ready", "Whether the manager passes its readiness probe.", labels=("manager",))
    for each in managers:
        ready.add_metric((each.name,), each.ready)
    return [ready]


def _elector_metrics(electors: Sequence[ElectorStatistics]) -> list[Metric]:
    leading = GaugeMetricFamily(
        "leader_election_master_status", "Whether this process leads, by namespace and name of the Lease.", labels=_NAME
    )
    slow = CounterMetricFamily("leader_election_slowpath", "Renewals that needed more than one request.", labels=_NAME)
    for each in electors:
        leading.add_metric((each.name,), each.leading)
        slow.add_metric((each.name,), each.slow_paths)
    return [leading, slow]


def _request_metrics(servers: Sequence[RequestStatistics]) -> list[Metric]:
    answers = CounterMetricFamily(
        "rest_client_requests", "Requests, by status, method and server.", labels=("code", "method", "host")
    )
    durations = HistogramMetricFamily(
        "rest_client_request_duration_seconds",
        "Durations from sending a request to the head of its answer; without watches.",
        labels=("verb", "host"),
    )
    for each in servers:
        for (method, code), count in each.answers.items():
            answers.add_metric((code, method, each.host), count)
        for method, measured in each.durations.items():
            _add(durations, (method, each.host), measured)
    return [answers, durations]


#: What makes the metrics of each kind of statistics.
_METRICS: Final[dict[type, Callable[[Sequence[Any]], list[Metric]]]] = {
    InformerStatistics: _informer_metrics,
    QueueStatistics: _queue_metrics,
    RingStatistics: _ring_metrics,
    ManagerStatistics: _manager_metrics,
    ControllerStatistics: _controller_metrics,
    ElectorStatistics: _elector_metrics,
    RequestStatistics: _request_metrics,
}


def _add(histogram: HistogramMetricFamily, labels: tuple[str, ...], durations: Durations) -> None:
    counts = [(str(bound), float(count)) for bound, count in zip(durations.bounds, durations.buckets, strict=True)]
    histogram.add_metric(labels, [*counts, ("+Inf", float(durations.count))], durations.total)


def _labels(numbers: Statistics) -> tuple[str, ...]:
    if isinstance(numbers, RequestStatistics):
        return (numbers.host,)
    if isinstance(numbers, RingStatistics):
        return (numbers.name, numbers.member)
    if not isinstance(numbers, InformerStatistics):
        return (numbers.name,)
    identity, resource = numbers.identity, numbers.identity.resource
    labels = (identity.name, resource.group, resource.version, resource.plural)
    return (*labels, identity.scope) if identity.scope else labels


def _has_ended(numbers: Statistics) -> bool:
    if isinstance(numbers, (RequestStatistics, RingStatistics)):
        return False
    if isinstance(numbers, QueueStatistics):
        return numbers.shutting_down
    return numbers.ended if not isinstance(numbers, InformerStatistics) else not numbers.identity.reserved
