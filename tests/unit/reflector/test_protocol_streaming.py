"""Streaming lists: requests, completion, and the fallback to pages."""

from __future__ import annotations

import pytest

from aioinformer.reflector.options import ReflectorOptions
from aioinformer.reflector.protocol.list_watch import STREAMING_PROBE
from aioinformer.reflector.protocol.messages import Elapsed
from aioinformer.reflector.state import Phase
from tests.support.conversation import Conversation
from tests.support.wire_objects import added, bookmark, deleted, initial_events_end, modified


def streaming() -> Conversation:
    talk = Conversation()
    assert talk.ask() == "stream"
    talk.accept()
    return talk


@pytest.mark.conformance("REF-09", "REF-26", "WEAK-13", "ARC-01")
def test_first_request_is_a_streaming_list_of_current_state() -> None:
    options = Conversation().request().options
    assert dict(options.to_query()) == {
        "watch": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "300",
    }


@pytest.mark.conformance("REF-26")
def test_later_streaming_list_is_not_older_than_the_cache() -> None:
    talk = streaming()
    talk.events(initial_events_end(7))
    talk.error(500)
    assert talk.ask() == "stream @7"


@pytest.mark.conformance("REF-15", "REF-28", "REF-30")
def test_streaming_list_becomes_the_watch() -> None:
    talk = streaming()
    talk.events(added("a", 3), added("b", 5), initial_events_end(7))
    talk.events(modified("a", 8))
    assert talk.news == ["replaced", "Updated ns/a"]
    assert talk.asked == [(0.0, "stream")]
    assert talk.protocol.phase is Phase.WATCHING


def test_events_after_the_initial_ones_in_one_read_are_kept() -> None:
    talk = streaming()
    talk.events(added("a", 3), initial_events_end(7), modified("a", 8), deleted("a", 9))
    assert talk.news == ["replaced", "Updated ns/a", "Deleted ns/a"]
    assert talk.protocol.version == "9"


@pytest.mark.conformance("REF-27")
def test_changes_during_a_streaming_list_are_part_of_it() -> None:
    talk = streaming()
    talk.events(added("a", 3), added("b", 4), modified("a", 5), deleted("b", 6), initial_events_end(6))
    assert {key: item.resource_version for key, item in talk.cache.items()} == {"ns/a": "5"}


@pytest.mark.conformance("REF-29")
def test_initial_event_versions_are_not_collection_versions() -> None:
    talk = streaming()
    talk.events(added("a", 9), added("b", 4))
    assert (talk.protocol.version, talk.news) == ("", [])
    talk.events(initial_events_end(12))
    assert talk.protocol.version == "12"


@pytest.mark.conformance("REF-29", "REF-44")
def test_list_after_an_interrupted_stream_starts_over() -> None:
    talk = streaming()
    talk.events(added("a", 9))
    talk.end()
    assert talk.ask() == "stream"
    talk.accept()
    talk.events(added("a", 5), initial_events_end(6))
    assert (talk.protocol.version, talk.news) == ("6", ["replaced"])


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.conformance("REF-31", "LW-05", "FG-02")
def test_refused_streaming_list_falls_back_to_pages_at_once(status: int) -> None:
    talk = Conversation()
    talk.ask()
    talk.refuse(status)
    assert talk.ask() == "list limit=500"
    assert talk.now == 0


@pytest.mark.conformance("WEAK-14")
def test_refused_streaming_list_is_not_tried_at_the_next_relist() -> None:
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
def test_refused_streaming_list_is_tried_again_later() -> None:
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
def test_early_plain_bookmark_means_no_streaming_lists() -> None:
    talk = streaming()
    talk.events(added("a", 3), bookmark(7), initial_events_end(8))
    assert talk.news == []
    assert talk.ask() == "list limit=500"
    assert talk.now == 0


@pytest.mark.conformance("REF-34")
def test_thirty_seconds_without_objects_mean_no_streaming_list() -> None:
    talk = streaming()
    talk.events(added("a", 3), after=10)
    assert talk.patience == 30
    talk.events(modified("a", 4), after=20)
    assert talk.patience == 10
    talk.answer(Elapsed(), after=10)
    assert talk.ask() == "list limit=500"


