"""Lines of a watch: any notation is decoded, and garbage raises only DecodeError."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.cache.objects.record import decode_record
from aioinformer.errors import DecodeError, Expired
from aioinformer.reflector import watch_decoder
from aioinformer.reflector.watch_decoder import decode_watch_line
from tests.support.wire_objects import body

if TYPE_CHECKING:
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


def test_html_page_is_reported_as_from_a_proxy() -> None:
    with pytest.raises(DecodeError, match="proxy"):
        read(b"  <html>")


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
    ],
)
def test_mistyped_metadata_keeps_what_is_readable(metadata: bytes, key: str, version: str) -> None:
    error = read(line("MODIFIED", b'{"metadata":' + metadata + b"}")).error
    assert isinstance(error, DecodeError)
    assert (error.key, error.version) == (key, version)


def test_object_error_never_quotes_the_object() -> None:
    error = read(line("ADDED", b'{"metadata":{"name":"a","uid":["hunter2"]},"data":"hunter2"}')).error
    assert "hunter2" not in repr(error)


def test_null_metadata_equals_absent() -> None:
    found = decode_record(b'{"metadata":{"name":"a","namespace":null,"uid":null,"resourceVersion":null,"labels":null}}')
    assert (found.key, found.namespace, found.uid, found.resource_version) == ("a", "", "", "")


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


def test_bookmark_may_have_only_a_version() -> None:
    assert read(line("BOOKMARK", b'{"metadata":{"resourceVersion":"9"}}')).version == "9"


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


def test_kube_apiserver_line_is_decoded_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_decoder, "_decode_line", lambda text: pytest.fail("decoded as a whole"))
    event = read(line("MODIFIED", POD))
    assert event.record is not None
    assert event.record.raw == POD
