"""Versions that the server does not have, and versions that go backwards."""

from __future__ import annotations

import pytest

from aioinformer.reflector.options import ReflectorOptions
from aioinformer.reflector.state import Phase
from aioinformer.reflector.watch_events import DELETED, MODIFIED
from tests.support.conversation import Conversation, watching
from tests.support.wire_objects import added, bookmark, deleted, initial_events_end, modified, undecodable

STREAMING = ReflectorOptions()


def streaming_watch(version: int = 10) -> Conversation:
    talk = Conversation()
    talk.ask()
    talk.accept()
    talk.events(added("a", 3), initial_events_end(version))
    return talk


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
    talk.ask()
    talk.refuse(410)
    assert talk.ask() == "list limit=500"
    assert talk.now == 60


@pytest.mark.conformance("REF-31")
def test_streaming_list_after_410_has_no_version() -> None:
    talk = streaming_watch()
    talk.error(410, after=60)
    assert talk.ask() == "stream"


@pytest.mark.conformance("REF-20", "REF-50")
def test_future_version_relists_at_once_without_version() -> None:
    talk = streaming_watch(version=1000)
    talk.end(after=60)
    assert talk.ask() == "watch @1000"
    talk.too_large()
    assert talk.ask() == "stream"
    assert talk.now == 60


@pytest.mark.conformance("REF-20")
def test_version_lost_again_costs_a_delay() -> None:
    talk = watching("a")
    talk.error(410, after=60)
    talk.ask()
    talk.page("a", version=20)
    talk.ask()
    talk.accept()
    talk.error(410)
    assert talk.delay() == pytest.approx(0.8)
    assert talk.protocol.phase is Phase.BACKING_OFF


def test_version_lost_after_a_long_watch_relists_at_once() -> None:
    talk = watching("a")
    for version in (20, 30, 40):
        talk.error(410, after=60)
        assert talk.delay() == 0
        talk.ask()
        talk.page("a", version=version)
        talk.ask()
        talk.accept()
    assert len(talk.asked) == 8


@pytest.mark.conformance("REF-30")
def test_version_is_sent_again_after_a_complete_list() -> None:
    talk = streaming_watch()
    talk.error(410, after=60)
    talk.ask()
    talk.accept()
    talk.events(initial_events_end(20))
    talk.error(500)
    assert talk.ask() == "stream @20"


def test_version_lost_in_an_outage_costs_the_shortest_delay() -> None:
    talk = watching("a")
    talk.end(after=60)
    for _ in range(5):
        talk.ask()
        talk.break_off()
    assert talk.delay() > 10
    talk.ask()
    talk.refuse(410)
    assert talk.delay() == pytest.approx(0.8)
    for delay in (1.6, 3.2):  # the list that follows is refused
        talk.ask()
        talk.refuse(410)
        assert talk.delay() == pytest.approx(delay)


def test_version_lost_after_retry_after_is_listed_with_a_delay() -> None:
    talk = watching("a")
    talk.end(after=60)
    talk.ask()
    talk.refuse(429, retry_after=3)  # all clients of the server return at the same time
    talk.ask()
    talk.refuse(410)
    assert talk.delay() == pytest.approx(0.8)


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


def test_delete_at_the_object_version_deletes() -> None:
    talk = watching("a", "b", version=100)
    talk.events(deleted("a", 1))
    assert talk.news == ["replaced", "Deleted ns/a"]
    assert list(talk.cache) == ["ns/b"]
    talk.end(after=60)
    assert talk.ask() == "watch @100"


def test_delete_at_the_object_version_hides_no_restore() -> None:
    talk = watching("a", "b", version=100)
    talk.events(deleted("a", 1), bookmark(90), after=60)
    assert talk.ask() == "list limit=500"


@pytest.mark.parametrize("kind", [MODIFIED, DELETED])
def test_undecodable_event_may_have_a_lower_version(kind: str) -> None:
    talk = watching("a", version=100)
    talk.events(undecodable("b", kind, version=50), modified("a", 51), bookmark(40))
    assert talk.reads
    assert talk.protocol.version == "40"


def test_unordered_collection_versions_are_not_compared() -> None:
    talk = watching("a", version=100)
    talk.events(modified("a", 101), modified("b", 50))
    talk.error(410, after=60)
    talk.ask()
    talk.page("a", version=30)
    assert talk.news[-1] == "replaced"
    assert talk.ask() == "watch @30"
    talk.accept()
    talk.events(bookmark(20), modified("a", 10))
    assert talk.news[-1] == "Updated ns/a"
    assert talk.reads


