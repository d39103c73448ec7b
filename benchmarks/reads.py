"""Measure reads from a cache of 50,000 pods: everything, a part, one object, and the body of an object.

The cost of a part is divided by the number of returned objects. A pod should cost about the same in a list of its
namespace as in a list of everything. A selector without an index checks every object, and one with an index only those
that it returns.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from clients import microseconds, pods_informer
from harness import Offer, Question, Requirement, run

from aioinformer import HttpTransport

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness import Figures

_PODS = 50_000
_INDEXERS = {"node": "spec.nodeName", "app": "metadata.labels.app"}


def _each(call: Callable[[], list[Any]]) -> float:
    """Return microseconds for each object of the result."""
    return microseconds(call) / len(call())


async def measure(url: str, **options: Any) -> Figures:
    """Measure all reads with one storage tier."""
    async with HttpTransport(url) as transport:
        informer = pods_informer(transport, indexers=_INDEXERS, **options)
        async with informer:
            await informer.wait_for_sync()
            lister, indexer = informer.lister(), informer.get_indexer()
            team = lister.namespaced("team-7")
            key = indexer.list_keys()[_PODS // 2]
            retained: Any = indexer.get_by_key(key)

            def read_body() -> Any:
                obj: Any = indexer.get_by_key(key)
                return obj.spec.node_name

            def decode_body() -> Any:
                nonlocal retained
                retained = None
                return read_body()

            figures = {
                "list_us_each": _each(lister.list),
                "namespace_us_each": _each(team.list),
                "index_us_each": _each(lambda: indexer.by_index("node", "node-7")),
                "label_indexed_us_each": _each(lambda: lister.list("app=app-7")),
                "label_in_namespace_us_each": _each(lambda: team.list("tier=web")),
                "field_indexed_us_each": _each(lambda: lister.list(field_selector="spec.nodeName=node-7")),
                "label_not_indexed_us_each_cached": microseconds(lambda: lister.list("tier=web")) / _PODS,
                "get_us": microseconds(lambda: indexer.get_by_key(key)),
                "first_look_us": microseconds(decode_body),
            }
            retained = indexer.get_by_key(key)
            assert read_body()
            spec = retained.spec
            assert spec is not None
            return figures | {"look_again_us": microseconds(read_body)}


def _limit_to_list(what: str, figure: str, at_most: float) -> Requirement:
    return Requirement(
        f"{what}: CPU per returned object, ratio to listing everything",
        "bytes",
        figure,
        at_most,
        "bytes",
        "list_us_each",
    )


QUESTION = Question(
    "reads",
    "How much do reads from a cache of 50,000 pods cost?",
    {
        "bytes": measure,
        "compressed": partial(measure, storage="compressed"),
    },
    Offer(pods=_PODS, events=0),
    requirements=[
        _limit_to_list("by namespace", "namespace_us_each", 2.0),
        _limit_to_list("by index", "index_us_each", 2.0),
        Requirement(
            "by an indexed label: CPU per returned object, ratio to checking an object without an index",
            "bytes",
            "label_indexed_us_each",
            2.0,
            "bytes",
            "label_not_indexed_us_each_cached",
        ),
        Requirement(
            "reading a retained body, ratio to decoding it",
            "bytes",
            "look_again_us",
            0.2,
            "bytes",
            "first_look_us",
        ),
    ],
    rounds=3,
)

if __name__ == "__main__":
    run(QUESTION)