@pytest.mark.conformance("REF-34")
def test_repeated_objects_mean_no_streaming_list() -> None:
    talk = streaming()
    talk.events(added("a", 3))
    for version in range(4, 34):
        assert talk.reads
        talk.events(modified("a", version), after=1)
    assert talk.ask() == "list limit=500"


def test_progressing_streaming_list_is_never_cut() -> None:
    talk = streaming()
    for number in range(100):
        talk.events(added(f"pod-{number}", number + 1), after=29)
        assert talk.reads
    talk.events(initial_events_end(500), after=29)
    assert len(talk.cache) == 100
    assert talk.asked == [(0.0, "stream")]


@pytest.mark.conformance("REF-33", "WEAK-15")
def test_incomplete_stream_is_retried_once_then_delayed() -> None:
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
def test_long_incomplete_stream_falls_back_to_pages() -> None:
    talk = streaming()
    talk.events(added("a", 3))
    talk.end(after=5)
    assert talk.delay() > 0
    assert talk.ask() == "list limit=500"


@pytest.mark.conformance("REF-33")
def test_objects_of_an_incomplete_stream_are_dropped() -> None:
    talk = streaming()
    talk.events(added("a", 3))
    talk.end()
    talk.ask()
    talk.accept()
    talk.events(added("b", 4), initial_events_end(5))
    assert list(talk.cache) == ["ns/b"]


@pytest.mark.parametrize("status", [403, 500, 503])
@pytest.mark.conformance("REF-13", "REF-31")
def test_forbidden_stream_falls_back_to_pages_after_a_delay(status: int) -> None:
    talk = Conversation()
    talk.ask()
    talk.refuse(status)
    assert talk.delay() > 0
    assert talk.ask() == "list limit=500"


def test_method_not_allowed_stream_falls_back_to_pages_at_once() -> None:
    talk = Conversation()
    talk.ask()
    talk.refuse(405)
    assert talk.ask() == "list limit=500"
    assert talk.now == 0


def test_stream_without_a_head_falls_back_to_pages() -> None:
    talk = Conversation()
    assert talk.request().patience == 30
    talk.no_head(after=30)
    assert talk.ask() == "list limit=500"
    assert "no answer came for 30 s" in talk.lines[-1]


def test_interrupted_stream_falls_back_to_pages() -> None:
    talk = streaming()
    talk.events(added("a", 3))
    talk.break_off(after=2)
    assert talk.ask() == "list limit=500"


@pytest.mark.conformance("REF-31")
def test_unreachable_server_is_retried_with_a_streaming_list() -> None:
    talk = Conversation()
    talk.ask()
    talk.break_off()
    assert talk.delay() > 0
    assert talk.ask() == "stream"


@pytest.mark.conformance("REF-31")
def test_throttled_streaming_list_is_retried() -> None:
    talk = Conversation()
    for _ in range(3):
        talk.ask()
        talk.refuse(429)
    assert talk.ask() == "stream"


@pytest.mark.conformance("REF-31")
def test_unreadable_line_in_a_stream_falls_back_to_pages() -> None:
    talk = streaming()
    talk.broken_line()
    assert talk.delay() > 0
    assert talk.ask() == "list limit=500"


@pytest.mark.conformance("REF-09")
def test_streaming_lists_can_be_disabled() -> None:
    talk = Conversation(ReflectorOptions(streaming_list=False))
    assert talk.ask() == "list limit=500"


def test_stream_end_without_a_version_is_refused() -> None:
    talk = streaming()
    talk.events(added("a", 3), initial_events_end(""))
    assert talk.news == []
    assert talk.protocol.phase is Phase.BACKING_OFF
    assert talk.ask() == "list limit=500"


@pytest.mark.conformance("REF-31")
def test_stream_410_restarts_at_once_without_a_version() -> None:
    talk = streaming()
    talk.events(initial_events_end(7))
    talk.error(500, after=60)
    assert talk.ask() == "stream @7"
    talk.accept()
    talk.error(410, after=200)
    assert talk.delay() == 0
    assert talk.ask() == "stream"


@pytest.mark.conformance("REF-31")
def test_stream_error_falls_back_to_pages_after_a_delay() -> None:
    talk = streaming()
    talk.events(added("a", 3))
    talk.error(500)
    assert talk.protocol.phase is Phase.BACKING_OFF
    assert talk.delay() > 0
    assert talk.ask() == "list limit=500"
