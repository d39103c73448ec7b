"""Streaming lists: what they ask, what completes them, and what leads from them to pages."""

from __future__ import annotations

import pytest

from aioinformer.reflector.messages import Elapsed
from aioinformer.reflector.options import ReflectorOptions
from aioinformer.reflector.protocol import STREAMING_PROBE
from aioinformer.reflector.state import Phase
from tests.core.conversation import Conversation
from tests.core.wire_objects import added, bookmark, deleted, initial_events_end, modified


def streaming() -> Conversation:
    talk = Conversation()
    assert talk.ask() == "stream"
    talk.accept()
    return talk


@pytest.mark.conformance("REF-09", "REF-26", "WEAK-13", "ARC-01")
def test_the_first_request_is_a_streaming_list_of_what_is_true_now() -> None:
    options = Conversation().request().options
    assert dict(options.to_query()) == {
        "watch": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "300",
    }


@pytest.mark.conformance("REF-26")
def test_a_later_streaming_list_is_not_older_than_what_is_cached() -> None:
    talk = streaming()
    talk.events(initial_events_end(7))
    talk.error(500)
    assert talk.ask() == "stream @7"


@pytest.mark.conformance("REF-15", "REF-28", "REF-30")
def test_a_streaming_list_becomes_the_watch_without_another_request() -> None:
    talk = streaming()
    talk.events(added("a", 3), added("b", 5), initial_events_end(7))
    talk.events(modified("a", 8))
    assert talk.news == ["replaced", "Updated ns/a"]
    assert talk.asked == [(0.0, "stream")]
    assert talk.protocol.phase is Phase.WATCHING


def test_events_behind_the_end_of_a_streaming_list_in_one_read_are_not_lost() -> None:
    talk = streaming()
    talk.events(added("a", 3), initial_events_end(7), modified("a", 8), deleted("a", 9))
    assert talk.news == ["replaced", "Updated ns/a", "Deleted ns/a"]
    assert talk.protocol.version == "9"


@pytest.mark.conformance("REF-27")
def test_changes_before_the_end_of_a_streaming_list_are_part_of_it() -> None:
    talk = streaming()
    talk.events(added("a", 3), added("b", 4), modified("a", 5), deleted("b", 6), initial_events_end(6))
    assert {key: item.resource_version for key, item in talk.cache.items()} == {"ns/a": "5"}


@pytest.mark.conformance("REF-29")
def test_versions_of_initial_events_are_no_versions_of_the_collection() -> None:
    talk = streaming()
    talk.events(added("a", 9), added("b", 4))
    assert (talk.protocol.version, talk.news) == ("", [])
    talk.events(initial_events_end(12))
    assert talk.protocol.version == "12"


@pytest.mark.conformance("REF-29", "REF-44")
def test_a_list_after_a_stream_that_broke_off_does_not_go_on_from_an_initial_event() -> None:
    talk = streaming()
    talk.events(added("a", 9))
    talk.end()
    assert talk.ask() == "stream"
    talk.accept()
    talk.events(added("a", 5), initial_events_end(6))
    assert (talk.protocol.version, talk.news) == ("6", ["replaced"])


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.conformance("REF-31", "LW-05", "FG-02")
def test_a_server_that_refuses_streaming_lists_is_asked_for_pages_at_once(status: int) -> None:
    talk = Conversation()
    talk.ask()
    talk.refuse(status)
    assert talk.ask() == "list limit=500"
    assert talk.now == 0


@pytest.mark.conformance("WEAK-14")
def test_a_server_that_refused_streaming_lists_is_not_asked_for_one_at_the_next_relist() -> None:
    talk = Conversation()
    talk.ask()
    talk.refuse(422)
    talk.ask()
    talk.page()
    talk.ask()
    talk.accept()
    talk.error(500, after=STREAMING_PROBE / 2)
    assert talk.ask() == "list limit=500"


@pytest.mark.conformance("WEAK-14")
def test_a_server_that_refused_streaming_lists_is_asked_again_after_a_time() -> None:
    talk = Conversation()
    talk.ask()
    talk.refuse(422)
    talk.ask()
    talk.page()
    talk.ask()
    talk.accept()
    talk.error(500, after=STREAMING_PROBE)
    assert talk.ask() == "stream @10"


@pytest.mark.conformance("LW-05", "FG-02", "REF-28")
def test_an_ordinary_bookmark_before_the_end_tells_a_server_that_ignores_streaming_lists() -> None:
    talk = streaming()
    talk.events(added("a", 3), bookmark(7), initial_events_end(8))
    assert talk.news == []
    assert talk.ask() == "list limit=500"
    assert talk.now == 0


@pytest.mark.conformance("REF-34")
def test_a_stream_without_a_new_object_for_thirty_seconds_is_no_streaming_list() -> None:
    talk = streaming()
    talk.events(added("a", 3), after=10)
    assert talk.patience == 30
    talk.events(modified("a", 4), after=20)
    assert talk.patience == 10
    talk.answer(Elapsed(), after=10)
    assert talk.ask() == "list limit=500"


