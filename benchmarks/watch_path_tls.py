"""Measure the cost of an event over TLS, one event a record, compared with the floor."""

from clients import measure_floor, measure_informer
from harness import Offer, Question, Requirement, run

_FIGURE = "watch_us_per_event"

QUESTION = Question(
    "watch_path_tls",
    "How much CPU time does an event cost over TLS, as fast as the server writes?",
    {"floor": measure_floor, "one handler": measure_informer},
    Offer(event_by_event=True),
    requirements=[
        Requirement("ratio to the floor", "one handler", _FIGURE, 1.0, "floor"),
    ],
    seconds=200.0,
)

if __name__ == "__main__":
    run(QUESTION)
