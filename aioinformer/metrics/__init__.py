"""Metrics: the protocols, the statistics, and the names of informers.

An informer, a queue, a manager, an elector or the requests of a transport register with a `MetricsProvider`, which
reads their statistics when it needs them, usually once a scrape. Between reads, counters change once a batch, list,
watch, run or request. So metrics cost next to nothing.

`aioinformer.prometheus` has a provider for Prometheus. A provider for another system is a class with one method.
"""

from aioinformer.exports import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
