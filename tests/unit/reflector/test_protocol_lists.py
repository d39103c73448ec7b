"""Lists in pages and streaming lists: requests, their order, completion, and failures."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.errors import OptionError
from aioinformer.reflector import Phase, ReflectorOptions
from aioinformer.reflector.protocol.list_watch import STREAMING_PROBE
from aioinformer.reflector.protocol.messages import Elapsed, Listed, PageEnded, Replaced, Watched
from tests.support.conversation import Conversation, streaming
from tests.support.wire_objects import added, bookmark, deleted, initial_events_end, modified, record

PAGES = ReflectorOptions(streaming_list=False)
FROM_MEMORY = ReflectorOptions(streaming_list=False, list_resource_version="0")


@pytest.mark.conformance("REF-18", "REF-24", "LW-02", "REF-17", "REF-19", "PG-01", "PG-02", "WEAK-13")
def test_pages_have_no_version_and_the_watch_starts_at_the_last() -> None:
    talk = Conversation(PAGES)
    assert talk.ask() == "list limit=500"
    talk.page("a", "b", token="p2")
    assert talk.ask() == "list limit=500 continue=p2"
    talk.page("c", version=12, token="p3")
    assert talk.ask() == "list limit=500 continue=p3"
    assert talk.news == []
    talk.page("d", version=12)
    assert talk.ask() == "watch @12"
    assert sorted(talk.cache) == ["ns/a", "ns/b", "ns/c", "ns/d"]
    assert talk.now == 0


@pytest.mark.conformance("REF-18", "REF-02", "WEAK-18")
def test_page_size_is_an_option() -> None:
    assert Conversation(ReflectorOptions(streaming_list=False, page_size=7)).ask() == "list limit=7"


@pytest.mark.parametrize(("size", "request_of_relist"), [(1000, "stream"), (1001, "list limit")])
def test_auto_streams_small_collections_once_their_size_is_known(size: int, request_of_relist: str) -> None:
    talk = Conversation(ReflectorOptions(streaming_list="auto", page_size=5000))
    assert talk.ask() == "list limit=5000"  # the size is unknown
    talk.page(*(f"p-{number}" for number in range(size)), version=12)
    talk.open()
    talk.error(410)
    assert talk.ask().startswith(request_of_relist)


@pytest.mark.parametrize("value", ["always", "", None, 1, 0])
def test_wrong_streaming_list_is_refused(value: Any) -> None:
    with pytest.raises(OptionError, match="streaming_list must be True, False or 'auto', not "):
        ReflectorOptions(streaming_list=value)


@pytest.mark.conformance("REF-24")
def test_list_is_delivered_after_its_last_page() -> None:
    talk = Conversation(PAGES)
    talk.open()
    talk.answer(Listed([record("a")]))
    assert (talk.protocol.version, talk.news) == ("", [])
    told = talk.protocol.receive(PageEnded("12"), talk.now)
    assert [(len(each.records), each.version) for each in told if isinstance(each, Replaced)] == [(1, "12")]
    assert talk.protocol.version == "12"


@pytest.mark.conformance("REF-17", "REF-18")
def test_cached_lists_name_the_last_version() -> None:
    talk = Conversation(FROM_MEMORY)
    assert talk.ask() == "list limit=500 @0"
    talk.page(version=12)
    talk.open()
    talk.error(500)
    assert talk.ask() == "list limit=500 @12"


@pytest.mark.conformance("REF-21", "PG-03")
def test_list_expired_between_pages_restarts_unpaged() -> None:
    talk = Conversation(PAGES)
    talk.answer_list("a", "gone", token="p2")
    talk.refuse_next(410)
    assert talk.ask() == "list"
    assert talk.now == 0
    talk.page("a", "b", version=30)
    assert talk.ask() == "watch @30"
    assert sorted(talk.cache) == ["ns/a", "ns/b"]


@pytest.mark.conformance("REF-14")
def test_interrupted_list_restarts_after_a_delay() -> None:
    talk = Conversation(PAGES)
    talk.answer_list("a", token="p2")
    talk.open()
    talk.answer(Listed([record("b")]))
    talk.break_off()
    assert talk.protocol.phase is Phase.BACKING_OFF
    assert talk.delay() == pytest.approx(0.8)
    assert talk.ask() == "list limit=500"
    talk.page("c")
    assert list(talk.cache) == ["ns/c"]


@pytest.mark.conformance("REF-14")
def test_list_failure_is_the_reason_until_a_watch_opens() -> None:
    talk = Conversation(PAGES)
    talk.refuse_next(500, "InternalError")
    assert (talk.protocol.phase, talk.protocol.reason) == (Phase.BACKING_OFF, "500 InternalError")
    talk.answer_list("a")
    assert talk.protocol.phase is Phase.BACKING_OFF
    talk.open()
    assert (talk.protocol.phase, talk.protocol.reason) == (Phase.WATCHING, "")


# Streaming lists.


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


@pytest.mark.conformance("REF-15", "REF-28", "REF-30")
def test_streaming_list_becomes_the_watch() -> None:
    talk = streaming(added("a", 3), added("b", 5), initial_events_end(7))
    talk.events(modified("a", 8))
    assert talk.news == ["replaced", "Updated ns/a"]
    assert talk.asked == [(0.0, "stream")]
    assert talk.protocol.phase is Phase.WATCHING


def test_events_after_the_initial_ones_in_one_read_are_kept() -> None:
    talk = streaming(added("a", 3), initial_events_end(7), modified("a", 8), deleted("a", 9))
    assert talk.news == ["replaced", "Updated ns/a", "Deleted ns/a"]
    assert talk.protocol.version == "9"


@pytest.mark.conformance("REF-27")
def test_changes_during_a_streaming_list_are_part_of_it() -> None:
    talk = streaming(added("a", 3), added("b", 4), modified("a", 5), deleted("b", 6), initial_events_end(6))
    assert {key: item.resource_version for key, item in talk.cache.items()} == {"ns/a": "5"}


@pytest.mark.conformance("REF-29")
def test_initial_event_versions_are_not_collection_versions() -> None:
    talk = streaming(added("a", 9), added("b", 4))
    assert (talk.protocol.version, talk.news) == ("", [])
    talk.events(initial_events_end(12))
    assert talk.protocol.version == "12"


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.conformance("REF-31", "LW-05", "FG-02")
def test_refused_streaming_list_falls_back_to_pages_at_once(status: int) -> None:
    talk = Conversation()
    talk.refuse_next(status)
    assert talk.ask() == "list limit=500"
    assert talk.now == 0


@pytest.mark.conformance("WEAK-14")
def test_refused_streaming_list_is_tried_again_later() -> None:
    talk = Conversation()
    talk.refuse_next(422)
    talk.relist()
    talk.error(500, after=STREAMING_PROBE)
    assert talk.ask() == "stream @10"


@pytest.mark.conformance("LW-05", "FG-02", "REF-28")
def test_early_plain_bookmark_means_no_streaming_lists() -> None:
    talk = streaming(added("a", 3), bookmark(7), initial_events_end(8))
    assert talk.news == []
    assert talk.ask() == "list limit=500"
    assert talk.now == 0


@pytest.mark.conformance("REF-34")
def test_thirty_seconds_without_objects_mean_no_streaming_list() -> None:
    talk = streaming()
    assert talk.patience == 30
    talk.events(modified("a", 4), after=20)
    assert talk.patience == 10
    talk.answer(Elapsed(), after=10)
    assert talk.ask() == "list limit=500"


@pytest.mark.conformance("REF-34")
def test_streaming_list_that_trickles_means_no_streaming_list() -> None:
    talk = streaming()
    for number in range(15):
        talk.events(added(f"pod-{number}", number + 1), after=2)
    assert talk.now == 30
    assert talk.ask() == "list limit=500"
    assert "too few objects in 30 s" in talk.lines[-1]


@pytest.mark.parametrize("way", ["objects", "bytes"])
def test_streaming_list_that_brings_much_is_never_cut(way: str) -> None:
    talk = streaming()
    received = 0
    for number in range(10):
        some = [added(f"pod-{number}-{each}", number + 1) for each in range(100 if way == "objects" else 1)]
        received += 1 if way == "objects" else 1024 * 1024
        talk.answer(Watched(some, received), after=29)
        assert talk.reads
    talk.events(initial_events_end(500), after=29)
    assert len(talk.cache) == (1000 if way == "objects" else 10)
    assert talk.asked == [(0.0, "stream")]


def test_streaming_list_that_lacks_its_end_is_given_up_after_thirty_seconds() -> None:
    talk = streaming()
    talk.answer(Watched([added(f"pod-{each}", 1) for each in range(5000)], 9_000_000), after=5)
    assert talk.patience == 30
    talk.answer(Elapsed(9_000_000), after=30)
    assert talk.ask() == "list limit=500"
    assert talk.now == 35


def test_large_object_counts_while_it_arrives() -> None:
    talk = streaming()
    talk.answer(Elapsed(1024 * 1024), after=30)
    assert talk.patience == 30
    talk.answer(Elapsed(2 * 1024 * 1024 - 1), after=30)
    assert talk.ask() == "list limit=500"


def test_changes_of_listed_objects_do_not_keep_a_streaming_list_open() -> None:
    talk = streaming()
    talk.events(*(added(f"pod-{each}", 1) for each in range(100)))
    for turn in range(1, 31):
        talk.answer(Watched([modified("pod-0", turn + 1)], turn * 1024 * 1024), after=1)
    assert talk.ask() == "list limit=500"


@pytest.mark.conformance("REF-33", "WEAK-15")
def test_incomplete_stream_is_retried_once_then_delayed() -> None:
    talk = streaming(added("a", 3))
    talk.end()
    assert talk.ask() == "stream"
    assert talk.now == 0
    talk.accept()
    talk.end()
    assert talk.delay() > 0
    assert talk.ask() == "list limit=500"


@pytest.mark.parametrize("status", [403, 500, 503])
@pytest.mark.conformance("REF-13", "REF-31")
def test_forbidden_stream_falls_back_to_pages_after_a_delay(status: int) -> None:
    talk = Conversation()
    talk.refuse_next(status)
    assert talk.delay() > 0
    assert talk.ask() == "list limit=500"


def test_stream_without_a_head_falls_back_to_pages() -> None:
    talk = Conversation()
    assert talk.request().patience == 30
    talk.no_head(after=30)
    assert talk.ask() == "list limit=500"
    assert "no answer came for 30 s" in talk.lines[-1]


@pytest.mark.conformance("REF-31")
def test_unreachable_server_is_retried_with_a_streaming_list() -> None:
    talk = Conversation()
    talk.break_next()
    assert talk.delay() > 0
    assert talk.ask() == "stream"


def test_stream_end_without_a_version_is_refused() -> None:
    talk = streaming(added("a", 3), initial_events_end(""))
    assert talk.news == []
    assert talk.protocol.phase is Phase.BACKING_OFF
    assert talk.ask() == "list limit=500"


@pytest.mark.conformance("REF-31")
def test_stream_410_restarts_at_once_without_a_version() -> None:
    talk = streaming(initial_events_end(7))
    talk.error(500, after=60)
    assert talk.open() == "stream @7"
    talk.error(410, after=200)
    assert talk.delay() == 0
    assert talk.ask() == "stream"


@pytest.mark.conformance("REF-34")
def test_repeated_objects_mean_no_streaming_list() -> None:
    talk = streaming()
    talk.events(added("a", 3))
    for version in range(4, 34):
        assert talk.reads
        talk.events(modified("a", version), after=1)
    assert talk.ask() == "list limit=500"
