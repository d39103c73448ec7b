"""Measure the first list over TLS, streaming and in pages, of 20,000 and 100,000 pods, compared with the floor.

In a streaming list, the server sends each pod by a write of its own. The lists of 20,000 pods are selected from the
100,000 pods of the server.
"""

from __future__ import annotations

from functools import partial

from clients import measure_floor, measure_informer
from harness import Measure, Offer, Question, Requirement, run

_SIZES = {"20,000": 20_000, "100,000": 100_000}
_LIMITS = {"streaming": 1.0, "pages": 1.2}


def _subjects() -> dict[str, Measure | list[str]]:
    found: dict[str, Measure | list[str]] = {}
    for size, first in _SIZES.items():
        for form in _LIMITS:
            pages = form == "pages"
            found[f"floor, {form}, {size}"] = partial(measure_floor, events=0, pages=pages, first=first)
            found[f"{form}, {size}"] = partial(measure_informer, events=0, pages=pages, first=first)
    return found


QUESTION = Question(
    "tls_lists",
    "How much CPU time does the first list cost over TLS?",
    _subjects(),
    Offer(pods=max(_SIZES.values()), events=0, event_by_event=True),
    requirements=[
        Requirement(f"{form}, {size}: CPU, ratio to the floor", *where, limit, f"floor, {where[0]}")
        for size in _SIZES
        for form, limit in _LIMITS.items()
        for where in [(f"{form}, {size}", "sync_cpu_seconds")]
    ],
    rounds=3,
    seconds=150.0,
    touched_mib=1536,
)

if __name__ == "__main__":
    run(QUESTION)
