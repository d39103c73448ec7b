"""Objects that cannot be decoded, or that a transform refuses: skipped, shown, and never in the way of others."""

from __future__ import annotations

import pytest

from aioinformer.errors import DecodeError
from aioinformer.reflector.messages import Accepted, Listed, PageEnded
from aioinformer.reflector.options import ReflectorOptions
from aioinformer.reflector.state import Phase
from aioinformer.reflector.watch_events import ADDED, DELETED, WatchEvent
from tests.core.conversation import Conversation, watching
from tests.core.wire_objects import added, deleted, initial_events_end, modified, record, undecodable


def relisting(*names: str) -> Conversation:
    """A conversation that had these objects and has just been accepted to list them again."""
    talk = watching(*names)
    talk.error(500, after=60)
    talk.ask()
    talk.accept()
    return talk


@pytest.mark.conformance("REF-42", "REF-43")
def test_an_event_that_cannot_be_decoded_is_skipped_and_the_cached_version_stays() -> None:
    talk = watching("a", "b")
    talk.events(undecodable("a"), modified("b", 12))
    assert talk.news == ["replaced", "Updated ns/b"]
    assert talk.cache["ns/a"].resource_version == "1"
    assert talk.reads


@pytest.mark.conformance("REF-43", "WEAK-08")
def test_an_object_that_cannot_be_decoded_makes_the_state_degraded_with_its_key() -> None:
    talk = watching("a")
    talk.events(undecodable("a"))
    assert (talk.protocol.phase, talk.protocol.reason) == (Phase.DEGRADED, "1 object cannot be decoded (ns/a)")


@pytest.mark.parametrize("event", [modified("a", 12), deleted("a", 12)], ids=["decodes", "is-gone"])
def test_the_state_is_well_again_when_the_object(event: WatchEvent) -> None:
    talk = watching("a")
    talk.events(undecodable("a"))
    talk.events(event)
    assert (talk.protocol.phase, talk.protocol.reason) == (Phase.WATCHING, "")


def test_the_state_stays_degraded_while_another_object_cannot_be_decoded() -> None:
    talk = watching("a", "b")
    talk.events(undecodable("a"), undecodable("b"), modified("a", 12))
    assert talk.protocol.reason == "1 object cannot be decoded (ns/b)"


def test_every_skipped_version_is_counted_and_each_object_logged_once() -> None:
    talk = watching("a")
    talk.events(undecodable("a"), undecodable("a"), undecodable("b"))
    assert talk.protocol.quarantine.total == 3
    assert talk.lines == ["ns/a is skipped: not to be read", "ns/b is skipped: not to be read"]


def test_an_object_whose_key_cannot_be_read_is_skipped_too() -> None:
    talk = watching("a")
    talk.events(undecodable(), modified("a", 12))
    assert talk.news == ["replaced", "Updated ns/a"]
    assert talk.protocol.reason.startswith("1 object cannot be decoded;")


def test_a_deletion_whose_object_is_refused_still_deletes() -> None:
    talk = watching("a")
    talk.events(WatchEvent(DELETED, record("a", 12), error=DecodeError("refused", key="ns/a", version="12")))
    assert talk.news == ["replaced", "Deleted ns/a"]
    assert talk.protocol.version == "12"


def test_a_deletion_of_which_only_the_key_can_be_read_still_deletes() -> None:
    talk = watching("a")
    talk.events(undecodable("a"), undecodable("a", DELETED))
    assert talk.news == ["replaced", "Deleted ns/a"]
    assert talk.protocol.phase is Phase.WATCHING


def test_a_deletion_of_which_not_even_the_key_can_be_read_leads_to_a_list() -> None:
    talk = watching("a", "b")
    talk.events(undecodable("", DELETED), after=60)
    assert talk.ask() == "watch @10"
    talk.accept()
    talk.events(undecodable("", DELETED))
    assert talk.ask() == "list limit=500"
    talk.page("b", version=20)
    assert list(talk.cache) == ["ns/b"]


def test_a_watch_that_is_opened_again_is_still_degraded() -> None:
    talk = watching("a")
    talk.events(undecodable("a"))
    talk.end(after=60)
    talk.ask()
    talk.accept()
    assert talk.protocol.phase is Phase.DEGRADED


# In lists.


def test_an_item_that_cannot_be_decoded_keeps_its_cached_version_over_a_relist() -> None:
    talk = relisting("a", "b")
    talk.answer(Listed([DecodeError("no", key="ns/a"), record("c")]), PageEnded("20"))
    assert sorted(talk.cache) == ["ns/a", "ns/c"]


def test_an_item_that_cannot_be_decoded_and_was_never_cached_is_left_out() -> None:
    talk = relisting("a")
    talk.answer(Listed([DecodeError("no", key="ns/b"), record("a")]), PageEnded("20"))
    assert list(talk.cache) == ["ns/a"]


