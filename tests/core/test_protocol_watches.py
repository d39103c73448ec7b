"""Watches: what is asked, what their events say, and how they end."""

from __future__ import annotations

import pytest

from aioinformer.options import ReflectorOptions
from aioinformer.state import Phase
from aioinformer.steps import Changed, Watched
from aioinformer.wire import WatchEvent
from tests.core.conversation import Conversation, watching
from tests.core.wire_objects import added, bookmark, deleted, modified


@pytest.mark.conformance("REF-36")
def test_a_watch_asks_for_bookmarks_from_the_last_version() -> None:
    talk = watching(version=10)
    talk.end(after=60)
    assert dict(talk.request().options.to_query()) == {
        "watch": "true",
        "resourceVersion": "10",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "300",
    }


@pytest.mark.conformance("REF-05")
def test_watches_ask_to_be_ended_after_a_random_time_up_to_twice_the_least() -> None:
    talk = Conversation(ReflectorOptions(streaming_list=False, min_watch_timeout=100), random=lambda: 0.999)
    talk.ask()
    talk.page()
    assert talk.request().options.timeout_seconds == 199


@pytest.mark.conformance("REF-43")
def test_events_are_told_in_their_order() -> None:
    talk = watching("a")
    talk.events(added("b", 11), modified("a", 12), deleted("b", 13), added("b", 14))
    assert talk.news == ["replaced", "Added ns/b", "Updated ns/a", "Deleted ns/b", "Added ns/b"]


@pytest.mark.conformance("REF-43", "REF-44")
def test_the_version_follows_events_and_bookmarks() -> None:
    talk = watching()
    versions = []
    for event in (added("a", 11), modified("a", 12), bookmark(20), deleted("a", 21)):
        talk.events(event)
        versions.append(talk.protocol.version)
    assert versions == ["11", "12", "20", "21"]


def test_a_bookmark_alone_says_nothing_but_the_version() -> None:
    talk = watching()
    assert talk.protocol.receive(Watched([bookmark(20)]), talk.now) == [Changed([], "20")]


def test_a_bookmark_without_a_version_changes_nothing() -> None:
    talk = watching()
    talk.events(bookmark(""))
    assert talk.protocol.version == "10"
    assert talk.reads


@pytest.mark.conformance("REF-42")
def test_an_event_of_unknown_type_is_told_to_the_log_and_skipped() -> None:
    talk = watching("a")
    talk.events(WatchEvent("FROBNICATED"), modified("a", 11))
    assert talk.news == ["replaced", "Updated ns/a"]
    assert "FROBNICATED" in talk.lines[-1]
    assert talk.reads


@pytest.mark.conformance("REF-38")
def test_a_watch_that_the_server_ends_is_opened_again_at_once_from_its_version() -> None:
    talk = watching()
    for minute in range(1, 10):
        talk.end(after=60)
        assert talk.ask() == "watch @10"
        assert talk.now == 60 * minute
        talk.accept()
    assert talk.protocol.phase is Phase.WATCHING


@pytest.mark.parametrize("events", [0, 1], ids=["empty", "with-events"])
@pytest.mark.conformance("REF-39")
def test_the_first_watch_that_ends_at_once_is_opened_again_at_once_and_the_next_is_paced(events: int) -> None:
    talk = watching("a")
    delays = []
    for turn in range(4):
        talk.events(*[modified("a", 11 + turn)] * events)
        talk.end(after=0.5)
        delays.append(talk.delay())
        talk.ask()
        talk.accept() if talk.asked[-1][1].startswith("watch") else None
    assert delays == pytest.approx([0, 0.8, 1.6, 3.2])


@pytest.mark.conformance("REF-39")
def test_watches_that_keep_ending_at_once_show_why() -> None:
    talk = watching()
    talk.end()
    talk.ask()
    talk.accept()
    talk.end()
    assert talk.protocol.phase is Phase.BACKING_OFF
    assert "ends watches" in talk.protocol.reason


def test_a_watch_that_lived_makes_the_next_short_one_the_first_again() -> None:
    talk = watching()
    talk.end()
    talk.ask()
    talk.accept()
    talk.end(after=1)
    assert talk.delay() == 0
    talk.ask()
    talk.accept()
    talk.end()
    assert talk.delay() == 0


@pytest.mark.conformance("REF-39")
def test_a_version_that_only_gives_watches_that_end_at_once_is_given_up_for_a_list() -> None:
    talk = watching()
    asked = []
    for _ in range(4):
        talk.end()
        asked.append(talk.ask())
        talk.accept()
    assert asked == ["watch @10", "watch @10", "watch @10", "list limit=500"]


