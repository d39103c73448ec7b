"""What do declared fields cost, on top of the metadata that is read anyway?"""

from functools import partial

from clients import measure_informer
from harness import Question, Requirement, answer

_FIELDS = ["spec.nodeName", "status.phase"]


QUESTION = Question(
    "declared_fields",
    "What do declared fields cost an event, on top of the metadata that is read anyway?",
    {
        "none": measure_informer,
        "one": partial(measure_informer, fields=_FIELDS[:1]),
        "two": partial(measure_informer, fields=_FIELDS),
        "two, and an index of each": partial(
            measure_informer, indexers={"node": "spec.nodeName", "phase": "status.phase"}
        ),
        "none, body read by the handler": partial(measure_informer, handler=lambda pod: pod.spec.node_name),
    },
    requirements=[
        Requirement("two fields, to none", "two", "watch_us_per_event", 1.15, "none"),
    ],
    rounds=9,
    seconds=85.0,
)

if __name__ == "__main__":
    answer(QUESTION)
