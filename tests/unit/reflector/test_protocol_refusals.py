"""Refused requests: when they are retried, and the phase in the meantime."""

from __future__ import annotations

from itertools import pairwise

import pytest

from aioinformer.backoff import MAX_RETRY_AFTER, BackoffOptions
from aioinformer.reflector import Phase, ReflectorOptions
from tests.support.conversation import Conversation, watching
from tests.support.wire_objects import initial_events_end

PAGES = ReflectorOptions(streaming_list=False)
STREAMING = ReflectorOptions()


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("options", [PAGES, STREAMING], ids=["pages", "streaming"])
def test_nothing_is_requested_before_retry_after(options: ReflectorOptions, status: int) -> None:
    talk = Conversation(options)
    talk.refuse_next(status, retry_after=17)
    assert talk.delay() == 17
    talk.ask()
    assert talk.now == 17


@pytest.mark.conformance("REF-40")
def test_throttled_watch_event_is_delayed_without_a_list() -> None:
    talk = watching("a")
    talk.error(429, after=60)
    assert talk.delay() > 0
    assert talk.ask() == "watch @10"


def test_delay_that_the_server_asks_for_does_not_grow() -> None:
    talk = watching("a")
    talk.end(after=60)
    delays = []
    for _ in range(12):
        talk.refuse_next(429, retry_after=3)
        delays.append(talk.delay())
    assert delays == [3] * 12
    talk.refuse_next(500)
    assert talk.delay() == pytest.approx(3.2)  # the last two counted as failures, since there were ten before


def test_server_that_asks_for_a_short_delay_for_long_is_left_alone() -> None:
    talk = Conversation(PAGES)
    delays = []
    for _ in range(16):
        talk.refuse_next(503, retry_after=1)
        delays.append(talk.delay())
    assert max(delays[:10]) <= 2
    assert delays[-1] > 20


def test_lost_version_does_not_renew_the_delays_of_the_server() -> None:
    talk = Conversation(PAGES)
    for _ in range(10):
        talk.refuse_next(503, retry_after=1)
    while talk.now < 120:
        talk.refuse_next(410, retry_after=1)
    assert len(talk.asked) <= 20


# Streaming lists that are refused with 429, while pages are not.


def refused_streams(talk: Conversation, retry_after: float | None = 1) -> int:
    """Refuse streaming lists until something else is requested; return how many there were."""
    for count in range(1000):
        if talk.ask() != "stream":
            return count
        talk.refuse(429, retry_after=retry_after)
    raise AssertionError("no page is tried")


@pytest.mark.conformance("REF-31")
@pytest.mark.parametrize("retry_after", [1, None, 30])
def test_page_is_tried_after_a_minute_of_refused_streaming_lists(retry_after: float | None) -> None:
    talk = Conversation(STREAMING)
    assert refused_streams(talk, retry_after) >= 5
    assert 60 < talk.now <= 150
    assert talk.asked[-1][1] == "list limit=500"
    talk.page("a")
    talk.open()
    assert talk.protocol.phase is Phase.WATCHING
    talk.error(500, after=200)
    assert talk.ask() == "stream @10"


def test_page_that_is_refused_too_changes_no_delay() -> None:
    talk, plain = Conversation(STREAMING), Conversation(PAGES)
    for each in (talk, plain):
        for _ in range(60):
            each.refuse_next(429, retry_after=1)
    assert [when for when, _ in talk.asked] == [when for when, _ in plain.asked]
    pages = [number for number, (_, asked) in enumerate(talk.asked) if asked == "list limit=500"]
    assert len(pages) > 1
    times = [talk.asked[number][0] for number in pages]
    assert all(later - earlier >= 5 for earlier, later in zip([-1, *pages], pages, strict=False))
    assert all(later - earlier > 60 for earlier, later in zip([0.0, *times], times, strict=False))


def test_other_refusals_begin_the_minute_of_streaming_lists_anew() -> None:
    talk = Conversation(STREAMING)
    for _ in range(20):
        talk.refuse_next(429, retry_after=2)
    talk.refuse_next(404)
    began = talk.now
    assert refused_streams(talk) >= 5
    assert talk.now - began > 60


@pytest.mark.parametrize("status", [429, 500])
def test_backoff_grows_although_watches_open_in_between(status: int) -> None:
    talk = watching("a")
    for _ in range(30):
        talk.error(status, retryAfterSeconds=1)
        if talk.ask().startswith("list"):
            talk.page("a")
            talk.ask()
        talk.accept()
    assert talk.now > 300


def test_excessive_retry_after_is_capped() -> None:
    talk = watching("a")
    talk.error(429, after=60, retryAfterSeconds=1e15)
    assert talk.delay() == MAX_RETRY_AFTER


