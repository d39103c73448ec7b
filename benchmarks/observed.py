"""Compare a controller with all that shows what it does, and nobody who reads it, with one that has none of it.

    python benchmarks/observed.py --rounds 1

With it are metrics, a debug page with its recording of changes and runs, and `max_staleness`. The events are those of
`controllers.py`: a first list, events as fast as the controller takes them, and single events at 1,000/s over TLS.
Each round measures the two in turn, twice: the second pair in the other order, so that a machine that becomes slower
favours neither.
"""

from __future__ import annotations

from functools import partial

from controllers import ANNOTATION, OWN_PROGRAM, PODS, measure
from harness import Offer, Question, Requirement, run

_PLAIN = partial(measure, command=OWN_PROGRAM)
_OBSERVED = partial(measure, command=OWN_PROGRAM, mode="observed")

QUESTION = Question(
    "observed",
    "What do metrics, the debug page and the limit of staleness cost while nobody reads them?",
    {"plain": _PLAIN, "observed": _OBSERVED, "observed again": _OBSERVED, "plain again": _PLAIN},
    Offer(PODS, event_by_event=True, annotation=ANNOTATION),
    [
        Requirement(f"CPU of {what}, ratio of the {pair} pair", subject, figure, 1.02, base)
        for what, figure in (
            ("an object of the first list", "initial_us"),
            ("an event as fast as it goes", "cpu_us_flood"),
            ("an event at 1,000/s", "cpu_us_1000"),
        )
        for pair, subject, base in (("first", "observed", "plain"), ("second", "observed again", "plain again"))
    ],
    rounds=5,
    seconds=600.0,
)

if __name__ == "__main__":
    run(QUESTION)
