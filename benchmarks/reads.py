"""What does it cost to read a cache of 50,000 pods: all of it, a part of it, one object, an object's body?

Parts are measured by what they return: a list of a namespace should cost a pod of it about the same as a list of
everything costs a pod. For a selector without an index, every object has to be looked at; with one, only what is
returned.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from clients import microseconds, pods_informer
from harness import Offer, Question, Requirement, answer

from aioinformer.transport.http import HttpTransport

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness import Figures

_PODS = 50_000
_INDEXERS = {"node": "spec.nodeName", "app": "metadata.labels.app"}


def _each(call: Callable[[], list[Any]]) -> float:
    """Microseconds for each object of the result."""
    return microseconds(call) / len(call())


async def measure(url: str, **options: Any) -> Figures:
    async with HttpTransport(url) as transport:
        informer = pods_informer(transport, indexers=_INDEXERS, **options)
        async with informer:
            await informer.wait_for_sync()
            lister, indexer = informer.lister(), informer.get_indexer()
            team = lister.namespaced("team-7")
            key = indexer.list_keys()[_PODS // 2]
            held: Any = indexer.get_by_key(key)

            def body() -> Any:
                obj: Any = indexer.get_by_key(key)
                return obj.spec.node_name

            def decoded() -> Any:
                nonlocal held
                held = None
                return body()

            figures = {
                "list_us_each": _each(lister.list),
                "namespace_us_each": _each(team.list),
                "index_us_each": _each(lambda: indexer.by_index("node", "node-7")),
                "label_indexed_us_each": _each(lambda: lister.list("app=app-7")),
                "label_in_namespace_us_each": _each(lambda: team.list("tier=web")),
                "field_indexed_us_each": _each(lambda: lister.list(field_selector="spec.nodeName=node-7")),
                "label_not_indexed_us_each_held": microseconds(lambda: lister.list("tier=web")) / _PODS,
                "get_us": microseconds(lambda: indexer.get_by_key(key)),
                "first_look_us": microseconds(decoded),
            }
            held = indexer.get_by_key(key)
            assert body()
            keep = held.spec
            assert keep is not None
            return figures | {"look_while_held_us": microseconds(body)}


def _same_as_all(what: str, figure: str, at_most: float) -> Requirement:
    return Requirement(
        f"{what}: cost of an object that is returned, to a list of all",
        "bytes",
        figure,
        at_most,
        "bytes",
        "list_us_each",
    )


QUESTION = Question(
    "reads",
    "What does it cost to read a cache of 50,000 pods?",
    {
        "bytes": measure,
        "compressed": partial(measure, storage="compressed"),
    },
    Offer(pods=_PODS, events=0),
    requirements=[
        _same_as_all("by namespace", "namespace_us_each", 2.0),
        _same_as_all("by index", "index_us_each", 2.0),
        Requirement(
            "by a label with an index: cost of an object that is returned, to looking at one without an index",
            "bytes",
            "label_indexed_us_each",
            2.0,
            "bytes",
            "label_not_indexed_us_each_held",
        ),
        Requirement(
            "a body while somebody holds it, to decoding it",
            "bytes",
            "look_while_held_us",
            0.2,
            "bytes",
            "first_look_us",
        ),
    ],
    rounds=3,
)

if __name__ == "__main__":
    answer(QUESTION)