@pytest.mark.conformance("REF-06")
def test_resource_that_is_served_later_is_noticed_within_ten_seconds() -> None:
    talk, other = Conversation(PAGES), Conversation(PAGES)
    for _ in range(30):
        talk.refuse_next(404)
        other.refuse_next(500)
    talk.ask()
    times = [when for when, _ in talk.asked]
    assert max(later - earlier for earlier, later in pairwise(times)) < 10
    assert talk.now < other.now / 3
    rare = Conversation(ReflectorOptions(streaming_list=False, backoff=BackoffOptions(initial=60, cap=60, jitter=0)))
    rare.refuse_next(404)
    assert rare.delay() == 60


@pytest.mark.parametrize(
    ("status", "phase"),
    [
        (401, Phase.UNAUTHORIZED),
        (403, Phase.FORBIDDEN),
        (404, Phase.NOT_FOUND),
        (405, Phase.NOT_ALLOWED),
        (500, Phase.BACKING_OFF),
    ],
)
@pytest.mark.parametrize("options", [PAGES, STREAMING], ids=["pages", "streaming"])
def test_refused_list_is_reported_and_recovers(options: ReflectorOptions, status: int, phase: Phase) -> None:
    talk = Conversation(options)
    if options is STREAMING and status == 405:
        talk.refuse_next(405)
    for _ in range(3):
        talk.refuse_next(status, "Because")
        assert (talk.protocol.phase, talk.protocol.reason) == (phase, f"{status} Because")
    if talk.ask() == "stream":
        talk.accept()
        talk.events(initial_events_end(10))
    else:
        talk.page("a")
        talk.open()
    assert (talk.protocol.phase, talk.protocol.reason) == (Phase.WATCHING, "")


@pytest.mark.parametrize(("status", "phase"), [(403, Phase.FORBIDDEN), (405, Phase.POLLING)])
def test_forbidden_watch_falls_back_to_periodic_lists(status: int, phase: Phase) -> None:
    talk = Conversation(PAGES)
    for round_ in range(12):
        assert talk.ask() == "list limit=500"
        talk.page("a", version=10 + round_)
        assert talk.ask() == f"watch @{10 + round_}"
        talk.refuse(status)
    assert talk.news == ["replaced"] * 12
    assert talk.protocol.phase is phase
    assert talk.delay() == 30


@pytest.mark.parametrize("status", [429, 503, 504])
def test_busy_server_that_refuses_watches_gets_no_list(status: int) -> None:
    talk = watching("a")
    talk.end(after=60)
    asked = []
    for _ in range(8):
        asked.append(talk.ask())
        talk.refuse(status, retry_after=2)
    assert asked == ["watch @10"] * 8


@pytest.mark.conformance("REF-37", "REF-51")
def test_unreachable_server_is_retried_with_the_watch() -> None:
    talk = watching("a")
    talk.break_off(after=60)
    assert talk.ask() == "watch @10"
    for _ in range(10):
        talk.break_off()
        assert talk.delay() > 0
        assert talk.ask() == "watch @10"
    assert talk.protocol.phase is Phase.BACKING_OFF


@pytest.mark.conformance("REF-40")
def test_watch_error_event_leads_to_a_list() -> None:
    talk = watching("a", "b")
    talk.error(500, after=60)
    assert talk.delay() > 0
    talk.answer_list("a", version=20)
    assert list(talk.cache) == ["ns/a"]


@pytest.mark.conformance("REF-06", "REF-08")
def test_delays_double_up_to_thirty_seconds() -> None:
    talk = Conversation(PAGES)
    delays = []
    for _ in range(8):
        talk.break_next()
        delays.append(round(talk.delay(), 3))
    assert delays == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30]


@pytest.mark.conformance("REF-06")
def test_two_healthy_minutes_reset_the_delay() -> None:
    talk = Conversation(PAGES)
    for _ in range(5):
        talk.break_next()
    talk.relist("a")
    talk.error(500, after=120)
    assert talk.delay() == pytest.approx(0.8)


@pytest.mark.parametrize("options", [PAGES, STREAMING], ids=["pages", "streaming"])
def test_alternating_403_of_list_and_watch_is_one_state(options: ReflectorOptions) -> None:
    talk, reasons = Conversation(options), []
    for _ in range(10):
        asked = talk.ask()
        talk.refuse(403, "cannot list" if asked.startswith("list") else "cannot watch")
        reasons.append(talk.protocol.reason)
    assert set(reasons) == {reasons[0]}, reasons
    assert len(set(talk.reports)) == (2 if options.streaming_list else 1)
