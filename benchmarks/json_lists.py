"""Measure the JSON array of 2,001 pods, beside joining the same bytes.

`listed` objects came in a list, without `apiVersion` and `kind`, which the first array adds; `watched` objects came
with them. The last subject decodes and encodes each pod, as web frameworks do.
"""

from __future__ import annotations

import os
from functools import partial
from statistics import median
from time import thread_time
from typing import TYPE_CHECKING, Any

import msgspec
import pods
from harness import Question, Requirement, run

from aioinformer import Resource, to_json
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.models import core_v1

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness import Figures

_PODS = 2001
_RUNS = 100
_TYPE = b'{"kind":"Pod","apiVersion":"v1",'


def views(*, watched: bool) -> list[Any]:
    """Return pods as a lister returns them."""
    resource: Resource[Any] = core_v1.PODS
    objects: ObjectType[Any] = ObjectType(resource)
    texts = [pods.encoded(number, number) for number in range(_PODS)]
    if watched:
        texts = [_TYPE + text[1:] for text in texts]
    return [objects.to_view(objects.decode(text)) for text in texts]


def milliseconds(call: Callable[[], bytes]) -> float:
    """Return the CPU time of a call."""
    begin = thread_time()
    call()
    return (thread_time() - begin) * 1000


async def array(url: str, *, watched: bool) -> Figures:
    """Measure `to_json` and joining the same bytes, alternately."""
    found = views(watched=watched)
    first = milliseconds(lambda: to_json(found))
    texts = [to_json(view) for view in found]
    arrays, joins = [], []
    for _ in range(_RUNS):
        arrays.append(milliseconds(lambda: to_json(found)))
        joins.append(milliseconds(lambda: b",".join(texts)))
    return {"first_json_ms": first, "json_ms": median(arrays), "join_ms": median(joins)}


async def encode(url: str) -> Figures:
    """Measure decoding and encoding."""
    found = views(watched=True)
    runs = [milliseconds(lambda: msgspec.json.encode([view.to_dict() for view in found])) for _ in range(5)]
    return {"first_json_ms": runs[0], "json_ms": median(runs)}


class Nothing:
    """No server: the pods are made by the subjects."""

    def __init__(self) -> None:
        self.environment = dict(os.environ)

    def __enter__(self) -> str:
        return ""

    def __exit__(self, *exc: object) -> None:
        pass


QUESTION = Question(
    "json_lists",
    "How much does the JSON array of 2,001 pods cost?",
    {
        "listed": partial(array, watched=False),
        "watched": partial(array, watched=True),
        "decode and encode": encode,
    },
    requirements=[
        Requirement(f"{each} pods, ratio to joining the bytes", each, "json_ms", 1.5, each, "join_ms")
        for each in ("listed", "watched")
    ],
    rounds=7,
    serve=Nothing(),
)

if __name__ == "__main__":
    run(QUESTION)
