"""When a key runs again after a failure, a conflict or a success, and when it is parked."""

from __future__ import annotations

import pytest

from aioinformer.backoff import BackoffOptions
from aioinformer.errors import OptionError, UsageError
from aioinformer.resources.keys import ObjectName
from aioinformer.workqueue.requests.causes import LOW_PRIORITY, Cause
from aioinformer.workqueue.requests.outcomes import (
    Again,
    Finished,
    Outcome,
    Park,
    Parked,
    QueueOptions,
    Run,
    Unfinished,
)
from aioinformer.workqueue.requests.schedule import Schedule

KEY = ObjectName("a", "1")
UPDATED, RESYNC = Cause("updated"), Cause("resync")
FAILED = Unfinished(ValueError("no"))
CONFLICT = Unfinished(ValueError("conflict"), counted=False, soon=True)


class Key:
    """A schedule with one key, and its clock."""

    def __init__(self, *, random: float = 0.0, **options: object) -> None:
        backoff = BackoffOptions(initial=1.0, factor=2.0, cap=10.0, jitter=1.0)
        self.queue = Schedule(QueueOptions(**{"backoff": backoff, **options}), lambda: random)  # type: ignore[arg-type]
        self.now = 0.0

    def add(self, cause: Cause = UPDATED, after: float = 0.0) -> None:
        self.queue.add(KEY, cause, self.now, after=after, priority=LOW_PRIORITY if cause is RESYNC else 0)

    def take(self) -> Run | None:
        return self.queue.take(self.now)

    def run(self, outcome: Outcome) -> Run:
        """Run the key when it is due, with this outcome."""
        self.now = max(self.now, self.queue.next_time() or 0.0)
        run = self.take()
        assert run is not None
        self.queue.finish(run, outcome, self.now)
        return run

    @property
    def rests(self) -> float | None:
        """Seconds until the key runs; None if nothing is requested."""
        return 0.0 if len(self.queue.lanes) else None if (at := self.queue.next_time()) is None else at - self.now


@pytest.mark.behaviour("C-09")
def test_delays_grow_with_failures_until_a_success() -> None:
    key = Key()
    key.add()
    attempts, delays = [], []
    for _ in range(6):
        attempts.append(key.run(FAILED).attempt)
        delays.append(key.rests)
    assert (attempts, delays) == ([1, 2, 3, 4, 5, 6], [1.0, 2.0, 4.0, 8.0, 10.0, 10.0])
    key.run(Finished())
    key.add()
    assert key.run(FAILED).attempt == 1
    assert key.rests == 1.0


@pytest.mark.behaviour("C-09")
def test_retry_has_jitter_and_the_causes_of_the_failed_run() -> None:
    key = Key(random=0.5)
    key.add()
    key.now = 3.0
    key.run(FAILED)
    assert key.rests == 1.5
    key.add(RESYNC)
    run = key.run(Finished())
    assert (run.causes, run.enqueued, run.priority) == ((Cause("retry"), UPDATED, RESYNC), 0.0, 0)


@pytest.mark.behaviour("C-09")
def test_uncounted_retry_changes_no_attempts_and_lets_causes_through() -> None:
    key = Key()
    key.add()
    key.run(FAILED)
    key.run(Unfinished(ValueError("later"), 7.0, counted=False))
    assert key.rests == 7.0
    for _ in range(3):
        key.add()
        assert key.run(Unfinished(ValueError("later"), 7.0, counted=False)).attempt == 2


@pytest.mark.behaviour("C-10")
def test_first_change_after_a_failure_starts_one_early_run() -> None:
    key = Key()
    key.add()
    for _ in range(4):
        key.run(FAILED)
    key.now += 3.0
    key.add()
    assert key.rests == 0.0
    early = key.run(FAILED)
    assert (early.early, early.attempt) == (True, 5)
    key.add()
    assert key.rests == 5.0, "the second change waits for the end of the backoff"
    counted = key.run(FAILED)
    assert (counted.early, counted.attempt) == (False, 5), "the early run has not counted"
    key.add()
    assert key.rests == 0.0, "this backoff has an early run of its own"
    assert key.run(Finished()).attempt == 6


@pytest.mark.behaviour("C-10")
def test_change_during_the_failed_attempt_starts_an_early_run() -> None:
    key = Key()
    key.add()
    run = key.take()
    assert run is not None
    key.add()
    key.queue.finish(run, FAILED, 0.0)
    assert key.rests == 0.0
    key.run(FAILED)
    key.add()
    assert key.rests == 1.0


@pytest.mark.behaviour("C-10")
def test_change_does_not_start_before_the_time_the_server_asked_for() -> None:
    key = Key()
    key.add()
    key.run(Unfinished(ValueError("busy"), least_delay=30.0))
    assert key.rests == 30.0
    key.add()
    assert key.rests == 30.0
    run = key.take()
    assert run is None
    key.run(FAILED)
    assert key.rests == 2.0, "the backoff goes on as usual"
    key.add()
    assert key.rests == 0.0


