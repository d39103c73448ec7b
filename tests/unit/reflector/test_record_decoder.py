"""Records of received objects: admitted once, refused without quotes, and replaced by the equal cached record."""

from __future__ import annotations

import pytest

from aioinformer.cache.objects.record import Record, decode_record
from aioinformer.cache.objects.storage import decoded
from aioinformer.errors import DecodeError
from aioinformer.reflector.watch_decoder import decode_watch_line
from aioinformer.reflector.watch_events import RecordDecoder
from tests.support.wire_objects import body, record

POD = body("a", 7, spec={"x": 1})


def line(kind: str, obj: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + obj + b"}"


def refuse(found: Record) -> Record:
    raise ValueError("hunter2")


def test_refused_object_is_an_event_with_key_and_no_quotes() -> None:
    error = decode_watch_line(line("MODIFIED", POD), RecordDecoder(refuse).from_watch).error
    assert isinstance(error, DecodeError)
    assert (error.key, error.version) == ("ns/a", "7")
    assert "hunter2" not in str(error)


def test_refused_delete_keeps_its_object() -> None:
    event = decode_watch_line(line("DELETED", POD), RecordDecoder(refuse).from_watch)
    assert event.record is not None
    assert (event.record.key, event.record.resource_version) == ("ns/a", "7")
    assert event.error is not None


def test_object_is_admitted_once_even_if_refused() -> None:
    seen: list[str] = []

    def on_arrival(found: Record) -> Record:
        seen.append(found.key)
        raise ValueError

    decode_watch_line(line("ADDED", POD), RecordDecoder(on_arrival).from_watch)
    assert seen == ["ns/a"]


def test_admit_may_return_another_record() -> None:
    other = record("a", 8)
    assert decode_watch_line(line("ADDED", POD), RecordDecoder(lambda _: other).from_watch).record is other


# Relists.


@pytest.mark.conformance("WEAK-16", "WEAK-17")
def test_unchanged_listed_object_is_the_cached_one() -> None:
    cached = decode_record(POD)
    assert RecordDecoder(refuse, {cached.key: cached}.get).from_list(POD) is cached


@pytest.mark.parametrize("kind", [b'"kind":"Pod","apiVersion":"v1",', b'"apiVersion":"v1","kind":"Pod",'])
def test_kind_and_api_version_do_not_count_as_a_change(kind: bytes) -> None:
    bare = body("a", 7, spec={"x": 1})
    cached = decode_record(b"{" + kind + bare[1:])
    assert RecordDecoder(refuse, {"ns/a": cached}.get).from_list(bare) is cached


def test_object_without_a_version_is_compared_by_content() -> None:
    cached = record("a", "", spec={"x": 1})
    decoder = RecordDecoder(known={"ns/a": cached}.get)
    assert decoder.from_list(body("a", "", spec={"x": 1})) is cached
    assert decoder.from_list(body("a", "", spec={"x": 2})) is not cached


@pytest.mark.parametrize("change", [{"resourceVersion": "8"}, {"uid": "another"}])
def test_other_version_or_uid_is_a_new_object(change: dict[str, str]) -> None:
    cached = record("a", 7)
    assert RecordDecoder(known={"ns/a": cached}.get).from_list(body("a", 7, metadata=change)) is not cached


def test_list_compares_contents_at_an_equal_version() -> None:
    cached = record("a", 7, spec={"x": 1})
    decoder = RecordDecoder(known={"ns/a": cached}.get)
    assert decoder.from_list(body("a", 7, spec={"x": 1})) is cached
    assert decoder.from_list(body("a", 7, spec={"x": 2})) is not cached


def test_list_ignores_kind_and_field_order() -> None:
    cached = decode_record(b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"u"},"spec":{"x":1,"y":2}}')
    decoder = RecordDecoder(known={"a": cached}.get)
    assert decoder.from_list(b'{"metadata":{"name":"a","uid":"u"},"spec":{"x":1,"y":2}}') is cached
    assert decoder.from_list(b'{"spec":{"y":2,"x":1},"metadata":{"uid":"u","name":"a"}}') is cached


def test_list_notices_a_removed_first_field() -> None:
    cached = decode_record(b'{"data":1,"metadata":{"name":"a","uid":"u"}}')
    fresh = b'{"metadata":{"name":"a","uid":"u"}}'
    assert RecordDecoder(known={"a": cached}.get).from_list(fresh) is not cached


def test_incomparable_object_counts_as_changed() -> None:
    head = b'{"metadata":{"name":"a","resourceVersion":"7"},"x":"\xff"'
    cached = decode_record(head + b"}")
    assert RecordDecoder(known={"a": cached}.get).from_list(head + b',"y":1}') is not cached


def test_decoded_objects_of_one_version_are_compared_by_content() -> None:
    first, other = record("a", 7, spec={"x": 1}), record("a", 7, spec={"x": 2})
    cached = decoded(first)
    decoder = RecordDecoder(decoded, {"ns/a": cached}.get)
    assert decoder.from_list(first.raw) is cached
    assert decoder.from_list(other.raw) is not cached
