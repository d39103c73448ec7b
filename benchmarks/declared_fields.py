"""Measure what declared fields add to the cost of an event."""

from functools import partial

from clients import measure_informer
from harness import Question, Requirement, run

_FIELDS = ["spec.nodeName", "status.phase"]


QUESTION = Question(
    "declared_fields",
    "How much do declared fields add to the cost of an event?",
    {
        "none": measure_informer,
        "one": partial(measure_informer, fields=_FIELDS[:1]),
        "two": partial(measure_informer, fields=_FIELDS),
        "two, each with an index": partial(
            measure_informer, indexers={"node": "spec.nodeName", "phase": "status.phase"}
        ),
        "none, handler reads the body": partial(measure_informer, handler=lambda pod: pod.spec.node_name),
    },
    requirements=[
        Requirement("two fields, ratio to none", "two", "watch_us_per_event", 1.15, "none"),
    ],
    rounds=9,
    seconds=85.0,
)

if __name__ == "__main__":
    run(QUESTION)
