"""Objects that are undecodable or refused: skipped, shown, and without effect on other objects."""

from __future__ import annotations

import pytest

from aioinformer.errors import DecodeError
from aioinformer.reflector import Phase
from aioinformer.reflector.protocol.changes import Quarantine
from aioinformer.reflector.protocol.messages import Listed, PageEnded
from aioinformer.reflector.watch_events import ADDED, DELETED, WatchEvent
from tests.support.conversation import Conversation, streaming, watching
from tests.support.wire_objects import added, deleted, initial_events_end, modified, record, undecodable


def relisting(*names: str) -> Conversation:
    """A conversation that had these objects and has just been accepted to list them again."""
    talk = watching(*names)
    talk.error(500, after=60)
    talk.open()
    return talk


@pytest.mark.conformance("REF-42", "REF-43")
def test_undecodable_event_is_skipped_and_the_cache_kept() -> None:
    talk = watching("a", "b")
    talk.events(undecodable("a"), modified("b", 12))
    assert talk.news == ["replaced", "Updated ns/b"]
    assert talk.cache["ns/a"].resource_version == "1"
    assert talk.reads


@pytest.mark.conformance("REF-43", "WEAK-08")
def test_undecodable_object_makes_the_state_degraded() -> None:
    talk = watching("a")
    talk.events(undecodable("a"))
    assert (talk.protocol.phase, talk.protocol.reason) == (Phase.DEGRADED, "1 object cannot be decoded (ns/a)")


@pytest.mark.parametrize("event", [modified("a", 12), deleted("a", 12)], ids=["decodes", "is-gone"])
def test_state_recovers_when_the_object(event: WatchEvent) -> None:
    talk = watching("a")
    talk.events(undecodable("a"))
    talk.events(event)
    assert (talk.protocol.phase, talk.protocol.reason) == (Phase.WATCHING, "")


def test_skipped_versions_are_counted_and_logged_once_a_key() -> None:
    talk = watching("a")
    talk.events(undecodable("a"), undecodable("a"), undecodable("b"))
    assert talk.protocol.state.quarantine.total == 3
    assert talk.lines == ["ns/a is skipped: not to be read", "ns/b is skipped: not to be read"]


def test_refused_delete_still_deletes() -> None:
    talk = watching("a")
    talk.events(WatchEvent(DELETED, record("a", 12), error=DecodeError("refused", key="ns/a", version="12")))
    assert talk.news == ["replaced", "Deleted ns/a"]
    assert talk.protocol.version == "12"


def test_delete_with_only_a_readable_key_deletes() -> None:
    talk = watching("a")
    talk.events(undecodable("a"), undecodable("a", DELETED))
    assert talk.news == ["replaced", "Deleted ns/a"]
    assert talk.protocol.phase is Phase.WATCHING


def test_delete_with_an_unreadable_key_leads_to_a_list() -> None:
    talk = watching("a", "b")
    talk.events(undecodable("", DELETED), after=60)
    assert talk.open() == "watch @10"
    talk.events(undecodable("", DELETED))
    assert talk.ask() == "list limit=500"
    talk.page("b", version=20)
    assert list(talk.cache) == ["ns/b"]


# In lists.


def test_undecodable_item_keeps_its_cached_version() -> None:
    talk = relisting("a", "b")
    talk.answer(Listed([DecodeError("no", key="ns/a"), record("c")]), PageEnded("20"))
    assert sorted(talk.cache) == ["ns/a", "ns/c"]


def test_list_with_an_unreadable_name_deletes_nothing() -> None:
    talk = relisting("a", "b")
    talk.answer(Listed([DecodeError("no"), record("b", 15), record("c")]), PageEnded("20"))
    assert {key: item.resource_version for key, item in talk.cache.items()} == {"ns/a": "1", "ns/b": "15", "ns/c": "1"}
    talk.open()
    assert talk.protocol.phase is Phase.DEGRADED
    assert talk.protocol.reason.endswith("a list with an object without a readable name deletes nothing")


def test_next_readable_list_deletes_again() -> None:
    talk = relisting("a", "b")
    talk.answer(Listed([DecodeError("no"), record("b")]), PageEnded("20"))
    talk.open()
    talk.error(500, after=60)
    talk.relist("b", version=30)
    assert list(talk.cache) == ["ns/b"]
    assert (talk.protocol.phase, talk.protocol.reason) == (Phase.WATCHING, "")


