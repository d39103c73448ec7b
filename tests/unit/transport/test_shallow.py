"""Objects that are nested too deeply for the decoder; servers accept them."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.cache.objects.record import Record, decode_in_steps, decode_record
from aioinformer.errors import DecodeError
from aioinformer.transport.json_scanner import finish, members
from aioinformer.transport.list_parser import ListParser
from tests.support.watch_values import events_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def deep(name: str = "a", levels: int = 20_000) -> bytes:
    nested = '{"x":' * levels + "1" + "}" * levels
    fields = f'[{{"fieldsV1":{nested}}}]'
    metadata = f'{{"managedFields":{fields},"name":"{name}","namespace":"ns","resourceVersion":"7","uid":"u"}}'
    return f'{{"metadata":{metadata},"spec":{nested}}}'.encode()


@given(st.dictionaries(st.text(), JSON), st.sampled_from([(",", ":"), (", ", ": ")]))
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


def test_deep_object_has_its_key() -> None:
    raw = deep(levels=4000)
    record = decode_record(raw)
    assert (record.key, record.uid, record.resource_version, record.json) == ("ns/a", "u", "7", raw)


@pytest.mark.parametrize("levels", [4000, 20_000])
@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
def test_watch_continues_after_a_deep_object(kind: str, levels: int) -> None:
    line = b'{"type":"%b","object":%b}\n' % (kind.encode(), deep(levels=levels))
    event, following = events_of(line * 2)
    assert (event.type, event.record and event.record.key, event.error) == (kind, "ns/a", None)
    assert following.record is not None
    assert following.record.json == deep(levels=levels)


@pytest.mark.parametrize("levels", [4000, 20_000])
def test_list_around_a_deep_object_is_parsed(levels: int) -> None:
    parser: ListParser[Record] = ListParser(decode_record, in_steps=partial(decode_in_steps, decode_record))
    body = b'{"metadata":{"resourceVersion":"9"},"items":[%b,%b]}' % (deep("a", levels), deep("b", levels))
    names = []
    for start in range(0, len(body), 50_000):
        parser.feed(body[start : start + 50_000])
        names += [item.name for item in parser.items() if isinstance(item, Record)]
    parser.feed_eof()
    names += [item.name for item in parser.items() if isinstance(item, Record)]
    assert names == ["a", "b"]


@pytest.mark.parametrize("levels", [4000, 20_000])
def test_truncated_deep_object_is_refused(levels: int) -> None:
    with pytest.raises(DecodeError):
        finish(decode_in_steps(decode_record, deep(levels=levels)[:-1]))
