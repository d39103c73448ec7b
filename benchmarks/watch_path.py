"""Measure the cost of an event from the socket to the handler, compared with the floor."""

from functools import partial

from clients import measure_floor, measure_informer
from harness import Question, Requirement, run

_FIGURE = "watch_us_per_event"

QUESTION = Question(
    "watch_path",
    "How much CPU time does an event cost, from the socket to the handler?",
    {
        "floor": measure_floor,
        "one handler": measure_informer,
        "ten handlers": partial(measure_informer, handlers=10),
        "one handler, small reads": partial(measure_informer, transport={"read_bufsize": 64 * 1024}),
        "one handler, large reads": partial(measure_informer, transport={"read_bufsize": 2 * 1024 * 1024}),
        "one handler, one more index": partial(measure_informer, indexers={"node": "spec.nodeName"}),
    },
    requirements=[
        Requirement("small reads, ratio to the floor", "one handler, small reads", _FIGURE, 1.2, "floor"),
        Requirement("ratio to the floor", "one handler", _FIGURE, 1.0, "floor"),
        Requirement("ten handlers, ratio to one", "ten handlers", _FIGURE, 1.5, "one handler"),
    ],
    seconds=280.0,
)

if __name__ == "__main__":
    run(QUESTION)
