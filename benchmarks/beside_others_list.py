"""Measure how long client-go, kube-rs and aioinformer take to list 100,000 pods. See `beside_others.py`."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from clients import measure_floor, measure_informer
from harness import Offer, Question, Requirement, run
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
    """Return the question with all peers that can be built."""
    peers = Peers()
    subjects = _OWN | peers.go(0, large=True) | peers.rust(0, large=True)
    ready, json = "sync_wall_seconds", "client-go typed, JSON"
    return Question(
        "beside_others_list",
        f"How long do aioinformer and others take to list {_PODS:,} pods?",
        subjects,
        Offer(_PODS, 0, protobuf_tool=peers.protobuf_tool),
        requirements=[
            Requirement("streaming, ratio to client-go with JSON", "aioinformer, streaming", ready, 1 / 6, json),
            Requirement("pages, ratio to client-go with JSON", "aioinformer, pages", ready, 1 / 6, json),
        ],
        rounds=2,
        seconds=400.0,
        notes=peers.notes,
    )


if __name__ == "__main__":
    # The process of a single measurement does not build the peers.
    run(Question("beside_others_list", "", _OWN) if "--subject" in sys.argv else question())
