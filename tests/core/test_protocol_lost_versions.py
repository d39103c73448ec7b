"""Versions that the server does not have, and versions that go backwards."""

from __future__ import annotations

import pytest

from aioinformer.errors import DecodeError
from aioinformer.options import ReflectorOptions
from aioinformer.state import Phase
from aioinformer.steps import Listed, PageEnded
from aioinformer.wire import DELETED, MODIFIED
from tests.core.conversation import Conversation, watching
from tests.core.wire_objects import added, bookmark, initial_events_end, modified, record, undecodable

STREAMING = ReflectorOptions()


def streaming_watch(version: int = 10) -> Conversation:
    talk = Conversation()
    talk.ask()
    talk.accept()
    talk.events(added("a", 3), initial_events_end(version))
    return talk


@pytest.mark.conformance("REF-20", "REF-40", "WEAK-15")
def test_a_410_within_a_watch_leads_to_a_list_without_a_version_at_once() -> None:
    talk = watching("a")
    talk.error(410, after=60)
    assert talk.ask() == "list limit=500"
    assert talk.now == 60


@pytest.mark.conformance("REF-20")
def test_a_410_in_answer_to_a_watch_leads_to_a_list_at_once() -> None:
    talk = watching("a")
    talk.end(after=60)
    talk.ask()
    talk.refuse(410)
    assert talk.ask() == "list limit=500"
    assert talk.now == 60


@pytest.mark.conformance("REF-31")
def test_after_a_410_a_streaming_list_names_no_version() -> None:
    talk = streaming_watch()
    talk.error(410, after=60)
    assert talk.ask() == "stream"


@pytest.mark.conformance("REF-20", "REF-50")
def test_a_version_from_the_future_leads_to_a_list_without_one_at_once() -> None:
    talk = streaming_watch(version=1000)
    talk.end(after=60)
    assert talk.ask() == "watch @1000"
    talk.too_large()
    assert talk.ask() == "stream"
    assert talk.now == 60


@pytest.mark.conformance("REF-20")
def test_a_version_that_is_lost_again_costs_a_delay() -> None:
    talk = watching("a")
    talk.error(410, after=60)
    talk.ask()
    talk.page("a", version=20)
    talk.ask()
    talk.accept()
    talk.error(410)
    assert talk.delay() == pytest.approx(0.8)
    assert talk.protocol.phase is Phase.BACKING_OFF


def test_a_lost_version_is_news_again_after_a_watch_that_lived() -> None:
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
def test_the_version_is_named_again_once_a_list_came_through() -> None:
    talk = streaming_watch()
    talk.error(410, after=60)
    talk.ask()
    talk.accept()
    talk.events(initial_events_end(20))
    talk.error(500)
    assert talk.ask() == "stream @20"


def test_a_410_that_names_a_time_is_obeyed_and_shown() -> None:
    talk = watching("a")
    talk.error(410, after=60, retryAfterSeconds=40)
    assert talk.delay() == 40
    assert talk.protocol.phase is Phase.BACKING_OFF


# A server that was restored from a backup.


def test_an_event_that_goes_back_behind_the_watch_leads_to_a_list_that_compares() -> None:
    talk = watching("a", version=100)
    talk.events(modified("a", 101), after=60)
    talk.events(modified("a", 50))
    assert talk.cache["ns/a"].resource_version == "101"
    step = talk.request()
    assert (step.compare, step.options.resource_version) == (True, "")


@pytest.mark.parametrize("kind", [MODIFIED, DELETED])
def test_an_event_that_goes_back_is_found_out_although_it_cannot_be_decoded(kind: str) -> None:
    talk = watching("a", version=100)
    talk.events(undecodable("b", kind, version=50), after=60)
    step = talk.request()
    assert (step.compare, step.options.resource_version) == (True, "")


def test_a_watch_goes_on_behind_what_cannot_be_decoded() -> None:
    talk = watching("a", version=100)
    talk.events(undecodable("b", version=101), after=60)
    talk.end()
    assert talk.request().options.resource_version == "101"


