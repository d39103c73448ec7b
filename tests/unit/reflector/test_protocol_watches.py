"""Watches: requests, events and ends."""

from __future__ import annotations

import pytest

from aioinformer.reflector import Phase, ReflectorOptions
from aioinformer.reflector.protocol.messages import Elapsed
from aioinformer.reflector.watch_events import WatchEvent
from tests.support.conversation import Conversation, watching
from tests.support.wire_objects import added, bookmark, deleted, initial_events_end, modified


@pytest.mark.conformance("REF-36")
def test_watch_requests_bookmarks_from_the_last_version() -> None:
    talk = watching(version=10)
    talk.end(after=60)
    assert dict(talk.request().options.to_query()) == {
        "watch": "true",
        "resourceVersion": "10",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "300",
    }


@pytest.mark.conformance("REF-05")
def test_watch_timeout_is_random_up_to_twice_the_minimum() -> None:
    talk = Conversation(ReflectorOptions(streaming_list=False, min_watch_timeout=100), random=lambda: 0.999)
    talk.answer_list()
    assert talk.request().options.timeout_seconds == 199


@pytest.mark.conformance("REF-43")
def test_events_are_delivered_in_order() -> None:
    talk = watching("a")
    talk.events(added("b", 11), modified("a", 12), deleted("b", 13), added("b", 14))
    assert talk.news == ["replaced", "Added ns/b", "Updated ns/a", "Deleted ns/b", "Added ns/b"]


@pytest.mark.conformance("REF-43", "REF-44")
def test_version_follows_events_and_bookmarks() -> None:
    talk = watching()
    versions = []
    for event in (added("a", 11), modified("a", 12), bookmark(20), deleted("a", 21)):
        talk.events(event)
        versions.append(talk.protocol.version)
    assert versions == ["11", "12", "20", "21"]


@pytest.mark.conformance("REF-42")
def test_unknown_event_type_is_logged_and_skipped() -> None:
    talk = watching("a")
    talk.events(WatchEvent("FROBNICATED"), modified("a", 11))
    assert talk.news == ["replaced", "Updated ns/a"]
    assert "FROBNICATED" in talk.lines[-1]
    assert talk.reads


@pytest.mark.conformance("REF-38")
def test_ended_watch_reopens_at_once_from_its_version() -> None:
    talk = watching()
    for minute in range(1, 10):
        talk.end(after=60)
        assert talk.ask() == "watch @10"
        assert talk.now == 60 * minute
        talk.accept()
    assert talk.protocol.phase is Phase.WATCHING


@pytest.mark.conformance("REF-39")
def test_watch_that_ends_at_once_is_a_failure() -> None:
    talk = watching("a")
    delays = []
    for _ in range(3):
        talk.end(after=0.5)
        delays.append(talk.delay())
        assert talk.protocol.phase is Phase.BACKING_OFF
        assert "ends watches" in talk.protocol.reason
        talk.open()
    assert delays == pytest.approx([0.8, 1.6, 3.2])


@pytest.mark.conformance("REF-39")
@pytest.mark.parametrize("cut", [False, True], ids=["ended", "cut"])
def test_short_watch_with_news_reopens_at_once(cut: bool) -> None:
    talk = watching("a")
    for turn in range(2):
        talk.events(modified("a", 11 + turn))
        talk.break_off(after=0.5) if cut else talk.end(after=0.5)
        assert talk.delay() == 0
        assert talk.open() == f"watch @{11 + turn}"
    assert talk.protocol.phase is Phase.WATCHING
    assert talk.reports == []


@pytest.mark.parametrize("cut", [False, True], ids=["ended", "cut"])
def test_reopening_is_limited_to_three_watches_in_two_seconds(cut: bool) -> None:
    talk = watching("a")
    for turn in range(20):
        talk.events(modified("a", 11 + turn))
        talk.break_off() if cut else talk.end()
        assert talk.open() == f"watch @{11 + turn}"
    sent = [when for when, _ in talk.asked]
    assert all(later - earlier >= 2 for earlier, later in zip(sent[1:], sent[4:], strict=False))
    assert sent[-1] < 16


@pytest.mark.parametrize("cut", [False, True], ids=["ended", "cut"])
def test_short_watches_that_repeat_an_event_are_delayed(cut: bool) -> None:
    talk = watching("a")
    talk.events(modified("a", 11), after=60)
    delays = []
    for _ in range(4):
        talk.break_off() if cut else talk.end()
        delays.append(talk.delay())
        talk.open()
        talk.events(modified("a", 11))
    assert delays[:2] == [0, 0]
    assert delays[2:] == pytest.approx([2.0, 2.0], abs=0.5)


def test_watch_with_progress_resets_the_backoff() -> None:
    talk = watching("a")
    for _ in range(5):
        talk.break_off()
        talk.open()
    talk.events(modified("a", 11))
    talk.end()
    talk.break_next()
    assert talk.delay() == pytest.approx(0.8)


# Silence.


