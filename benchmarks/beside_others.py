"""Compare aioinformer with client-go, kube-rs and Python libraries.

Each of the others is optional: if it cannot be built or installed, the notes give the reason. client-go needs `go`, and
kube-rs needs `cargo`. The Python libraries are installed from `peers/requirements.txt` into an environment of their
own. Everything is built in `peers/.built/`.

client-go and the official Python client have an informer, and kube-rs has a reflector. kopf runs its operator with a
handler that keeps the objects, because the operator does not. lightkube and kubernetes_asyncio have nothing like that,
so they run the loop that a program would need: list, keep all objects, watch, replace. The benchmark then compares
decoding, not features.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from clients import measure_floor, measure_informer
from harness import Offer, Question, Requirement, run
from peers import Peers

if TYPE_CHECKING:
    from harness import Measure

_PODS = _EVENTS = 20_000
_OWN: dict[str, Measure | list[str]] = {
    "floor": measure_floor,
    "aioinformer": measure_informer,
    "aioinformer, compressed": partial(measure_informer, storage="compressed"),
    "aioinformer, metadata": partial(measure_informer, storage="metadata"),
}


def question() -> Question:
    """Return the question with all peers that can be built."""
    peers = Peers()
    subjects = _OWN | peers.go(_EVENTS) | peers.rust(_EVENTS) | peers.python(_EVENTS)
    event, json, protobuf = "watch_us_per_event", "client-go typed, JSON", "client-go typed, protobuf"
    metadata = "client-go metadata, protobuf"
    return Question(
        "beside_others",
        "How does aioinformer compare with client-go, kube-rs and Python libraries?",
        subjects,
        Offer(_PODS, _EVENTS, forms="json,metadata", protobuf_tool=peers.protobuf_tool),
        requirements=[
            Requirement("CPU of an event, ratio to client-go with JSON", "aioinformer", event, 1 / 15, json),
            Requirement("CPU of an event, ratio to client-go with protobuf", "aioinformer", event, 1 / 2, protobuf),
            Requirement(
                "CPU of a metadata-only event, ratio to client-go with protobuf",
                "aioinformer, metadata",
                event,
                1.0,
                metadata,
            ),
            Requirement("first list, ratio to client-go with JSON", "aioinformer", "sync_wall_seconds", 1 / 6, json),
            Requirement(
                "memory, compressed, ratio to client-go, typed",
                "aioinformer, compressed",
                "kib_per_object",
                1 / 8,
                json,
            ),
        ],
        rounds=3,
        seconds=900.0,
        notes=peers.notes,
    )


if __name__ == "__main__":
    # The process of a single measurement does not build the peers.
    run(Question("beside_others", "", _OWN) if "--subject" in sys.argv else question())