@pytest.mark.behaviour("C-10")
@pytest.mark.parametrize("trigger", ["initial", "resync", "takeover"])
def test_what_is_no_change_waits_for_the_backoff(trigger: str) -> None:
    key = Key()
    key.add()
    key.run(FAILED)
    key.add(Cause(trigger))  # type: ignore[arg-type]
    assert key.rests == 1.0
    key.add()
    assert key.rests == 0.0


@pytest.mark.behaviour("C-11")
def test_key_is_parked_after_max_attempts_until_a_change() -> None:
    key = Key(max_attempts=3)
    key.add()
    for _ in range(3):
        assert not key.queue.parked
        key.run(FAILED)
    assert key.queue.parked == {KEY: Parked("3 attempts failed, the last with ValueError", 3.0, 3)}
    key.add(RESYNC)
    key.add(Cause("takeover"))
    assert not len(key.queue.lanes)
    key.add()
    assert not key.queue.parked
    assert key.rests == 0.0
    assert key.run(Finished()).attempt == 1


@pytest.mark.behaviour("C-11")
def test_parked_keys_are_retried_on_request() -> None:
    key = Key()
    key.add()
    key.run(Park("the spec is wrong"))
    assert key.queue.parked == {KEY: Parked("the spec is wrong", 0.0, 1)}
    assert key.queue.retry_parked([ObjectName("a", "2")], 1.0) == 0
    assert key.queue.retry_parked([KEY], 1.0) == 1
    assert key.run(Park("still wrong")).causes == (Cause("requested"),)
    assert key.queue.retry_parked(None, 1.0) == 1
    assert key.rests == 0.0


@pytest.mark.behaviour("C-12")
def test_change_during_the_run_keeps_the_key_from_being_parked() -> None:
    key = Key()
    for cause, parked in (RESYNC, True), (UPDATED, False):
        key.add()
        run = key.take()
        assert run is not None
        key.add(cause)
        following = key.queue.finish(run, Park("the old spec is wrong"), 0.0)
        assert isinstance(following, Parked) == parked == bool(key.queue.parked)
    assert key.run(Finished()).causes == (UPDATED,)


@pytest.mark.behaviour("C-13")
def test_conflicts_are_retried_soon_and_not_counted() -> None:
    key = Key(random=0.5)
    key.add()
    delays = []
    for _ in range(4):
        assert key.run(CONFLICT).attempt == 1
        delays.append(key.rests)
    assert delays == pytest.approx([0.03, 0.06, 0.12, 0.24])
    key.run(FAILED)
    key.run(CONFLICT)
    assert key.rests == pytest.approx(0.03), "not one of several in a row"
    key.add()
    assert key.rests == 0.0, "the change is probably what the conflict was about"


@pytest.mark.behaviour("C-13")
def test_fifth_conflict_in_a_row_is_a_failed_attempt() -> None:
    key = Key(max_attempts=3)
    key.add()
    runs = [key.run(CONFLICT) for _ in range(6)]
    assert [(run.attempt, run.conflicts) for run in runs] == [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (2, 5)]
    assert key.rests == pytest.approx(2.0), "the second delay of the backoff"
    key.run(CONFLICT)
    assert [each.attempts for each in key.queue.parked.values()] == [3]
    key.add()
    assert key.run(CONFLICT).conflicts == 0


@pytest.mark.behaviour("C-14")
def test_min_interval_separates_the_starts_of_all_runs() -> None:
    key = Key(min_interval=5.0)
    for outcome in Finished(), Again(0.0), FAILED, CONFLICT, Park("no"), Finished():
        key.add()
        assert key.rests in (0.0, 5.0)
        before = key.now
        key.run(outcome)
        assert key.now - before in (0.0, 5.0)
    key.add()
    assert key.rests == 5.0
    key.now += 4.0
    key.add(after=0.5)
    assert key.rests == 1.0


@pytest.mark.behaviour("C-02")
def test_result_asks_for_a_run_later_or_at_the_next_cause() -> None:
    key = Key()
    key.add(RESYNC)
    key.run(Again(60.0))
    assert key.rests == 60.0
    assert key.run(Again(100.0, priority=7)).priority == LOW_PRIORITY
    key.add()
    run = key.run(Finished())
    assert (run.started, run.priority, run.causes) == (60.0, 7, (Cause("result"), UPDATED))
    assert key.rests is None


@pytest.mark.behaviour("C-04")
def test_merged_request_has_the_first_causes_and_counts_the_others() -> None:
    key = Key()
    causes = [Cause("updated", "configmaps", f"a/{number}") for number in range(12)]
    for cause in (*causes, causes[0], causes[7]):
        key.add(cause)
    run = key.run(Finished())
    assert (run.causes, run.causes_left_out) == (tuple(causes[:8]), 4)


def test_misuse_is_refused_with_a_reason() -> None:
    key = Key()
    for after in (-1.0, float("nan")):
        with pytest.raises(UsageError, match="add\\(a/1\\): after must be seconds, 0 or more"):
            key.add(after=after)
    for options in {"max_attempts": 0}, {"group_limit": 0}, {"min_interval": -1.0}, {"ageing": 0.0}:
        with pytest.raises(OptionError, match=f"QueueOptions: {next(iter(options))} must be"):
            QueueOptions(**options)
