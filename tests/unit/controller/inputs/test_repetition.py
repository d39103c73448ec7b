"""The proof that runs only repeat themselves, and the difference between a loop and a rollout."""

from __future__ import annotations

from itertools import count, cycle, islice
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.controller.inputs.repetition import COUNTED_RUNS, RUNS, Repetition, change_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def runs_until_proof(states: Iterable[Mapping[str, Any]]) -> int | None:
    """Return after how many runs there is a proof, if each leads to the next state; None for never."""
    repetition = Repetition()
    before: Mapping[str, Any] = {}
    for run, state in enumerate(states):
        names = sorted({*before, *state})
        changed = [name for name in names if before.get(name) != state.get(name)]
        if repetition.add(run, [change_of(("widgets shop/web", at), before.get(at), state.get(at)) for at in changed]):
            return run + 1
        before = state
    return None


def odd() -> Iterable[str]:
    """Return values that neither return nor count, such as times."""
    return (f"{number * 7919 % 10007:x}.{number % 3}" for number in count())


@pytest.mark.behaviour("C-142")
@pytest.mark.parametrize(
    ("states", "runs"),
    [
        pytest.param(({"turn": each} for each in cycle("ab")), 3, id="two values"),
        pytest.param(({"turn": each} for each in cycle("abcde")), 6, id="five values"),
        pytest.param(({"turn": each, "same": 1} for each in cycle("ab")), 3, id="beside a constant"),
        pytest.param(({"at": each} for each in odd()), RUNS + 1, id="a time"),
        pytest.param(({"at": each, "turn": number % 2} for number, each in enumerate(odd())), RUNS + 1, id="both"),
        pytest.param(({"count": number} for number in count(1)), COUNTED_RUNS + 1, id="a count"),
        pytest.param(({"list": ["x"] * number} for number in count(1)), COUNTED_RUNS + 1, id="a list that grows"),
    ],
)
def test_loops_are_proven(states: Iterable[Mapping[str, Any]], runs: int) -> None:
    assert runs_until_proof(islice(states, 1000)) == runs


STEPS = 200


@pytest.mark.behaviour("C-142")
@pytest.mark.parametrize(
    "states",
    [
        pytest.param([{"step": number} for number in range(STEPS)], id="a count"),
        pytest.param([{"step": str(number)} for number in range(STEPS)], id="a count as a text"),
        pytest.param([{"partition": STEPS - number} for number in range(STEPS)], id="a count down"),
        pytest.param([{"done": [f"node-{at}" for at in range(number)]} for number in range(STEPS)], id="a list"),
        pytest.param([{f"child-{at}": "v2" for at in range(number + 1)} for number in range(STEPS)], id="children"),
        pytest.param(
            [
                {"at": at, "phase": number % 2, **{f"child-{each}": "v2" for each in range(number)}}
                for number, at in enumerate(islice(odd(), STEPS))
            ],
            id="children, a time and a phase",
        ),
    ],
)
def test_rollouts_of_200_steps_are_no_loops(states: list[Mapping[str, Any]]) -> None:
    assert len(states) == STEPS
    assert runs_until_proof(states) is None


@pytest.mark.behaviour("C-142")
def test_rollout_that_ends_in_a_loop_is_proven() -> None:
    rollout = [{f"child-{at}": "v2" for at in range(number + 1)} for number in range(100)]
    loop = [{**rollout[-1], "child-7": each} for each in islice(odd(), 60)]
    assert runs_until_proof([*rollout, *loop]) == 100 + RUNS


@pytest.mark.behaviour("C-142")
def test_a_run_without_the_field_begins_the_count_anew() -> None:
    at = iter(odd())
    states = [{"at": next(at)} for _ in range(RUNS - 2)]
    states += [{**states[-1], "child": "v2"}]
    states += [{"child": "v2", "at": next(at)} for _ in range(RUNS - 1)]
    assert runs_until_proof(states) is None


@pytest.mark.behaviour("C-142")
def test_memory_is_bounded() -> None:
    repetition = Repetition()
    values = iter(odd())
    for run in range(2000):
        repetition.add(run, [change_of((f"widgets shop/{run}", "spec"), None, next(values))])
    assert len(repetition._fields) <= 256
    assert len(repetition._states) <= 64