def test_watch_after_a_silent_one_has_no_silence_limit() -> None:
    talk = watching()
    talk.idle()
    talk.open()
    assert (talk.silence, talk.patience) == (None, 300 + 30)
    assert talk.protocol.phase is Phase.WATCHING
    assert talk.reports == []


def quiet(version: int = 10) -> Conversation:
    """A conversation about a collection in which nothing happens."""
    talk = watching("a", version=version)
    talk.idle()
    talk.open()
    talk.now += 90
    return talk


@pytest.mark.parametrize("event", [modified("a", 11), bookmark(10), bookmark(11)], ids=["event", "same", "bookmark"])
def test_event_or_bookmark_ends_the_quiet_state(event: WatchEvent) -> None:
    talk = quiet()
    talk.events(event, after=100)
    assert (talk.silence, talk.patience) == (90, None)
    talk.idle()
    assert talk.ask() in ("watch @10", "watch @11")
    talk.accept()
    assert talk.silence is None


# Silence of a server that has sent bookmarks regularly.


def regular() -> Conversation:
    """A conversation with a server that has sent three bookmarks, the last of them after 180 s."""
    talk = watching("a")
    for version in (11, 12, 13):
        talk.events(bookmark(version), after=60)
    return talk


def shown(talk: Conversation) -> tuple[Phase, float | None]:
    """Return the phase, and up to when the cache is fresh; None for now."""
    return talk.protocol.phase, talk.protocol.state.fresh_at


def test_silent_server_with_bookmarks_makes_the_cache_stale_from_the_last() -> None:
    talk = regular()
    assert shown(talk) == (Phase.WATCHING, None)
    talk.idle()
    assert shown(talk) == (Phase.BACKING_OFF, 180)
    assert "the server sends bookmarks regularly" in talk.protocol.reason
    assert (talk.delay(), talk.open()) == (0, "watch @13")
    assert shown(talk) == (Phase.BACKING_OFF, 180)
    assert talk.silence == 90
    assert talk.reports == []


@pytest.mark.parametrize("event", [modified("a", 14), bookmark(13)], ids=["event", "bookmark"])
def test_event_or_bookmark_makes_the_cache_fresh_again(event: WatchEvent) -> None:
    talk = regular()
    talk.idle()
    talk.open()
    talk.events(event, after=20)
    assert shown(talk) == (Phase.WATCHING, None)
    assert (talk.silence, talk.patience) == (90, None)
    talk.idle()
    assert shown(talk) == (Phase.BACKING_OFF, 290)


def test_list_after_two_silent_watches_decides_how_fresh_the_cache_is() -> None:
    talk = regular()
    for _ in range(3):
        talk.idle()
        assert talk.open() == "watch @13"
        talk.idle()
        assert talk.ask() == "list limit=500"
        requested_at = talk.now
        talk.page("a", version=13, after=5)
        assert shown(talk) == (Phase.BACKING_OFF, requested_at)
        talk.open()
        assert shown(talk) == (Phase.BACKING_OFF, requested_at)
    talk.events(bookmark(14))
    assert shown(talk) == (Phase.WATCHING, None)


def test_list_that_fails_after_two_silent_watches_leaves_the_cache_stale() -> None:
    talk = regular()
    talk.idle()
    talk.open()
    talk.idle()
    talk.refuse_next(503)
    assert shown(talk) == (Phase.BACKING_OFF, 180)
    assert talk.ask() == "list limit=500"


@pytest.mark.parametrize("times", [(60, 60), (60, 100, 60), (60, 0, 0)], ids=["two", "apart", "at once"])
def test_bookmarks_that_are_not_regular_promise_nothing(times: tuple[int, ...]) -> None:
    talk = watching("a")
    for version, after in enumerate(times, 11):
        talk.events(bookmark(version), after=after)
    talk.idle()
    assert shown(talk) == (Phase.WATCHING, None)
    talk.open()
    assert (talk.silence, shown(talk)) == (None, (Phase.WATCHING, None))


def test_streaming_list_ends_the_doubt_about_watches() -> None:
    talk = Conversation()
    talk.open()
    talk.events(initial_events_end(10))
    for version in (11, 12, 13):
        talk.events(bookmark(version), after=60)
    for _ in range(2):
        talk.idle()
        asked = talk.ask()
        talk.accept()
    assert asked == "list limit=500"
    talk.break_off()
    assert talk.open() == "stream @13"
    assert shown(talk) == (Phase.BACKING_OFF, 180)
    talk.events(initial_events_end(20))
    assert shown(talk) == (Phase.WATCHING, None)


# After the server was lost.


def lost_and_back(version: int = 100) -> Conversation:
    """A conversation with a server that was not reached once, and whose watch is silent since then."""
    talk = watching("a", version=version)
    talk.break_off(after=60)
    talk.break_next()
    talk.open()
    talk.idle()
    return talk


