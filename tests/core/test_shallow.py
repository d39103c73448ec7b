"""Objects that are nested deeper than any decoder goes, which servers accept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.errors import DecodeError
from aioinformer.list_stream import ListParser
from aioinformer.objects import Record, decode_record
from aioinformer.shallow import members
from aioinformer.wire import Intake, decode_watch_line

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
def test_members_are_what_a_decoder_finds(document: dict[str, Any], separators: tuple[str, str]) -> None:
    found = members(json.dumps(document, separators=separators).encode())
    assert {name: json.loads(value) for name, value in found.items() if name} == {
        name: value for name, value in document.items() if name
    }


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b'"text"', b"{", b'{"a":1', b'{"a":1}}', b'{"a":1}x', b'["a",{"b":1}]', b"}"]
)
def test_what_is_no_object_or_does_not_end_has_no_members(raw: bytes) -> None:
    assert members(raw) == {}


def test_a_deep_object_is_called_what_it_is_called() -> None:
    record = decode_record(deep())
    assert (record.key, record.uid, record.resource_version, record.json) == ("ns/a", "u", "7", deep())


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
def test_a_watch_goes_on_behind_a_deep_object(kind: str) -> None:
    line = b'{"type":"%b","object":%b}' % (kind.encode(), deep())
    event = decode_watch_line(line, Intake().changed)
    assert (event.type, event.record and event.record.key, event.error) == (kind, "ns/a", None)


def test_a_list_is_taken_apart_around_a_deep_object() -> None:
    parser: ListParser[Record] = ListParser(decode_record)
    body = b'{"metadata":{"resourceVersion":"9"},"items":[%b,%b]}' % (deep("a"), deep("b"))
    names = []
    for start in range(0, len(body), 50_000):
        parser.feed(body[start : start + 50_000])
        names += [item.name for item in parser.items() if isinstance(item, Record)]
    parser.feed_eof()
    names += [item.name for item in parser.items() if isinstance(item, Record)]
    assert names == ["a", "b"]


def test_a_deep_object_that_is_cut_is_none() -> None:
    with pytest.raises(DecodeError):
        decode_record(deep()[:-1])