def test_streaming_list_with_an_unreadable_name_deletes_nothing() -> None:
    talk = streaming(added("a", 9), added("b", 10), initial_events_end(10))
    talk.error(500, after=60)
    assert talk.open().startswith("stream")
    talk.events(undecodable("", ADDED), added("b", 15), initial_events_end(20))
    assert sorted(talk.cache) == ["ns/a", "ns/b"]


# In streaming lists.


def test_streaming_list_skips_undecodable_objects() -> None:
    talk = streaming(undecodable("a", ADDED), added("b", 3), initial_events_end(4))
    assert list(talk.cache) == ["ns/b"]
    assert talk.protocol.phase is Phase.DEGRADED


@pytest.mark.parametrize("event", [deleted("a", 5), undecodable("a", DELETED)], ids=["whole", "key-only"])
def test_deleted_object_in_a_streaming_list_is_not_degraded(event: WatchEvent) -> None:
    talk = streaming(added("a", 3), undecodable("a"), event, initial_events_end(6))
    assert talk.cache == {}
    assert talk.protocol.phase is Phase.WATCHING


def test_unreadable_delete_restarts_a_streaming_list() -> None:
    talk = streaming(added("a", 3), undecodable("", DELETED), initial_events_end(6))
    assert talk.news == []
    assert talk.delay() > 0
    assert talk.ask() == "stream"


# The quarantine.


def quarantined(*names: str) -> Quarantine:
    made = Quarantine()
    for name in names:
        made.add(DecodeError(f"ns/{name}: bad", key=f"ns/{name}"))
    return made


def test_objects_of_the_last_list_count_until_the_next_ends() -> None:
    quarantine = quarantined("a", "b")
    quarantine.begin_list()
    assert (quarantine.reason("ns/a"), len(quarantine)) == ("bad", 2)
    quarantine.add(DecodeError("worse", key="ns/b"))
    quarantine.end_list({"ns/b"})
    assert quarantine.reasons() == {"ns/b": "worse"}
    assert quarantine.reason("ns/a") is None


def test_decoded_object_stays_known_until_it_is_cached() -> None:
    quarantine = quarantined("a")
    assert quarantine.release("ns/a")
    assert not quarantine
    for _ in range(3):
        assert quarantine.reason("ns/a") == "bad"
        quarantine.count_batch()
    assert quarantine.reason("ns/a") is None
    assert not quarantine.leaving


def test_deleted_object_is_removed_at_once() -> None:
    quarantine = quarantined("a", "b")
    quarantine.release("ns/a", gone=True)
    quarantine.release("ns/b")
    quarantine.release("ns/b", gone=True)
    assert (quarantine.reason("ns/a"), quarantine.reason("ns/b")) == (None, None)
    assert not quarantine.is_tracking


def test_objects_without_readable_names_are_counted() -> None:
    quarantine = quarantined("a")
    quarantine.begin_list()
    for _ in range(3):
        quarantine.add(DecodeError("bad", key=""))
    quarantine.add(DecodeError("bad", key="ns/a"))
    assert len(quarantine) == 4
    quarantine.end_list({"ns/a", ""})
    assert str(quarantine).startswith("4 objects cannot be decoded (ns/a, …);")
    quarantine.begin_list()
    quarantine.end_list(())
    assert (len(quarantine), bool(quarantine)) == (0, False)


def test_each_version_and_the_end_are_reported() -> None:
    reports: list[tuple[str, str, str]] = []
    quarantine = Quarantine(lambda *report: reports.append(report))
    for key, version in (("shop/a", "1"), ("shop/a", "2"), ("shop/b", "3")):
        quarantine.add(DecodeError(f"{key}: no", key=key, version=version))
    assert reports == [("shop/a", "no", "1"), ("shop/a", "no", "2"), ("shop/b", "no", "3")]
    reports.clear()
    quarantine.begin_list()
    quarantine.add(DecodeError("no", key="shop/b", version="4"))
    quarantine.release("shop/a")
    quarantine.end_list({"shop/a", "shop/b"})
    assert reports == [("shop/b", "no", "4"), ("shop/a", "", "")]
    quarantine.release("shop/b", gone=True)
    assert reports[2:] == [("shop/b", "", "")]
    quarantine.add(DecodeError("no", key="shop/c", version="5"))
    quarantine.clear()
    assert reports[4:] == [("shop/c", "", "")]