@pytest.mark.conformance("REF-39")
def test_short_watches_that_bring_events_never_lead_to_a_list() -> None:
    talk = watching("a")
    for turn in range(20):
        talk.events(modified("a", 11 + turn))
        talk.end()
        assert talk.ask() == f"watch @{11 + turn}"
        talk.accept()


@pytest.mark.conformance("REF-37")
def test_a_watch_whose_connection_breaks_is_opened_again_from_its_version_after_a_delay() -> None:
    talk = watching("a")
    talk.events(modified("a", 15), after=60)
    talk.break_off()
    assert talk.delay() == pytest.approx(0.8)
    assert talk.protocol.phase is Phase.BACKING_OFF
    assert talk.ask() == "watch @15"


# Silence.


def test_the_first_watch_that_falls_silent_is_opened_again_at_once_and_not_shown() -> None:
    talk = watching()
    talk.idle()
    assert talk.protocol.phase is Phase.WATCHING
    assert talk.ask() == "watch @10"
    assert talk.now == 90


def test_the_second_watch_in_a_row_that_falls_silent_is_a_failure() -> None:
    talk = watching()
    talk.idle()
    talk.ask()
    talk.accept()
    talk.idle()
    assert talk.protocol.phase is Phase.BACKING_OFF
    assert talk.protocol.reason == "no event came for 90 s"
    assert talk.delay() > 0
    assert talk.ask() == "watch @10"


def test_a_watch_that_said_something_before_it_fell_silent_is_the_first_again() -> None:
    talk = watching()
    for turn in range(4):
        talk.events(bookmark(11 + turn))
        talk.idle()
        assert talk.delay() == 0
        talk.ask()
        talk.accept()
    assert talk.protocol.phase is Phase.WATCHING


def test_events_of_an_earlier_watch_do_not_excuse_silent_ones() -> None:
    talk = watching()
    talk.events(bookmark(11))
    talk.end(after=60)
    for _ in range(2):
        talk.ask()
        talk.accept()
        talk.idle()
    assert talk.protocol.phase is Phase.BACKING_OFF


def test_a_watch_with_events_makes_the_vain_ones_before_it_forgotten() -> None:
    talk = watching("a")
    for turn in range(8):
        talk.events(*[modified("a", 11 + turn)] * (turn % 3 == 2))
        talk.end()
        assert talk.ask().startswith("watch")
        talk.accept()


def test_vain_watches_before_a_list_do_not_count_after_it() -> None:
    talk = watching()
    for _ in range(3):
        talk.end()
        talk.ask()
        talk.accept()
    talk.error(500, after=60)
    assert talk.ask() == "list limit=500"
    talk.page(version=20)
    talk.ask()
    talk.accept()
    talk.end()
    assert talk.ask() == "watch @20"


# Lines that cannot be read.


def test_a_broken_line_is_read_again_once_and_then_comes_a_list() -> None:
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


def test_a_broken_line_that_takes_its_time_is_read_again_only_once_too() -> None:
    talk = watching("a")
    talk.broken_line(after=60)
    talk.ask()
    talk.accept()
    talk.broken_line(after=60)
    assert talk.delay() > 0
    assert talk.ask() == "list limit=500"


def test_another_broken_line_after_events_that_were_well_is_read_again_too() -> None:
    talk = watching("a")
    talk.broken_line(after=60)
    talk.ask()
    talk.accept()
    talk.events(modified("a", 15), after=60)
    talk.broken_line()
    assert talk.ask() == "watch @15"


def test_broken_lines_after_every_event_are_paced() -> None:
    talk = watching("a")
    for turn in range(20):
        talk.events(modified("a", 11 + turn))
        talk.broken_line()
        if talk.ask().startswith("list"):
            talk.page("a", version=11 + turn)
            talk.ask()
        talk.accept()
    assert len([when for when, _ in talk.asked if when < 2]) < 8


# All of it together.


def test_several_faults_at_once_make_no_more_than_three_bad_requests_in_two_seconds() -> None:
    talk = Conversation()
    talk.ask()
    talk.refuse(422)
    talk.ask()
    talk.page("a")
    while talk.ask().startswith("watch") and talk.now < 2:
        talk.accept()
        talk.end()
    early = [words for when, words in talk.asked if when < 2]
    assert early == ["stream", "list limit=500", "watch @10", "watch @10"]
