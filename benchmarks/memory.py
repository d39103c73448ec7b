"""Measure the memory of a cached object in each storage tier, and the cost of reading it.

The memory is the growth of resident memory by the list, after a garbage collection and after returning unused memory to
the system. The pods have 5.8 KB of JSON each. A read accesses the spec, or a label if there is no spec: first while the
caller retains no view of the object, then while it does. Reading metadata is measured separately.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from clients import measure_floor, measure_informer, microseconds
from harness import Offer, Question, Requirement, run
from pods import encoded

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness import Figures

    from aioinformer import SharedIndexInformer

_PODS = 20_000
_FIELDS = ["spec.nodeName", "status.phase"]


def _label(pod: Any) -> Any:
    return pod.metadata.labels["app"]


def _node(pod: Any) -> Any:
    return pod["spec"]["nodeName"] if isinstance(pod, dict) else pod.spec.node_name


def _name(pod: Any) -> Any:
    return pod["metadata"]["name"] if isinstance(pod, dict) else pod.metadata.name


def _reads(informer: SharedIndexInformer[Any], look: Callable[[Any], Any]) -> Figures:
    indexer = informer.get_indexer()
    key = indexer.list_keys()[_PODS // 2]
    first = microseconds(lambda: look(indexer.get_by_key(key)))
    metadata = microseconds(lambda: _name(indexer.get_by_key(key)))
    retained = indexer.get_by_key(key)
    assert look(retained)
    again = microseconds(lambda: look(indexer.get_by_key(key)))
    assert retained is not None
    return {"first_look_us": first, "look_again_us": again, "metadata_us": metadata}


async def measure(url: str, **options: Any) -> Figures:
    """Measure one tier, and its share of the limit, which depends on the size of the JSON."""
    look = _label if options.get("storage") == "metadata" else _node
    figures = await measure_informer(url, events=0, then=partial(_reads, look=look), **options)
    sizes = [len(encoded(number, number + 1)) for number in range(0, _PODS, 100)]
    json_kib = sum(sizes) / len(sizes) / 1024
    kib = figures["kib_per_object"]
    return figures | {"json_kib": json_kib, "share_of_limit": kib / (1.1 * json_kib + 1.0)}


QUESTION = Question(
    "memory",
    "How much memory does a cached object need?",
    {
        "floor": partial(measure_floor, events=0),
        "bytes": measure,
        "bytes, two fields": partial(measure, fields=_FIELDS),
        "bytes, one more index": partial(measure, indexers={"node": "spec.nodeName"}),
        "stripped": partial(measure, storage="stripped"),
        "compressed": partial(measure, storage="compressed"),
        "projection": partial(measure, storage="projection", fields=_FIELDS),
        "metadata": partial(measure, storage="metadata"),
        "dict": partial(measure, storage="dict"),
    },
    Offer(pods=_PODS, events=0, forms="json,metadata"),
    requirements=[
        Requirement("bytes, ratio to 1.1 times the JSON plus 1 KiB", "bytes", "share_of_limit", 1.0),
        Requirement("compressed, KiB per object", "compressed", "kib_per_object", 1.6),
    ],
    rounds=3,
)

if __name__ == "__main__":
    run(QUESTION)
