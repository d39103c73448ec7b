"""What does a cached object weigh, in each form that a cache can have, and what does it cost to come in and to be read?

Resident memory of the process, garbage collected and the allocator's reserve given back, over what it was before the
list. The pods are 5.8 KB of JSON each. A read looks into the spec, where there is one, and at a label otherwise: the
first look at an object that nobody holds, one while somebody does, and the metadata alone.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from clients import measure_floor, measure_informer, microseconds
from harness import Offer, Question, Requirement, answer
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
    held = indexer.get_by_key(key)
    assert look(held)
    again = microseconds(lambda: look(indexer.get_by_key(key)))
    assert held is not None
    return {"first_look_us": first, "look_while_held_us": again, "metadata_us": metadata}


async def measure(url: str, **options: Any) -> Figures:
    """One tier; with the limits that depend on the data."""
    look = _label if options.get("storage") == "metadata" else _node
    figures = await measure_informer(url, events=0, then=partial(_reads, look=look), **options)
    sizes = [len(encoded(number, number + 1)) for number in range(0, _PODS, 100)]
    json_kib = sum(sizes) / len(sizes) / 1024
    weight = figures["kib_per_object"]
    return figures | {"json_kib": json_kib, "of_the_allowed": weight / (1.1 * json_kib + 1.0)}


QUESTION = Question(
    "memory",
    "What does a cached object weigh?",
    {
        "floor": partial(measure_floor, events=0),
        "bytes": measure,
        "bytes, two fields": partial(measure, fields=_FIELDS),
        "bytes, an index more": partial(measure, indexers={"node": "spec.nodeName"}),
        "stripped": partial(measure, storage="stripped"),
        "compressed": partial(measure, storage="compressed"),
        "projection": partial(measure, storage="projection", fields=_FIELDS),
        "metadata": partial(measure, storage="metadata"),
        "dict": partial(measure, storage="dict"),
    },
    Offer(pods=_PODS, events=0, forms="json,metadata"),
    requirements=[
        Requirement("bytes, as a share of 1.1 times the JSON plus 1 KiB", "bytes", "of_the_allowed", 1.0),
        Requirement("compressed, in KiB", "compressed", "kib_per_object", 1.6),
    ],
    rounds=3,
)

if __name__ == "__main__":
    answer(QUESTION)