def test_what_came_before_a_version_that_goes_back_counts() -> None:
    talk = watching("a", version=100)
    talk.events(modified("a", 101), modified("a", 50), modified("a", 51))
    assert talk.news == ["replaced", "Updated ns/a"]


def test_a_bookmark_that_goes_back_leads_to_a_list_that_compares() -> None:
    talk = streaming_watch(version=100)
    talk.events(bookmark(40), after=60)
    step = talk.request()
    assert (step.compare, step.options.resource_version, step.options.send_initial_events) == (True, "", True)


def test_a_list_that_is_older_than_the_cache_is_taken_only_after_a_second_one_that_compares() -> None:
    talk = watching("a", version=100)
    talk.error(500)
    assert not talk.request().compare
    talk.page("a", version=40)
    assert talk.news == ["replaced"]
    assert talk.request().compare
    talk.page("a", version=40)
    assert talk.news == ["replaced", "replaced"]
    assert talk.ask() == "watch @40"


def test_a_streaming_list_that_is_older_than_the_cache_is_taken_only_after_one_that_compares() -> None:
    talk = streaming_watch(version=100)
    talk.error(500, after=60)
    talk.ask()
    talk.accept()
    talk.events(added("a", 3), initial_events_end(40), modified("a", 41))
    assert talk.news == ["replaced"]
    assert talk.request().compare
    talk.accept()
    talk.events(added("a", 3), initial_events_end(40), modified("a", 41))
    assert talk.news == ["replaced", "replaced", "Updated ns/a"]


def test_after_the_list_that_compared_versions_are_trusted_again() -> None:
    talk = watching("a", version=100)
    talk.events(bookmark(40), after=60)
    assert talk.request().compare
    talk.page("a", version=41)
    talk.ask()
    talk.accept()
    talk.error(500)
    assert not talk.request().compare


def test_versions_are_not_trusted_before_a_list_shows_everything_that_is_cached_from_before_they_went_back() -> None:
    talk = watching("a", version=100)
    talk.events(bookmark(40), after=60)
    compared = []
    for item in (DecodeError("not to be read", key="ns/a"), record("a"), record("a")):
        compared.append(talk.request().compare)
        talk.accept()
        talk.answer(Listed([item]), PageEnded("41"))
        talk.ask()
        talk.accept()
        talk.error(500)
    assert compared == [True, True, False]


def test_versions_that_go_back_a_second_time_are_found_out_while_lists_are_compared() -> None:
    talk = watching("a", version=100)
    talk.events(bookmark(80), after=60)
    talk.ask()
    talk.accept()
    talk.answer(Listed([DecodeError("not to be read", key="ns/a")]), PageEnded("80"))
    talk.ask()
    talk.accept()
    talk.error(500)
    for count in (2, 3):
        talk.ask()
        talk.page("a", version=40)
        assert talk.news == ["replaced"] * count
    assert talk.ask() == "watch @40"


def test_a_server_whose_versions_go_to_and_fro_is_not_listed_without_a_pause() -> None:
    talk = watching("a", version=100)
    for _ in range(10):
        talk.events(bookmark(40))
        talk.ask()
        talk.page("a", version=100)
        assert talk.ask() == "watch @100"
        talk.accept()
    early = [words for when, words in talk.asked if when < 2]
    assert len(early) < 10


@pytest.mark.conformance("STO-13")
def test_versions_that_are_no_numbers_never_go_back() -> None:
    talk = watching("a", version=100)
    talk.events(modified("a", "zz"), modified("a", "aa"), bookmark("bb"))
    assert talk.protocol.version == "bb"
    assert talk.reads


def test_a_bookmark_at_the_version_of_the_last_event_goes_nowhere() -> None:
    talk = watching("a", version=100)
    talk.events(modified("a", 101), bookmark(101))
    assert talk.reads
