"""Versions that the server does not have, and versions that go backwards."""

from __future__ import annotations

import pytest

from aioinformer.reflector import Phase
from tests.support.conversation import streaming, watching
from tests.support.wire_objects import added, bookmark, deleted, initial_events_end, modified


@pytest.mark.conformance("REF-20", "REF-40", "WEAK-15")
def test_watch_event_410_relists_at_once_without_version() -> None:
    talk = watching("a")
    talk.error(410, after=60)
    assert talk.ask() == "list limit=500"
    assert talk.now == 60


@pytest.mark.conformance("REF-20")
def test_watch_response_410_relists_at_once() -> None:
    talk = watching("a")
    talk.end(after=60)
    talk.refuse_next(410)
    assert talk.ask() == "list limit=500"
    assert talk.now == 60


@pytest.mark.conformance("REF-20", "REF-50")
def test_future_version_relists_at_once_without_version() -> None:
    talk = streaming(added("a", 3), initial_events_end(1000))
    talk.end(after=60)
    assert talk.ask() == "watch @1000"
    talk.too_large()
    assert talk.ask() == "stream"
    assert talk.now == 60


@pytest.mark.conformance("REF-20")
def test_version_lost_again_costs_a_delay() -> None:
    talk = watching("a")
    talk.error(410, after=60)
    talk.relist("a", version=20)
    talk.error(410)
    assert talk.delay() == pytest.approx(0.8)
    assert talk.protocol.phase is Phase.BACKING_OFF


def test_version_lost_in_an_outage_costs_the_shortest_delay() -> None:
    talk = watching("a")
    talk.end(after=60)
    for _ in range(5):
        talk.break_next()
    assert talk.delay() > 10
    talk.refuse_next(410)
    assert talk.delay() == pytest.approx(0.8)
    for delay in (1.6, 3.2):  # the list that follows is refused
        talk.refuse_next(410)
        assert talk.delay() == pytest.approx(delay)


def test_retry_after_of_a_410_is_honored() -> None:
    talk = watching("a")
    talk.error(410, after=60, retryAfterSeconds=40)
    assert talk.delay() == 40
    assert talk.protocol.phase is Phase.BACKING_OFF


# Events in any order of versions.


def test_event_with_a_lower_version_is_accepted() -> None:
    talk = watching("a", version=100)
    talk.events(modified("a", 101), modified("b", 50), deleted("a", 51), bookmark(7))
    assert talk.news == ["replaced", "Updated ns/a", "Updated ns/b", "Deleted ns/a"]
    assert talk.reads
    talk.end(after=60)
    assert talk.ask() == "watch @7"


def test_event_that_comes_twice_moves_nothing() -> None:
    talk = watching("a", version=100)
    talk.events(modified("a", 101), bookmark(105), modified("a", 101))
    assert talk.news == ["replaced", "Updated ns/a", "Updated ns/a"]
    talk.end(after=60)
    assert talk.ask() == "watch @105"


def test_delete_at_the_object_version_deletes() -> None:
    talk = watching("a", "b", version=100)
    talk.events(deleted("a", 1))
    assert talk.news == ["replaced", "Deleted ns/a"]
    assert list(talk.cache) == ["ns/b"]
    talk.end(after=60)
    assert talk.ask() == "watch @100"


def test_unordered_collection_versions_are_not_compared() -> None:
    talk = watching("a", version=100)
    talk.events(modified("a", 101), modified("b", 50))
    talk.error(410, after=60)
    talk.answer_list("a", version=30)
    assert talk.news[-1] == "replaced"
    assert talk.open() == "watch @30"
    talk.events(bookmark(20), modified("a", 10))
    assert talk.news[-1] == "Updated ns/a"
    assert talk.reads


def test_synthetic_events_after_a_list_at_zero_are_followed() -> None:
    talk = watching(version=0)
    talk.events(added("a", 17), added("b", 5), added("c", 9))
    assert list(talk.cache) == ["ns/a", "ns/b", "ns/c"]
    talk.events(modified("c", 18), after=60)
    talk.end()
    assert talk.open() == "watch @18"
    talk.events(bookmark(17))
    assert talk.ask() == "list limit=500"


# A server that was restored from a backup.


def test_lower_bookmark_relists_without_a_version() -> None:
    talk = streaming(added("a", 3), initial_events_end(100))
    talk.events(bookmark(40), after=60)
    step = talk.request()
    assert (step.options.resource_version, step.options.send_initial_events) == ("", True)


def test_list_older_than_the_cache_needs_a_second_one() -> None:
    talk = watching("a", version=100)
    talk.error(500)
    talk.answer_list("a", version=40)
    assert talk.news == ["replaced"]
    assert talk.ask() == "list limit=500"
    talk.page("a", version=40)
    assert talk.news == ["replaced", "replaced"]
    assert talk.ask() == "watch @40"


def test_streaming_list_older_than_the_cache_needs_a_second_one() -> None:
    talk = streaming(added("a", 3), initial_events_end(100))
    talk.error(500, after=60)
    talk.open()
    talk.events(added("a", 3), initial_events_end(40), modified("a", 41))
    assert talk.news == ["replaced"]
    assert talk.open() == "stream"
    talk.events(added("a", 3), initial_events_end(40), modified("a", 41))
    assert talk.news == ["replaced", "replaced", "Updated ns/a"]


@pytest.mark.conformance("STO-13")
def test_non_numeric_versions_never_go_back() -> None:
    talk = watching("a", version=100)
    talk.events(modified("a", "zz"), modified("a", "aa"), bookmark("bb"))
    assert talk.protocol.version == "bb"
    assert talk.reads
