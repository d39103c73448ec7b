"""How soon is a cache of 100,000 pods complete, beside client-go and kube-rs? See `beside_others.py`."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from clients import measure_floor, measure_informer
from harness import Offer, Question, Requirement, answer
from peers import Peers

if TYPE_CHECKING:
    from harness import Measure

_PODS = 100_000
_OWN: dict[str, Measure | list[str]] = {
    "floor, streaming": partial(measure_floor, events=0),
    "aioinformer, streaming": partial(measure_informer, events=0),
    "aioinformer, pages": partial(measure_informer, events=0, pages=True),
}


def question() -> Question:
    """With everybody who is there."""
    peers = Peers()
    subjects = _OWN | peers.go(0, large=True) | peers.rust(0, large=True)
    ready, json = "sync_wall_seconds", "client-go typed, JSON"
    return Question(
        "beside_others_list",
        f"How soon is a cache of {_PODS:,} pods complete, beside others?",
        subjects,
        Offer(_PODS, 0, protobuf_tool=peers.protobuf_tool),
        requirements=[
            Requirement("streaming, to client-go on JSON", "aioinformer, streaming", ready, 1 / 6, json),
            Requirement("pages, to client-go on JSON", "aioinformer, pages", ready, 1 / 6, json),
        ],
        rounds=2,
        seconds=400.0,
        notes=peers.notes,
    )


if __name__ == "__main__":
    # A measurement of our own is a process of its own, which need not look for the others.
    answer(Question("beside_others_list", "", _OWN) if "--subject" in sys.argv else question())