@pytest.mark.conformance("REF-34")
def test_a_stream_that_repeats_its_objects_is_noticed_without_a_timer() -> None:
    talk = streaming()
    talk.events(added("a", 3))
    for version in range(4, 34):
        assert talk.reads
        talk.events(modified("a", version), after=1)
    assert talk.ask() == "list limit=500"


def test_a_streaming_list_that_makes_progress_is_never_cut_off() -> None:
    talk = streaming()
    for number in range(100):
        talk.events(added(f"pod-{number}", number + 1), after=29)
        assert talk.reads
    talk.events(initial_events_end(500), after=29)
    assert len(talk.cache) == 100
    assert talk.asked == [(0.0, "stream")]


@pytest.mark.conformance("REF-33", "WEAK-15")
def test_a_stream_that_ends_before_it_is_complete_is_begun_again_once_and_then_costs_a_delay() -> None:
    talk = streaming()
    talk.events(added("a", 3))
    talk.end()
    assert talk.ask() == "stream"
    assert talk.now == 0
    talk.accept()
    talk.end()
    assert talk.delay() > 0
    assert talk.ask() == "list limit=500"


@pytest.mark.conformance("REF-33")
def test_a_stream_that_lasted_and_ends_before_it_is_complete_is_followed_by_pages_after_a_delay() -> None:
    talk = streaming()
    talk.events(added("a", 3))
    talk.end(after=5)
    assert talk.delay() > 0
    assert talk.ask() == "list limit=500"


@pytest.mark.conformance("REF-33")
def test_what_an_incomplete_stream_brought_is_forgotten() -> None:
    talk = streaming()
    talk.events(added("a", 3))
    talk.end()
    talk.ask()
    talk.accept()
    talk.events(added("b", 4), initial_events_end(5))
    assert list(talk.cache) == ["ns/b"]


@pytest.mark.parametrize("status", [403, 500, 503])
@pytest.mark.conformance("REF-13", "REF-31")
def test_whoever_may_not_stream_is_served_by_pages_after_a_delay(status: int) -> None:
    talk = Conversation()
    talk.ask()
    talk.refuse(status)
    assert talk.delay() > 0
    assert talk.ask() == "list limit=500"


def test_a_stream_that_is_no_method_of_the_resource_is_replaced_by_pages_at_once() -> None:
    talk = Conversation()
    talk.ask()
    talk.refuse(405)
    assert talk.ask() == "list limit=500"
    assert talk.now == 0


def test_a_stream_without_a_head_is_replaced_by_pages() -> None:
    talk = Conversation()
    assert talk.request().patience == 30
    talk.no_head(after=30)
    assert talk.ask() == "list limit=500"
    assert "no answer came for 30 s" in talk.lines[-1]


def test_a_stream_that_breaks_off_while_it_is_read_is_replaced_by_pages() -> None:
    talk = streaming()
    talk.events(added("a", 3))
    talk.break_off(after=2)
    assert talk.ask() == "list limit=500"


@pytest.mark.conformance("REF-31")
def test_a_server_that_cannot_be_reached_is_asked_for_a_streaming_list_again() -> None:
    talk = Conversation()
    talk.ask()
    talk.break_off()
    assert talk.delay() > 0
    assert talk.ask() == "stream"


@pytest.mark.conformance("REF-31")
def test_a_throttled_streaming_list_is_asked_for_again_and_not_replaced_by_pages() -> None:
    talk = Conversation()
    for _ in range(3):
        talk.ask()
        talk.refuse(429)
    assert talk.ask() == "stream"


@pytest.mark.conformance("REF-31")
def test_a_stream_with_a_line_that_cannot_be_read_is_replaced_by_pages() -> None:
    talk = streaming()
    talk.broken_line()
    assert talk.delay() > 0
    assert talk.ask() == "list limit=500"


@pytest.mark.conformance("REF-09")
def test_streaming_lists_can_be_switched_off() -> None:
    talk = Conversation(ReflectorOptions(streaming_list=False))
    assert talk.ask() == "list limit=500"


def test_a_stream_whose_end_names_no_version_is_no_list() -> None:
    talk = streaming()
    talk.events(added("a", 3), initial_events_end(""))
    assert talk.news == []
    assert talk.protocol.phase is Phase.BACKING_OFF
    assert talk.ask() == "list limit=500"


@pytest.mark.conformance("REF-31")
def test_a_410_within_a_stream_begins_it_again_at_once_and_without_a_version() -> None:
    talk = streaming()
    talk.events(initial_events_end(7))
    talk.error(500, after=60)
    assert talk.ask() == "stream @7"
    talk.accept()
    talk.error(410, after=200)
    assert talk.delay() == 0
    assert talk.ask() == "stream"


@pytest.mark.conformance("REF-31")
def test_an_error_within_a_stream_leads_to_pages_after_a_delay() -> None:
    talk = streaming()
    talk.events(added("a", 3))
    talk.error(500)
    assert talk.protocol.phase is Phase.BACKING_OFF
    assert talk.delay() > 0
    assert talk.ask() == "list limit=500"
