"""Measure a relist of 50,000 unchanged pods.

The cache has three indices: by namespace, by a path and by a function. A relist should deliver no notification, write
to no index, replace no body, and cost no more than the first list.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import aiohttp
from clients import Stopwatch, pods_informer, rss_kib
from harness import Offer, Question, Requirement, run

from aioinformer.cache.indices import Index
from aioinformer.transport.http import HttpTransport

if TYPE_CHECKING:
    from harness import Figures

_PODS = 50_000


class IndexWrites:
    """Counts writes to all indices from its creation on."""

    def __init__(self) -> None:
        self.count = 0
        for name in ("put", "remove"):
            setattr(Index, name, self._count_calls(getattr(Index, name)))

    def _count_calls(self, write: Any) -> Any:
        def counted(*arguments: Any) -> None:
            self.count += 1
            write(*arguments)

        return counted


async def relist(url: str, *, pages: bool = False) -> Figures:
    """Measure the first list and a relist."""
    delivered = 0

    async def on_add(obj: Any) -> None:
        nonlocal delivered
        delivered += 1

    async def on_update(old: Any, new: Any) -> None:
        nonlocal delivered
        delivered += 1

    async with HttpTransport(url) as transport, aiohttp.ClientSession() as session:
        indexers = {"node": "spec.nodeName", "name": lambda pod: [pod.metadata.name]}
        informer = pods_informer(transport, pages=pages, indexers=indexers)
        registration = informer.add_event_handler(on_add=on_add, on_update=on_update)
        first = Stopwatch()
        async with informer:
            await registration.wait_for_sync()
            figures: Figures = {"sync_cpu_seconds": first.cpu, "sync_wall_seconds": first.wall}
            cells = informer.get_indexer().store
            bodies = {record.key: id(record.raw) for record in cells.items()}
            version = int(informer.last_sync_resource_version)
            delivered, writes, before = 0, IndexWrites(), rss_kib()
            again = Stopwatch()
            async with session.post(f"{url}/expire"):
                pass
            await informer.wait_for_resource_version(str(version + 1))
            figures |= {"relist_cpu_seconds": again.cpu, "relist_wall_seconds": again.wall}
            figures |= {
                "relist_notifications": delivered,
                "relist_index_writes": writes.count,
                "relist_bodies": sum(bodies[record.key] != id(record.raw) for record in cells.items()),
                "relist_kib_per_object": (rss_kib() - before) / len(bodies),
            }
    return figures


def _required() -> list[Requirement]:
    found = []
    for form in ("streaming", "pages"):
        for what in ("notifications", "index_writes", "bodies"):
            found.append(Requirement(f"{form}: {what.replace('_', ' ')}", form, f"relist_{what}", 0))
        found.append(Requirement(f"{form}: additional KiB per object", form, "relist_kib_per_object", 0.1))
        cpu, first = "relist_cpu_seconds", "sync_cpu_seconds"
        found.append(Requirement(f"{form}: CPU, ratio to the first list", form, cpu, 1.0, form, first))
    return found


QUESTION = Question(
    "relist",
    "How much does a relist of 50,000 unchanged pods cost?",
    {"streaming": relist, "pages": partial(relist, pages=True)},
    Offer(pods=_PODS, events=1),
    requirements=_required(),
    rounds=3,
)

if __name__ == "__main__":
    run(QUESTION)