def test_synthetic_events_after_a_list_at_zero_are_followed() -> None:
    talk = watching(version=0)
    talk.events(added("a", 17), added("b", 5), added("c", 9))
    assert list(talk.cache) == ["ns/a", "ns/b", "ns/c"]
    talk.events(modified("c", 18), after=60)
    talk.end()
    assert talk.ask() == "watch @18"
    talk.accept()
    talk.events(bookmark(17))
    assert talk.ask() == "list limit=500"


@pytest.mark.parametrize("version", [0, ""])
def test_watch_without_a_start_version_is_followed_by_a_list(version: int | str) -> None:
    talk = watching("a", "b", version=version)
    talk.events(added("a", 17), added("b", 5))
    talk.end(after=60)
    assert talk.ask() == "list limit=500"
    talk.page("a", version=version)
    assert (talk.reports, list(talk.cache)) == ([], ["ns/a"])


def test_list_at_version_zero_is_never_stale() -> None:
    talk = watching(version=0)
    talk.events(added("a", 17), modified("a", 18), after=60)
    talk.error(410)
    talk.ask()
    talk.page("a", version=0)
    assert talk.news == ["replaced", "Added ns/a", "Updated ns/a", "replaced"]


# A server that was restored from a backup.


def test_watch_continues_after_an_undecodable_object() -> None:
    talk = watching("a", version=100)
    talk.events(undecodable("b", version=101), after=60)
    talk.end()
    assert talk.request().options.resource_version == "101"


def test_lower_bookmark_relists_without_a_version() -> None:
    talk = streaming_watch(version=100)
    talk.events(bookmark(40), after=60)
    step = talk.request()
    assert (step.options.resource_version, step.options.send_initial_events) == ("", True)


def test_list_after_a_lower_bookmark_is_accepted() -> None:
    talk = watching("a", version=100)
    talk.events(modified("a", 101), bookmark(40), after=60)
    talk.ask()
    talk.page("a", version=41)
    assert talk.news == ["replaced", "Updated ns/a", "replaced"]
    assert talk.ask() == "watch @41"


def test_list_older_than_the_cache_needs_a_second_one() -> None:
    talk = watching("a", version=100)
    talk.error(500)
    talk.ask()
    talk.page("a", version=40)
    assert talk.news == ["replaced"]
    assert talk.ask() == "list limit=500"
    talk.page("a", version=40)
    assert talk.news == ["replaced", "replaced"]
    assert talk.ask() == "watch @40"


def test_streaming_list_older_than_the_cache_needs_a_second_one() -> None:
    talk = streaming_watch(version=100)
    talk.error(500, after=60)
    talk.ask()
    talk.accept()
    talk.events(added("a", 3), initial_events_end(40), modified("a", 41))
    assert talk.news == ["replaced"]
    assert talk.ask() == "stream"
    talk.accept()
    talk.events(added("a", 3), initial_events_end(40), modified("a", 41))
    assert talk.news == ["replaced", "replaced", "Updated ns/a"]


def test_second_restore_is_noticed() -> None:
    talk = watching("a", version=100)
    talk.events(bookmark(80), after=60)
    talk.ask()
    talk.page("a", version=80)
    talk.ask()
    talk.accept()
    talk.error(500, after=60)
    for count in (2, 3):
        talk.ask()
        talk.page("a", version=40)
        assert talk.news == ["replaced"] * count
    assert talk.ask() == "watch @40"


def test_replica_lagging_once_keeps_the_collection_ordered() -> None:
    talk = watching("a", version=100)
    talk.error(500, after=60)
    for version in (90, 100):
        talk.ask()
        talk.page("a", version=version)
    talk.ask()
    talk.accept()
    talk.events(bookmark(40), after=60)
    assert talk.ask() == "list limit=500"


def test_bookmarks_below_a_current_list_are_followed() -> None:
    talk = watching("a", version=100)
    talk.events(bookmark(40), after=60)
    assert talk.ask() == "list limit=500"
    talk.page("a", version=100)
    talk.ask()
    talk.accept()
    talk.events(bookmark(40), after=60)
    assert talk.reads


@pytest.mark.conformance("STO-13")
def test_non_numeric_versions_never_go_back() -> None:
    talk = watching("a", version=100)
    talk.events(modified("a", "zz"), modified("a", "aa"), bookmark("bb"))
    assert talk.protocol.version == "bb"
    assert talk.reads


def test_bookmark_at_the_last_event_changes_nothing() -> None:
    talk = watching("a", version=100)
    talk.events(modified("a", 101), bookmark(101))
    assert talk.reads
