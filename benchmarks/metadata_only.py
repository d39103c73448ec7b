"""What does an event cost when nothing but metadata is asked for?"""

from functools import partial

from clients import measure_floor, measure_informer
from harness import Offer, Question, Requirement, answer

QUESTION = Question(
    "metadata_only",
    "What does an event cost when nothing but metadata is asked for?",
    {
        "floor, whole objects": measure_floor,
        "whole objects": measure_informer,
        "metadata only": partial(measure_informer, storage="metadata"),
    },
    Offer(forms="json,metadata"),
    requirements=[
        Requirement(
            "metadata only, to the floor on whole objects",
            "metadata only",
            "watch_us_per_event",
            0.9,
            "floor, whole objects",
        ),
    ],
)

if __name__ == "__main__":
    answer(QUESTION)
