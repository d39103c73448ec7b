"""Metrics for Prometheus, with the names of client-go and controller-runtime. The extra is `aioinformer[prometheus]`.

    metrics = PrometheusMetrics()
    factory = SharedInformerFactory(transport, metrics=metrics, name="shop")
    queue = RateLimitingQueue(name="orders", metrics=metrics)

Statistics are read when Prometheus scrapes. Each series describes one informer, queue, controller, manager, elector or
server. Its labels are names that the program chose, the resource, the part of the collection that the informer watches,
and words of this package. No label and no value contains content of objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary, ref

try:
    from prometheus_client import REGISTRY
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        Metric,
        SummaryMetricFamily,
    )
    from prometheus_client.registry import Collector, CollectorRegistry
except ModuleNotFoundError as error:
    remedy = "aioinformer.prometheus needs prometheus-client: pip install 'aioinformer[prometheus]'"
    raise ModuleNotFoundError(remedy, name=error.name) from None

from aioinformer.errors import UsageError
from aioinformer.exports import lazy_exports
from aioinformer.metrics.provider import MetricsSource
from aioinformer.metrics.statistics import (
    ControllerStatistics,
    ElectorStatistics,
    InformerStatistics,
    ManagerStatistics,
    QueueStatistics,
    RequestStatistics,
    RingStatistics,
    WebhookStatistics,
)
from aioinformer.reflector.protocol.state import RELIST_REASONS
from aioinformer.reflector.state import Phase

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aioinformer.metrics.statistics import Statistics

#: The phases of a controller; see `ControllerSnapshot`.
_PHASES: Final = ("syncing", "standby", "catching up", "working", "stopping", "failed")
#: Results of attempts under the names of controller-runtime; the others are those of `ControllerSnapshot`.
_RESULTS: Final = {"again": "requeue_after"}
#: What an attempt may end with. Counters begin with 0, since the first failure must be an increase.
_ALL_RESULTS: Final = (
    *("success", "requeue_after", "retry_after", "conflict", "error", "timeout"),
    *("stale", "waiting", "parked", "cancelled"),
)
#: The requests whose counters begin with 0: those that succeed, and those that alerts are about.
_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_CODES: Final = ("200", "401", "403", "409", "429", "500", "503", "<error>")
#: The labels of each kind of statistics. The scope of an informer comes last: without one, there is no such label.
_LABELS: Final[dict[type, tuple[str, ...]]] = {
    InformerStatistics: ("name", "group", "version", "resource", "scope"),
    QueueStatistics: ("name",),
    RingStatistics: ("name", "member"),
    ManagerStatistics: ("manager",),
    ControllerStatistics: ("manager", "controller"),
    WebhookStatistics: ("manager", "webhook"),
    ElectorStatistics: ("name",),
    RequestStatistics: ("host",),
}
#: Where further labels of a metric stand among these.
_INNER: Final = 4
#: For each kind of statistics, its metrics, one a line: `NAME[LABEL,LABEL] FAMILY VALUE HELP`.
#:
#: - NAME is that of the family. The client library appends `_total` to counters; histograms have `_bucket`, `_count`
#:   and `_sum`, summaries `_count` and `_sum`. The labels in brackets are added to those of `_LABELS`.
#: - FAMILY is a key of `_FAMILIES`.
#: - VALUE is an attribute of the statistics, such as `objects` or `lists.count`, or a key of `_VALUES`, whose function
#:   computes the value from the statistics. A gauge or a counter needs a number or a bool, and a histogram needs
#:   `Durations`. A summary needs two attributes with a comma between them: the count and the sum. If the value is None,
#:   there is no series. With labels in brackets, VALUE is a mapping of such values by the label; with several labels,
#:   its keys are tuples in the order of the brackets.
#: - HELP is the rest of the line. NAME, FAMILY and VALUE contain no space.
_METRICS: Final[dict[type, str]] = {
    InformerStatistics: """
        informer_healthy gauge healthy Whether the cache follows the server.
        informer_phase[phase] gauge informer_phases 1 for the current phase of the informer, else 0.
        informer_last_event_age_seconds gauge last_event_age Seconds since the server last sent anything.
        informer_stale_seconds gauge stale Seconds since the cache ceased to follow the server; 0 while it does.
        informer_handler_errors counter handler_errors Exceptions that handlers raised.
        informer_longest_running_handler_seconds gauge longest_call Time since the oldest call that has not returned.
        informer_undecodable_objects gauge undecodable Objects whose latest version cannot be decoded or converted.
        informer_skipped_objects counter skipped How often an object was skipped that cannot be decoded or converted.
        informer_store_items gauge objects Objects in the cache.
        informer_store_resource_version gauge version_number The last 15 digits of the resource version of the cache.
        informer_queued_items gauge queued Deltas that wait between reflector and cache.
        informer_pending_notifications gauge pending Notifications that wait for the slowest handler.
        informer_processing_latency_seconds histogram processing Durations of batches into cache and notifications.
        reflector_lists counter lists.count Lists that have ended, failures included.
        reflector_list_duration_seconds summary lists.count,lists.total Durations of lists.
        reflector_items_per_list summary lists.count,listed Objects in each list.
        reflector_relists[reason] counter relists_by_reason Lists that became necessary, by reason.
        reflector_watches counter watches.count Watches that have ended.
        reflector_short_watches counter short_watches Watches that ended within a second and without an event.
        reflector_watch_duration_seconds summary watches.count,watches.total Durations of watches.
        reflector_items_per_watch summary watches.count,watched Events so far, over the watches that have ended.
    """,
    QueueStatistics: """
        workqueue_depth gauge depth Items that wait for a worker.
        workqueue_adds counter adds Items added.
        workqueue_retries counter retries Items added with a delay.
        workqueue_queue_duration_seconds histogram waited Durations for which items wait for a worker.
        workqueue_work_duration_seconds histogram worked Durations for which workers process an item.
        workqueue_unfinished_work_seconds gauge unfinished_work Sum of the times since each worker got its item.
        workqueue_longest_running_processor_seconds gauge longest_running The longest time since a worker got its item.
    """,
    RingStatistics: """
        ring_unowned_slots_seconds gauge unowned For how long the slot that has waited longest has had no living owner.
        ring_slot_owner[slot,owner] gauge slots 1 for the owner of a slot.
    """,
    ManagerStatistics: """
        manager_ready gauge ready Whether all checks of the manager's readiness pass.
        manager_event_loop_delay_seconds histogram loop_delay How late a timer of each second is.
    """,
    ControllerStatistics: """
        controller_runtime_reconcile[result] counter named_results Attempts, by result.
        controller_runtime_reconcile_errors counter errors Attempts that ended with an error or the timeout.
        controller_runtime_reconcile_time_seconds histogram worked Durations of attempts.
        controller_runtime_active_workers gauge active Attempts that run.
        controller_runtime_max_concurrent_reconciles gauge workers Workers of the controller.
        controller_phase[phase] gauge phases 1 for the current phase of the controller, else 0.
        controller_change_to_end_seconds histogram answered From a change to the end of the run that answers it.
        controller_parked_keys[reason] gauge parked_keys Keys that an error has parked, by the kind of the reason.
        controller_waiting_keys gauge waiting Keys that wait for a change because their reconciler has asked for it.
        controller_failing_keys gauge failing Keys whose last attempt did not succeed.
        controller_longest_failure_seconds gauge longest_failure The longest time without a success of a key that fails.
        controller_oldest_key_seconds gauge oldest The longest time for which a ready key waits for a worker.
        controller_self_caused_runs counter loops Runs that the writes of the runs before have caused.
        controller_braked_keys gauge braked Keys that run every 1 to 30 s, because their own writes cause their runs.
        controller_own_writes gauge own_writes Keys with writes that the caches may not show yet.
        controller_own_write_wait_seconds histogram write_waits Durations for which keys wait for their own writes.
        controller_longest_own_write_wait_seconds gauge longest_write_wait The longest of these waits that lasts.
        controller_input_errors[input] counter input_errors Exceptions of the functions of an input.
        controller_lost_changes[input] counter lost_changes Objects for whose changes no keys were found.
    """,
    WebhookStatistics: """
        controller_runtime_webhook_requests[code] counter answers Reviews, by HTTP status; a failed conversion is 500.
        controller_runtime_webhook_latency_seconds histogram latency Durations of reviews.
        controller_runtime_webhook_requests_in_flight gauge in_flight Reviews that are not answered yet.
        controller_runtime_webhook_panics counter panics Exceptions of admission functions that are no refusal.
    """,
    ElectorStatistics: """
        leader_election_master_status gauge leading Whether this process leads, by namespace and name of the Lease.
        leader_election_slowpath counter slow_paths Renewals that needed more than one request.
        leader_election_unheld_seconds gauge unheld For how long the Lease had had no holder when it was last read.
    """,
    RequestStatistics: """
        rest_client_requests[method,code] counter answers_by_code Requests, by status, method and server.
        rest_client_request_duration_seconds[verb] histogram durations Times until the head of the answer; no watches.
    """,
}
_VALUES: Final[dict[str, Callable[[Any], Any]]] = {
    "informer_phases": lambda each: {phase: phase == each.phase for phase in Phase},
    "slots": lambda each: {(str(slot), owner): 1 for slot, owner in enumerate(each.owners)},
    "named_results": lambda each: {
        **dict.fromkeys(_ALL_RESULTS, 0),
        **{_RESULTS.get(name, name): count for name, count in each.results.items()},
    },
    "relists_by_reason": lambda each: {**dict.fromkeys(RELIST_REASONS, 0), **each.relists},
    "answers_by_code": lambda each: {**dict.fromkeys(product(_METHODS, _CODES), 0), **each.answers},
    "errors": lambda each: each.results.get("error", 0) + each.results.get("timeout", 0),
    "phases": lambda each: {phase: phase == each.phase for phase in _PHASES},
    "parked_keys": lambda each: {**dict.fromkeys(("terminal", "attempts", "error"), 0), **each.parked},
}
_FAMILIES: Final[dict[str, type[Any]]] = {
    "gauge": GaugeMetricFamily,
    "counter": CounterMetricFamily,
    "histogram": HistogramMetricFamily,
    "summary": SummaryMetricFamily,
}


#: The provider of each registry that it collects.
_exporting: WeakKeyDictionary[CollectorRegistry, ref[PrometheusMetrics]] = WeakKeyDictionary()


class PrometheusMetrics(Collector):
    """A `MetricsProvider` that exports informers, queues, managers, electors and requests to a Prometheus registry.

    It refers to them weakly. A queue that was shut down, an informer whose identity was released, and a manager or an
    elector that has ended leave their names to others; only the metrics of such a queue are still exported.

    Several providers of one registry export the same sources: a program may make one beside that of `Manager.main`.

    Args:
        registry: the registry; by default that of the process.

    Raises:
        ValueError: the registry has metrics of these names from a collector of another class.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self.registry = registry
        self._sources: dict[tuple[str, ...], ref[MetricsSource]] = {}  # by their labels
        try:
            registry.register(self)
        except ValueError:
            first = _exporting.get(registry)
            if (provider := None if first is None else first()) is None:
                raise
            self._sources = provider._sources
        else:
            _exporting[registry] = ref(self)

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
        for kind in _METRICS:
            yield from _metrics(kind, ())

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics with their current values."""
        found: dict[type, list[Any]] = {kind: [] for kind in _METRICS}
        for reference in tuple(self._sources.values()):
            source = reference()
            numbers = source.statistics() if source is not None else None
            if numbers is not None and (isinstance(numbers, QueueStatistics) or not _has_ended(numbers)):
                found[type(numbers)].append(numbers)
        found[ControllerStatistics] = [each for manager in found[ManagerStatistics] for each in manager.controllers]
        found[WebhookStatistics] = [each for manager in found[ManagerStatistics] for each in manager.webhooks]
        for kind, sources in found.items():
            yield from _metrics(kind, sources)


def _metrics(kind: type, sources: Sequence[Any]) -> Iterator[Metric]:
    """Yield the metrics of a kind of statistics, with the values of some sources."""
    for row in _METRICS[kind].strip().splitlines():
        name, family, value, text = row.split(maxsplit=3)
        name, _, further = name.rstrip("]").partition("[")
        names = _LABELS[kind]
        more = further.split(",") if further else []
        metric = _FAMILIES[family](name, text, labels=(*names[:_INNER], *more, *names[_INNER:]))
        read: Callable[[Any], Any] = _VALUES.get(value) or attrgetter(*value.split(","))
        for each in sources:
            labels = _labels(each)
            for inner, number in read(each).items() if more else [((), read(each))]:
                inner = (inner,) if isinstance(inner, str) else inner
                _add(metric, (*labels[:_INNER], *inner, *labels[_INNER:]), number)
        yield metric


def _add(metric: Any, labels: tuple[str, ...], value: Any) -> None:
    if value is None:
        return
    if isinstance(metric, HistogramMetricFamily):
        counts = [(str(bound), float(count)) for bound, count in zip(value.bounds, value.buckets, strict=True)]
        metric.add_metric(labels, [*counts, ("+Inf", float(value.count))], value.total)
    elif isinstance(metric, SummaryMetricFamily):
        metric.add_metric(labels, *value)
    else:
        metric.add_metric(labels, value)


def _labels(numbers: Statistics) -> tuple[str, ...]:
    if isinstance(numbers, RequestStatistics):
        return (numbers.host,)
    if isinstance(numbers, RingStatistics):
        return (numbers.name, numbers.member)
    if isinstance(numbers, ControllerStatistics | WebhookStatistics):
        return (numbers.manager, numbers.name)
    if not isinstance(numbers, InformerStatistics):
        return (numbers.name,)
    identity = numbers.identity
    resource = numbers.identity.resource
    labels = (identity.name, resource.group, resource.version, resource.plural)
    return (*labels, identity.scope) if identity.scope else labels


def _has_ended(numbers: Statistics) -> bool:
    if isinstance(numbers, RequestStatistics):
        return False
    if isinstance(numbers, QueueStatistics):
        return numbers.shutting_down
    if not isinstance(numbers, InformerStatistics):
        return numbers.ended
    return not numbers.identity.reserved


if not TYPE_CHECKING:  # type checkers read the module itself
    __getattr__, __dir__ = lazy_exports(__name__)