def test_a_list_with_an_item_whose_name_cannot_be_read_deletes_nothing_and_says_so() -> None:
    talk = relisting("a", "b")
    talk.answer(Listed([DecodeError("no"), record("b", 15), record("c")]), PageEnded("20"))
    assert {key: item.resource_version for key, item in talk.cache.items()} == {"ns/a": "1", "ns/b": "15", "ns/c": "1"}
    talk.ask()
    talk.accept()
    assert talk.protocol.phase is Phase.DEGRADED
    assert talk.protocol.reason.endswith("a list with one whose name cannot be read deletes nothing")


def test_the_next_list_in_which_every_name_can_be_read_deletes_again() -> None:
    talk = relisting("a", "b")
    talk.answer(Listed([DecodeError("no"), record("b")]), PageEnded("20"))
    talk.ask()
    talk.accept()
    talk.error(500, after=60)
    talk.ask()
    talk.page("b", version=30)
    talk.ask()
    talk.accept()
    assert list(talk.cache) == ["ns/b"]
    assert (talk.protocol.phase, talk.protocol.reason) == (Phase.WATCHING, "")


def test_a_streaming_list_with_an_object_whose_name_cannot_be_read_deletes_nothing() -> None:
    talk = Conversation()
    talk.ask()
    talk.accept()
    talk.events(added("a", 9), added("b", 10), initial_events_end(10))
    talk.error(500, after=60)
    assert talk.ask().startswith("stream")
    talk.accept()
    talk.events(undecodable("", ADDED), added("b", 15), initial_events_end(20))
    assert sorted(talk.cache) == ["ns/a", "ns/b"]


def test_a_list_with_objects_that_cannot_be_decoded_leads_to_a_degraded_watch() -> None:
    talk = relisting("a")
    talk.answer(Listed([DecodeError("no", key="ns/b"), record("a")]), PageEnded("20"))
    talk.ask()
    talk.accept()
    assert talk.protocol.phase is Phase.DEGRADED


def test_a_list_in_which_everything_decodes_makes_the_state_well_again() -> None:
    talk = watching("a")
    talk.events(undecodable("a"))
    talk.error(500, after=60)
    talk.ask()
    talk.page("a", version=20)
    talk.ask()
    talk.accept()
    assert talk.protocol.phase is Phase.WATCHING


# In streaming lists.


def test_a_streaming_list_skips_what_cannot_be_decoded() -> None:
    talk = Conversation()
    talk.ask()
    talk.accept()
    talk.events(undecodable("a", ADDED), added("b", 3), initial_events_end(4))
    assert list(talk.cache) == ["ns/b"]
    assert talk.protocol.phase is Phase.DEGRADED


def test_an_object_that_decodes_later_in_a_streaming_list_is_well() -> None:
    talk = Conversation()
    talk.ask()
    talk.accept()
    talk.events(undecodable("a", ADDED), modified("a", 3), initial_events_end(4))
    assert list(talk.cache) == ["ns/a"]
    assert talk.protocol.phase is Phase.WATCHING


@pytest.mark.parametrize("event", [deleted("a", 5), undecodable("a", DELETED)], ids=["whole", "key-only"])
def test_an_object_that_is_deleted_within_a_streaming_list_is_neither_cached_nor_degraded(event: WatchEvent) -> None:
    talk = Conversation()
    talk.ask()
    talk.accept()
    talk.events(added("a", 3), undecodable("a"), event, initial_events_end(6))
    assert talk.cache == {}
    assert talk.protocol.phase is Phase.WATCHING


def test_a_streaming_list_in_which_a_deletion_cannot_be_read_is_begun_again() -> None:
    talk = Conversation()
    talk.ask()
    talk.accept()
    talk.events(added("a", 3), undecodable("", DELETED), initial_events_end(6))
    assert talk.news == []
    assert talk.delay() > 0
    assert talk.ask() == "stream"


def test_a_version_that_cannot_be_decoded_never_takes_an_object_back_behind_the_stream() -> None:
    talk = watching("a", options=ReflectorOptions(streaming_list=False))
    talk.protocol.options = ReflectorOptions()
    talk.error(500, after=60)
    assert talk.ask() == "stream @10"
    talk.answer(Accepted())
    talk.events(added("a", 12), undecodable("a"), initial_events_end(13))
    assert talk.cache["ns/a"].resource_version == "12"


def test_a_stream_of_nothing_but_one_broken_object_is_no_streaming_list() -> None:
    talk = Conversation()
    talk.ask()
    talk.accept()
    for _ in range(31):
        if talk.reads:
            talk.events(undecodable("a"), after=1)
    assert talk.ask() == "list limit=500"


def test_a_streaming_list_of_objects_that_cannot_be_decoded_makes_progress() -> None:
    talk = Conversation()
    talk.ask()
    talk.accept()
    for number in range(60):
        talk.events(undecodable(f"pod-{number}", ADDED), after=1)
    assert talk.reads
