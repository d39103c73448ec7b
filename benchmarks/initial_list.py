"""Measure how long listing 20,000 pods takes, as a streaming list and in pages, compared with the floor."""

from functools import partial

from clients import measure_floor, measure_informer
from harness import Offer, Question, Requirement, run


def question(name: str, pods: int, rounds: int) -> Question:
    """Return the question for a number of pods."""
    wall, cpu = "sync_wall_seconds", "sync_cpu_seconds"
    return Question(
        name,
        f"How long does listing {pods:,} pods take?",
        {
            "floor, streaming": partial(measure_floor, events=0),
            "streaming": partial(measure_informer, events=0),
            "floor, pages": partial(measure_floor, events=0, pages=True),
            "pages": partial(measure_informer, events=0, pages=True),
        },
        Offer(pods=pods, events=0),
        requirements=[
            Requirement(f"{form}: {what} seconds, ratio to the floor", form, figure, 1.25, f"floor, {form}")
            for form in ("streaming", "pages")
            for what, figure in (("wall", wall), ("CPU", cpu))
        ],
        rounds=rounds,
    )


QUESTION = question("initial_list", 20_000, 5)

if __name__ == "__main__":
    run(QUESTION)
