"""Lines of a watch and items of a list: any notation is decoded, and garbage raises only DecodeError."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.cache.objects.record import Record, decode_record
from aioinformer.errors import DecodeError, Expired
from aioinformer.reflector import ListOptions, ReflectorOptions
from aioinformer.reflector.protocol.messages import Listed, Send
from aioinformer.reflector.response_reader import ResponseReader
from aioinformer.reflector.watch_decoder import decode_watch_line
from aioinformer.reflector.watch_events import RecordDecoder
from tests.support.wire_objects import body, record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.reflector.watch_events import WatchEvent


def read(line: bytes, decode: Any = decode_record) -> WatchEvent:
    return decode_watch_line(line, decode)


def line(kind: str, obj: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + obj + b"}"


POD = body("a", 7, spec={"x": ["}", '{"type":"ADDED"']})


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
def test_event_has_type_and_object_bytes(kind: str) -> None:
    event = read(line(kind, POD))
    assert event.type == kind
    assert event.record is not None
    assert (event.record.key, event.record.resource_version, event.record.uid) == ("ns/a", "7", "uid-a")
    assert event.record.raw == POD


UNUSUAL = {
    "spaces": b' { "type" : "ADDED" ,  "object" : ' + POD + b" } ",
    "python": json.dumps({"type": "ADDED", "object": json.loads(POD)}).encode(),
    "object-first": b'{"object":' + POD + b',"type":"ADDED"}',
    "more-fields": b'{"type":"ADDED","extra":[1],"object":' + POD + b',"more":{"a":null}}',
    "field-behind": b'{"type":"ADDED","object":' + POD + b',"more":1}',
    "space-behind": b'{"type":"ADDED","object":' + POD + b" } ",
    "carriage-return": line("ADDED", POD) + b"\r",
    "escaped": b'{"\\u0074ype":"AD\\u0044ED","object":' + POD + b"}",
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_event_may_have_any_json_layout(name: str) -> None:
    event = read(UNUSUAL[name])
    assert event.type == "ADDED"
    assert event.record is not None
    assert event.record.key == "ns/a"
    assert json.loads(event.record.raw) == json.loads(POD)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b"7",
        b"{}",
        b"garbage",
        b'{"type":7,"object":{}}',
        b'{"type":null}',
        b'{"object":{"metadata":{"name":"a"}}}',
        b'{"type":"ADDED","object":{"metadata":{"name":"a"}}',
        line("ADDED", POD)[:-1],
        line("ADDED", POD) + b"}",
        line("ADDED", POD) * 2,
        b'\xff\xfe{"type":"ADDED"}',
        b'{"type":"\xff","object":{}}',
        b'{"type":"\\ud800","object":{}}',
        b'{"type":"ADDED","object":NaN}',
        b'{"type":' + b"[" * 100_000,
        b'{"type":"ADDED","object":{"metadata":{"name":"\\ud800"}}}',
        b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}',
        b'{"type":"ADDED","object":{"metadata":{"name":"a"},"spec":"\xff"}}',
    ],
)
def test_invalid_line_is_an_error(text: bytes) -> None:
    with pytest.raises(DecodeError):
        read(text)


UNDECODABLE = {
    "nothing": b"",
    "null": b"null",
    "list": b"[]",
    "no-metadata": b"{}",
    "no-name": b'{"metadata":{"namespace":"ns"}}',
    "empty-name": b'{"metadata":{"name":""}}',
    "name-is-a-number": b'{"metadata":{"name":7}}',
    "metadata-is-text": b'{"metadata":"x"}',
    "metadata-is-a-list": b'{"metadata":[]}',
}


@pytest.mark.parametrize("name", UNDECODABLE)
def test_undecodable_object_is_the_error_of_its_event(name: str) -> None:
    obj = UNDECODABLE[name]
    event = read(b'{"type":"ADDED"}') if not obj else read(line("ADDED", obj))
    assert event.record is None
    assert isinstance(event.error, DecodeError)


@pytest.mark.parametrize(
    ("metadata", "key", "version"),
    [
        (b'{"name":"a","namespace":"ns","uid":7,"resourceVersion":"3"}', "ns/a", "3"),
        (b'{"name":"a","resourceVersion":7}', "a", ""),
        (b'{"name":"a","namespace":7}', "a", ""),
        (b'{"name":"a","namespace":"ns","resourceVersion":{}}', "ns/a", ""),
        (b'{"name":7,"resourceVersion":"3"}', "", "3"),
        (b'{"name":"a","uid":["hunter2"]}', "a", ""),
    ],
)
def test_mistyped_metadata_keeps_what_is_readable(metadata: bytes, key: str, version: str) -> None:
    error = read(line("MODIFIED", b'{"metadata":' + metadata + b"}")).error
    assert isinstance(error, DecodeError)
    assert (error.key, error.version) == (key, version)
    assert "hunter2" not in repr(error)


@pytest.mark.conformance("REF-28")
@pytest.mark.parametrize(
    ("annotations", "ends"),
    [
        ({"k8s.io/initial-events-end": "true"}, True),
        ({"k8s.io/initial-events-end": "false"}, False),
        ({"k8s.io/initial-events-end": "True"}, False),
        ({"k8s.io/initial-events-end": True}, False),
        ({"other": "true"}, False),
        (None, False),
    ],
)
def test_bookmark_annotation_marks_the_end_of_initial_events(annotations: Any, ends: bool) -> None:
    meta = {"resourceVersion": "9", "annotations": annotations}
    event = read(line("BOOKMARK", json.dumps({"kind": "Pod", "metadata": meta}).encode()))
    assert (event.type, event.version, event.initial_events_end, event.error) == ("BOOKMARK", "9", ends, None)


@pytest.mark.parametrize("obj", [b"{}", b'{"metadata":null}', b'{"metadata":{"resourceVersion":null}}'])
def test_bookmark_without_a_version_is_accepted(obj: bytes) -> None:
    event = read(line("BOOKMARK", obj))
    assert (event.version, event.error) == ("", None)


@pytest.mark.parametrize("obj", [b"7", b"[]", b'{"metadata":7}', b'{"metadata":{"resourceVersion":7}}'])
def test_unreadable_bookmark_has_an_error(obj: bytes) -> None:
    event = read(line("BOOKMARK", obj))
    assert (event.type, event.version) == ("BOOKMARK", "")
    assert isinstance(event.error, DecodeError)


def test_bookmark_is_never_decoded_as_a_model() -> None:
    assert read(line("BOOKMARK", POD), decode=lambda raw: pytest.fail("shown")).version == "7"


@pytest.mark.conformance("REF-40", "REF-49")
def test_error_event_is_its_status() -> None:
    status = {
        "kind": "Status",
        "code": 410,
        "reason": "Expired",
        "message": "too old",
        "details": {"retryAfterSeconds": 3},
    }
    error = read(line("ERROR", json.dumps(status).encode())).error
    assert isinstance(error, Expired)
    assert (error.status, error.retry_after) == (410, 3)


@pytest.mark.parametrize("obj", [b"{}", b"null", b"[]", b'"oops"', b'{"code":"410"}', b'{"details":7,"causes":[7]}'])
def test_error_event_without_a_status_is_a_server_error(obj: bytes) -> None:
    error = read(line("ERROR", obj)).error
    assert getattr(error, "status", None) == 500


def test_unknown_event_type_is_passed_on() -> None:
    assert read(line("FROBNICATED", b"7")).type == "FROBNICATED"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
METADATA = st.dictionaries(
    st.sampled_from(["name", "namespace", "uid", "resourceVersion", "labels", "annotations"]), JSON, max_size=6
)


OBJECTS = st.one_of(JSON, st.builds(lambda metadata: {"metadata": metadata}, METADATA))


@given(st.sampled_from(["ADDED", "DELETED", "BOOKMARK", "ERROR", "x"]), OBJECTS)
def test_any_object_gives_an_event(kind: str, obj: Any) -> None:
    assert read(line(kind, json.dumps(obj).encode())).type == kind


@given(st.binary(), st.booleans())
def test_any_bytes_give_an_event_or_a_decode_error(noise: bytes, wrapped: bool) -> None:
    with contextlib.suppress(DecodeError):
        read(line("ADDED", noise) if wrapped else noise)


# Records: admitted once, refused without quotes, and replaced by the equal cached record.


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


# Relists.


@pytest.mark.conformance("WEAK-16", "WEAK-17")
def test_unchanged_listed_object_is_the_cached_one() -> None:
    cached = decode_record(POD)
    assert RecordDecoder(refuse, {cached.key: cached}.get).from_list(POD) is cached


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


def test_incomparable_object_counts_as_changed() -> None:
    head = b'{"metadata":{"name":"a","resourceVersion":"7"},"x":"\xff"'
    cached = decode_record(head + b"}")
    assert RecordDecoder(known={"a": cached}.get).from_list(head + b',"y":1}') is not cached


# The end of an item is found by reading all of it, also if a record needs only a part.


_TEMPLATE = {"metadata": {"name": "template"}, "spec": {}}


class Body:
    """An answer of which the test digests the chunks itself."""

    status = 200
    headers: ClassVar[dict[str, str]] = {}

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b""

    async def close(self) -> None: ...


def item(name: str, spec: Any) -> dict[str, Any]:
    managed = [{"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:spec": {}}}]
    return {"metadata": {"name": name, "resourceVersion": "1", "managedFields": managed}, "spec": spec}


def deep(levels: int) -> Any:
    value: Any = [_TEMPLATE, _TEMPLATE]
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "spec",
    [{"templates": [_TEMPLATE] * 3}, {"text": "x" * 2000}, {}, deep(400)],
    ids=["templates", "long", "short", "deep"],
)
def test_items_are_complete_whatever_follows_their_metadata(spec: Any) -> None:
    items = [item("first", {"text": "x" * 1000}), item("second", spec), item("third", {}), item("fourth", {})]
    body = json.dumps({"metadata": {"resourceVersion": "7"}, "items": items}, separators=(",", ":")).encode()
    for size in (50, 700, len(body)):
        reader = ResponseReader(Body(), Send(ListOptions()), RecordDecoder(), ReflectorOptions())
        chunks: list[bytes | None] = [body[at : at + size] for at in range(0, len(body), size)]
        answers = [answer for chunk in [*chunks, None] for answer in reader.parse(chunk, initial=True)]
        found = [each for answer in answers if isinstance(answer, Listed) for each in answer.items]
        assert [json.loads(each.json) for each in found if isinstance(each, Record)] == items
