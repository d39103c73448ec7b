"""Measure the cost of an event if only metadata is requested."""

from functools import partial

from clients import measure_floor, measure_informer
from harness import Offer, Question, Requirement, run

QUESTION = Question(
    "metadata_only",
    "How much does an event cost if only metadata is requested?",
    {
        "floor, whole objects": measure_floor,
        "whole objects": measure_informer,
        "metadata only": partial(measure_informer, storage="metadata"),
    },
    Offer(forms="json,metadata"),
    requirements=[
        Requirement(
            "metadata only, ratio to the floor with whole objects",
            "metadata only",
            "watch_us_per_event",
            0.9,
            "floor, whole objects",
        ),
    ],
)

if __name__ == "__main__":
    run(QUESTION)
