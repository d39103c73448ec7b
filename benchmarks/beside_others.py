"""What do others need for the same: client-go, kube-rs, and the Python libraries?

Each is optional: who cannot be built or installed is named, with the reason. client-go needs `go`, kube-rs `cargo`;
the Python libraries come from `peers/requirements.txt` into an environment of their own. All are kept in
`peers/.built/`.

client-go and the official Python client have an informer, kube-rs has a reflector. kopf runs its operator, which keeps
no objects; its handler does. lightkube and kubernetes_asyncio have nothing of the kind; for them, what a program would
write is written out (list, keep all objects, watch, replace), so that they are measured by what they decode, not by
what they lack.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from clients import measure_floor, measure_informer
from harness import Offer, Question, Requirement, answer
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
    """With everybody who is there."""
    peers = Peers()
    subjects = _OWN | peers.go(_EVENTS) | peers.rust(_EVENTS) | peers.python(_EVENTS)
    event, json, protobuf = "watch_us_per_event", "client-go typed, JSON", "client-go typed, protobuf"
    metadata = "client-go metadata, protobuf"
    return Question(
        "beside_others",
        "What do others need for the same?",
        subjects,
        Offer(_PODS, _EVENTS, forms="json,metadata", protobuf_tool=peers.protobuf_tool),
        requirements=[
            Requirement("an event, to client-go on JSON", "aioinformer", event, 1 / 15, json),
            Requirement("an event, to client-go on protobuf", "aioinformer", event, 1 / 2, protobuf),
            Requirement(
                "an event of metadata, to client-go on protobuf", "aioinformer, metadata", event, 1.0, metadata
            ),
            Requirement("first list, to client-go on JSON", "aioinformer", "sync_wall_seconds", 1 / 6, json),
            Requirement(
                "memory, compressed, to client-go typed", "aioinformer, compressed", "kib_per_object", 1 / 8, json
            ),
        ],
        rounds=3,
        seconds=900.0,
        notes=peers.notes,
    )


if __name__ == "__main__":
    # A measurement of our own is a process of its own, which need not look for the others.
    answer(Question("beside_others", "", _OWN) if "--subject" in sys.argv else question())