def test_lower_version_at_the_check_means_a_restored_server() -> None:
    talk = lost_and_back()
    talk.answer_list(version=40)
    assert talk.ask() == "list limit=500"
    talk.page("b", version=41)
    assert talk.news == ["replaced", "replaced"]
    assert list(talk.cache) == ["ns/b"]
    assert talk.ask() == "watch @41"


@pytest.mark.parametrize("how", ["refused", "cut", "5xx"])
def test_quiet_watch_after_an_outage_is_checked_once(how: str) -> None:
    talk = quiet(version=100)
    if how == "cut":
        talk.break_off(after=100)
    else:
        talk.end(after=100)
        talk.ask()
        talk.break_off() if how == "refused" else talk.refuse(503)
    talk.open()
    assert talk.silence == 90
    talk.idle()
    assert talk.ask() == "list limit=1"
    talk.page("a", version=100)
    assert talk.open() == "watch @100"
    assert talk.silence is None


@pytest.mark.parametrize("status", [403, 500, 503])
def test_refused_check_does_not_affect_the_watch(status: int) -> None:
    talk = lost_and_back()
    reports = len(talk.reports)
    talk.refuse_next(status)
    assert talk.delay() == 0
    assert talk.ask() == "watch @100"
    assert (len(talk.reports), talk.news) == (reports, ["replaced"])


# Heads that come late.


def test_watch_without_a_head_is_open_after_ten_seconds() -> None:
    talk = Conversation(ReflectorOptions(streaming_list=False))
    talk.answer_list("a")
    assert (talk.request().patience, talk.protocol.phase) == (10, Phase.SYNCING)
    talk.no_head()
    assert talk.protocol.phase is Phase.WATCHING
    assert talk.silence == 90
    talk.accept(after=60)
    talk.events(modified("a", 11))
    assert talk.news == ["replaced", "Updated ns/a"]


def headless() -> Conversation:
    """A conversation whose watch has had no head for 90 s."""
    talk = Conversation(ReflectorOptions(streaming_list=False))
    talk.answer_list("a")
    talk.ask()
    talk.no_head()
    assert shown(talk) == (Phase.WATCHING, None)
    talk.idle(80)
    return talk


def test_watch_without_a_head_is_fresh_for_the_idle_timeout_at_most() -> None:
    talk = headless()
    assert shown(talk) == (Phase.BACKING_OFF, 90)
    assert "has had no answer for 90 s" in talk.protocol.reason
    assert talk.ask() == "watch @10"
    talk.no_head()
    assert shown(talk) == (Phase.BACKING_OFF, 90)
    assert (talk.silence, talk.patience) == (None, 320)


@pytest.mark.parametrize("late", [False, True])
def test_head_of_a_watch_makes_the_cache_fresh_again(late: bool) -> None:
    talk = headless()
    talk.ask()
    if late:
        talk.no_head()
    talk.accept(after=5)
    assert shown(talk) == (Phase.WATCHING, None)


def test_head_that_is_late_after_a_silent_watch_is_noticed() -> None:
    talk = quiet()
    talk.end(after=100)
    talk.ask()
    asked = talk.now
    talk.no_head()
    assert shown(talk) == (Phase.WATCHING, None)
    assert talk.patience == 80
    talk.answer(Elapsed(), after=80)
    assert shown(talk) == (Phase.BACKING_OFF, asked + 90)
    assert talk.reads
    assert talk.patience == 240
    talk.accept(after=60)
    assert shown(talk) == (Phase.WATCHING, None)


def test_unreachable_server_is_never_watching() -> None:
    talk = watching("a")
    talk.end(after=60)
    for _ in range(5):
        assert talk.ask() == "watch @10"
        if (patience := talk.request().patience) is not None and patience < 11:
            talk.no_head(after=patience)
        talk.break_off(after=11)
        assert talk.protocol.phase is Phase.BACKING_OFF
        assert talk.delay() > 0
        assert talk.protocol.state.pace.attempts
    assert talk.protocol.state.pace.attempts == 5


# Collections without versions, or without watches.


def test_list_that_lost_its_version_is_refused() -> None:
    talk = watching("a", "b", version=10)
    talk.error(410, after=60)
    talk.answer_list("a", version="")
    assert talk.news == ["replaced"]
    assert talk.protocol.reason == "the list has no resourceVersion"


# Watches that bring nothing.


# Lines that cannot be read.


def test_broken_line_is_read_again_once_before_a_list() -> None:
    talk = watching("a")
    talk.events(modified("a", 15), after=60)
    talk.broken_line()
    assert talk.ask() == "watch @15"
    assert talk.now == 60
    talk.accept()
    talk.broken_line()
    assert talk.protocol.phase is Phase.BACKING_OFF
    assert talk.delay() > 0
    assert talk.ask() == "list limit=500"


# All of it together.


def test_resource_that_declares_no_watch_is_only_listed() -> None:
    talk = Conversation(watchable=False)
    for _ in range(3):
        assert talk.ask() == "list limit=500"
        talk.page("a", version=10)
        assert talk.protocol.phase is Phase.POLLING
    assert talk.news == ["replaced"] * 3
