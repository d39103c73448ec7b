"""Objects that take long to decode, or are nested too deeply for the decoder; servers accept them."""

from __future__ import annotations

import json
from functools import partial
from time import thread_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.cache.objects.fields import FieldDecoder, field_value
from aioinformer.cache.objects.record import COMPARED, Record, decode_complete, decode_deep, decode_record
from aioinformer.cache.objects.storage import stripped
from aioinformer.errors import DecodeError
from aioinformer.transport.json_scanner import members
from aioinformer.transport.list_parser import ListParser
from tests.support.watch_values import events_of

SIZE = 700_000
META = b'"metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"7"}'
MIB, CHUNK = 1 << 20, 256 << 10


def many(unit: bytes, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return opening + b",".join([unit] * (SIZE // (len(unit) + 1))) + closing


def with_spec(spec: bytes) -> bytes:
    return b"{%b,%b}" % (META, b'"spec":' + spec)


HEAVY = {
    "deep": with_spec(b"[" * (SIZE // 2) + b"]" * (SIZE // 2)),
    "nested 1,100 deep, often": with_spec(many(b"[" * 1100 + b"]" * 1100)),
    "numbers": with_spec(many(b"1")),
    "empty lists": with_spec(many(b"[]")),
    "metadata behind": b'{"spec":%b,%b}' % (many(b"{}"), META),
    "metadata often": b"{%b}" % b",".join([META] * (2 * SIZE // len(META))),
    "brackets in texts": with_spec(many(b'"}{[\\"],"')),
    "managed fields": b'{%b,"managedFields":[%b]}}' % (META[:-1], many(b'"f:a":{}', b"{", b"}")),
    "labels": b'{%b,"labels":{%b}}}' % (META[:-1], b",".join(b'"%d":""' % i for i in range(120_000))),
    "backslashes": with_spec(b'"%b"' % (b"\\\\" * 900_000)),
    "a long key": b'{"%b":1,%b}' % (b'\\"' * 900_000, META),
    "white space": with_spec(b" " * 1_800_000 + b"1"),
}


@pytest.mark.parametrize("name", HEAVY)
def test_event_of_a_heavy_object_is_decoded(name: str) -> None:
    raw = HEAVY[name]
    text = b'{"type":"DELETED","object":%b}\n{"type":"ADDED","object":{"metadata":{"name":"b"}}}\n' % raw
    heavy, following = events_of(*(text[at : at + CHUNK] for at in range(0, len(text), CHUNK)))
    assert (heavy.type, heavy.error) == ("DELETED", None)
    assert heavy.record is not None
    assert (heavy.record.key, heavy.record.uid, heavy.record.resource_version) == ("ns/a", "u", "7")
    assert heavy.record.json == raw
    assert following.record is not None
    assert following.record.key == "b"


@pytest.mark.parametrize("name", HEAVY)
def test_heavy_item_of_a_list_is_decoded(name: str) -> None:
    raw = HEAVY[name]
    body = (
        b'{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"y"}},%b,{"metadata":{"name":"z"}}]}' % raw
    )
    found = items_of(body, CHUNK)
    assert [item.key for item in found] == ["y", "ns/a", "z"]
    assert found[1].json == raw


def test_template_in_a_deep_item_is_no_item() -> None:
    template = b'{"metadata":{"name":"phantom"}},{"metadata":{"name":"phantom"}}'
    item = with_spec(b"[%b,%b]" % (b"[" * 20_000 + b"]" * 20_000, template))
    body = b'{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"y"}},%b,%b]}' % (item, item)
    assert [each.key for each in items_of(body, 4096)] == ["y", "ns/a", "ns/a"]


def items_of(body: bytes, size: int) -> list[Record]:
    parser: ListParser[Record] = ListParser(decode_record, deep=partial(decode_deep, decode_record))
    found: list[Record | DecodeError | None] = []
    for at in range(0, len(body), size):
        parser.feed(body[at : at + size])
        found += parser.items()
    parser.feed_eof()
    found += parser.items()
    assert not [each for each in found if isinstance(each, DecodeError)]
    return [each for each in found if isinstance(each, Record)]


BOMBS = {"lists": b"[", "objects": b'{"x":', "shallow ones": b"[[[]],", "both": b'[{"":'}


@pytest.mark.parametrize("name", BOMBS)
def test_brackets_without_end_are_an_error(name: str) -> None:
    """They neither crash the interpreter, nor take more than linear time, nor swallow what follows."""
    bomb = b'{%b,"spec":%b}' % (META, BOMBS[name] * (3 * MIB // len(BOMBS[name])))
    begin = thread_time()
    with pytest.raises(DecodeError):
        events_of(b'{"type":"ADDED","object":%b}\n' % bomb, b'{"type":"ADDED","object":{"metadata":{"name":"b"}}}\n')
    parser: ListParser[Record] = ListParser(decode_record, deep=partial(decode_deep, decode_record))
    parser.feed(b'{"metadata":{"resourceVersion":"9"},"items":[%b]}' % bomb)
    parser.feed_eof()
    assert not [item for item in parser.items() if isinstance(item, Record)]
    with pytest.raises(DecodeError):
        parser.head()
    assert members(bomb) == {}
    assert thread_time() - begin < 20, "the time is not linear"


@pytest.mark.parametrize("deep", [b"[" * 40_000 + b"]" * 40_000, many(b"[]")])
def test_heavy_object_with_bad_metadata_has_its_key(deep: bytes) -> None:
    raw = b'{"metadata":{"name":"a","namespace":"ns","uid":7,"resourceVersion":"3"},"spec":%b}' % deep
    [event] = events_of(b'{"type":"MODIFIED","object":%b}\n' % raw)
    assert isinstance(event.error, DecodeError)
    assert (event.error.key, event.error.version) == ("ns/a", "3")


@pytest.mark.parametrize(
    "damage", [b"x", b",", b",x", b',"y"', b',"y":01', b',"y":"\\q"', b',"y":"\xff"', b',"y":[1}', b"}", b"]"]
)
def test_heavy_object_with_broken_json_is_an_error(damage: bytes) -> None:
    with pytest.raises(DecodeError):
        events_of(b'{"type":"ADDED","object":{%b,"spec":%b%b}}\n{"type":"BOOKMARK"}\n' % (META, many(b"[]"), damage))


def test_declared_fields_of_a_heavy_object_are_read() -> None:
    decode = FieldDecoder(["spec.nodeName", "metadata.annotations.x", "status.phase.name"])
    raw = b'{%b,"annotations":{"x":"y"}},"status":{"phase":%b},"spec":{"much":%b,"nodeName":"n"}}' % (
        META[:-1],
        many(b"[]"),
        many(b"{}"),
    )
    record = decode_complete(decode, raw)
    assert record.fields is not None
    assert field_value(record, ("spec", "nodeName")) == "n"
    assert field_value(record, ("metadata", "annotations", "x")) == "y"
    assert field_value(record, ("status", "phase", "name")) is None


def test_different_heavy_objects_are_not_compared_in_depth() -> None:
    raw = HEAVY["empty lists"]
    record = decode_record(raw)
    watched = decode_record(b'{"kind":"Pod","apiVersion":"v1",' + raw[1:])
    other = decode_record(raw.replace(b"[],", b"[] ,", 1))
    assert len(raw) > COMPARED
    assert record.same_content(watched)
    assert not record.same_content(other)


def test_object_too_deep_to_strip_is_kept_whole() -> None:
    record = decode_complete(decode_record, HEAVY["deep"])
    assert stripped(record) is record


# Deep objects.


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def deep(name: str = "a", levels: int = 20_000) -> bytes:
    nested = '{"x":' * levels + "1" + "}" * levels
    fields = f'[{{"fieldsV1":{nested}}}]'
    metadata = f'{{"managedFields":{fields},"name":"{name}","namespace":"ns","resourceVersion":"7","uid":"u"}}'
    return f'{{"metadata":{metadata},"spec":{nested}}}'.encode()


@given(st.dictionaries(st.text(), JSON, max_size=4), st.sampled_from([(",", ":"), (", ", ": ")]))
def test_members_equal_those_of_a_decoder(document: dict[str, Any], separators: tuple[str, str]) -> None:
    found = members(json.dumps(document, separators=separators).encode())
    assert {name: json.loads(value) for name, value in found.items() if name} == {
        name: value for name, value in document.items() if name
    }


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b'"text"', b"{", b'{"a":1', b'{"a":1}}', b'{"a":1}x', b'["a",{"b":1}]', b"}"]
)
def test_incomplete_or_non_object_text_has_no_members(raw: bytes) -> None:
    assert members(raw) == {}


@pytest.mark.parametrize("levels", [4000, 20_000])
def test_watch_continues_after_a_deep_object(levels: int) -> None:
    event, following = events_of(b'{"type":"MODIFIED","object":%b}\n' % deep(levels=levels) * 2)
    assert (event.type, event.record and event.record.key, event.error) == ("MODIFIED", "ns/a", None)
    assert following.record is not None
    assert following.record.json == deep(levels=levels)


@pytest.mark.parametrize("levels", [4000, 20_000])
def test_list_around_a_deep_object_is_parsed(levels: int) -> None:
    body = b'{"metadata":{"resourceVersion":"9"},"items":[%b,%b]}' % (deep("a", levels), deep("b", levels))
    assert [item.name for item in items_of(body, 50_000)] == ["a", "b"]
