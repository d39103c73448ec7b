"""What does a cached object weigh, in each form that a cache can have, and what does it cost to come in?

Resident memory of the process, garbage collected and the allocator's reserve given back, over what it was before the
list. The pods are 5.8 KB of JSON each.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from clients import measure_floor, measure_informer
from harness import Offer, Question, Requirement, answer
from pods import encoded

if TYPE_CHECKING:
    from harness import Figures

_PODS = 20_000
_FIELDS = ["spec.nodeName", "status.phase"]


async def measure(url: str, **options: Any) -> Figures:
    """One tier; with the limits that depend on the data."""
    figures = await measure_informer(url, events=0, **options)
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
