"""Lists in pages: requests, their order, and failing pages."""

from __future__ import annotations

import pytest

from aioinformer.errors import DecodeError
from aioinformer.reflector.options import ReflectorOptions
from aioinformer.reflector.protocol.messages import Elapsed, Listed, PageEnded, Replaced
from aioinformer.reflector.state import Phase
from tests.support.conversation import Conversation, watching
from tests.support.wire_objects import record

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


def test_page_size_zero_requests_everything() -> None:
    assert Conversation(ReflectorOptions(streaming_list=False, page_size=0)).ask() == "list"


@pytest.mark.conformance("REF-24")
def test_list_is_delivered_after_its_last_page() -> None:
    talk = Conversation(PAGES)
    talk.ask()
    talk.accept()
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
    talk.ask()
    talk.accept()
    talk.error(500)
    assert talk.ask() == "list limit=500 @12"


@pytest.mark.conformance("REF-17", "REF-20")
def test_cached_lists_name_no_version_after_a_loss() -> None:
    talk = watching(version=12, options=FROM_MEMORY)
    talk.error(410, after=60)
    assert talk.ask() == "list limit=500"
    talk.page(version=20)
    talk.ask()
    talk.accept()
    talk.error(500)
    assert talk.ask() == "list limit=500 @20"


@pytest.mark.conformance("REF-21", "PG-03")
def test_list_expired_between_pages_restarts_unpaged() -> None:
    talk = Conversation(PAGES)
    talk.ask()
    talk.page("a", "gone", token="p2")
    talk.ask()
    talk.refuse(410)
    assert talk.ask() == "list"
    assert talk.now == 0
    talk.page("a", "b", version=30)
    assert talk.ask() == "watch @30"
    assert sorted(talk.cache) == ["ns/a", "ns/b"]


def test_list_expired_between_pages_honors_retry_after() -> None:
    talk = Conversation(PAGES)
    talk.ask()
    talk.page("a", token="p2")
    talk.ask()
    talk.refuse(410, retry_after=12)
    assert talk.delay() == 12


def test_undecodable_items_of_an_expired_list_are_dropped() -> None:
    talk = Conversation(PAGES)
    talk.ask()
    talk.accept()
    talk.answer(Listed([DecodeError("no", key="ns/a")]), PageEnded("5", "p2"))
    talk.ask()
    talk.refuse(410)
    talk.ask()
    talk.page("a")
    talk.ask()
    talk.accept()
    assert talk.protocol.phase is Phase.WATCHING


def test_list_expired_again_between_pages_is_delayed() -> None:
    talk = Conversation(PAGES)
    talk.ask()
    talk.page("a", token="p2")
    talk.ask()
    talk.refuse(410)
    assert talk.ask() == "list"
    talk.break_off()
    assert talk.ask() == "list limit=500"
    talk.page("a", token="p2")
    talk.ask()
    talk.refuse(410)
    assert talk.delay() > 0
    assert talk.ask() == "list"


@pytest.mark.conformance("REF-14")
def test_interrupted_list_restarts_after_a_delay() -> None:
    talk = Conversation(PAGES)
    talk.ask()
    talk.page("a", token="p2")
    talk.ask()
    talk.accept()
    talk.answer(Listed([record("b")]))
    talk.break_off()
    assert talk.protocol.phase is Phase.BACKING_OFF
    assert talk.delay() == pytest.approx(0.8)
    assert talk.ask() == "list limit=500"
    talk.page("c")
    assert list(talk.cache) == ["ns/c"]


def test_repeated_page_does_not_end_the_list() -> None:
    talk = watching("a", "b")
    talk.error(500)
    talk.ask()
    talk.page("a", token="same")
    talk.ask()
    talk.page("a", token="same")
    assert sorted(talk.cache) == ["ns/a", "ns/b"]
    assert talk.protocol.phase is Phase.BACKING_OFF
    assert talk.delay() > 0


@pytest.mark.conformance("REF-14")
def test_list_failure_is_the_reason_until_a_watch_opens() -> None:
    talk = Conversation(PAGES)
    talk.ask()
    talk.refuse(500, "InternalError")
    assert (talk.protocol.phase, talk.protocol.reason) == (Phase.BACKING_OFF, "500 InternalError")
    talk.ask()
    talk.page("a")
    assert talk.protocol.phase is Phase.BACKING_OFF
    talk.ask()
    talk.accept()
    assert (talk.protocol.phase, talk.protocol.reason) == (Phase.WATCHING, "")


def test_first_phase_is_syncing() -> None:
    talk = Conversation(PAGES)
    talk.ask()
    talk.accept()
    assert (talk.protocol.phase, talk.protocol.reason) == (Phase.SYNCING, "")


def test_list_without_new_objects_is_given_up() -> None:
    talk = Conversation(PAGES)
    talk.ask()
    talk.accept()
    for number in range(100):
        talk.answer(Listed([record(f"a{number}")]), after=80)
    assert talk.patience == 90
    talk.answer(Listed([record("a0")]), after=80)
    assert talk.patience == 10
    talk.answer(Elapsed(), after=10)
    assert talk.protocol.reason == "no new object came for 90 s"


def test_silent_list_is_given_up_and_retried() -> None:
    talk = Conversation(PAGES)
    talk.ask()
    talk.accept()
    talk.idle()
    assert talk.protocol.reason == "no new object came for 90 s"
    assert talk.delay() > 0
    assert talk.ask() == "list limit=500"
