"""Metrics: the protocols, the statistics, and the names of informers.

An informer, a queue, a manager, an elector or the requests of a transport register with a `MetricsProvider`, which
reads their statistics when it needs them, usually once a scrape. Between reads, counters change once a batch, list,
watch, run or request. So metrics cost next to nothing.

`aioinformer.prometheus` has a provider for Prometheus. A provider for another system is a class with one method.

To add a metric of an informer:

1. Count in `InformerCounters` (in `metrics.counters`), unless the number can be read when it is needed, such as the
   length of the cache. The place for answers of the server is `ListWatchRecorder.record_answer` (in
   `reflector.recorder`), which gets each answer before the protocol does. The place for bytes is `Responses.read` (in
   `reflector.response_reader`), where each chunk of a body arrives: `Reflector` would pass it the counters, as it does
   with the recorder. Count once a batch, not once an event. An informer without metrics has no counters.
2. Add a field with a default to `InformerStatistics` (in `metrics.statistics`), and its line to the docstring. This
   changes a public signature: add a line to the changelog, see docs/contributing.md#signatures.
3. Fill the field in `ObservedInformer.statistics` (in `informer.observed`).
4. Add a line to `_METRICS` in `prometheus.py`; the rules for such a line are above it. A mapping whose keys are known
   in advance begins with 0 for each of them: see `_VALUES`.
5. Add a row to the table in docs/metrics.md.
6. Add a test of the count to tests/unit/informer/test_metrics.py, on the level of a scrape.

For a metric of a queue, a controller, an elector, a ring or requests, the steps are the same with the counters and
the `statistics` of that object. Alerts and panels of the dashboard are optional: see `cli.controllers.dashboards`.
"""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
