"""Objects that take long to decode, or are nested too deeply for the decoder; servers accept them."""

from __future__ import annotations

import gc
import json
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.cache.objects.fields import FieldDecoder, field_value
from aioinformer.cache.objects.record import Record, decode_in_steps, decode_record
from aioinformer.cache.objects.storage import stripped
from aioinformer.errors import DecodeError
from aioinformer.reflector.watch_events import RecordDecoder
from aioinformer.transport.json_scanner import LARGE, WINDOW, finish, is_heavy, is_json, members
from aioinformer.transport.list_parser import ListParser
from tests.support.watch_values import events_of, steps_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FrameType

SIZE = 700_000
META = b'"metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"7"}'
#: The maximum of calls between two pauses: 32 members or one window, and the record after them.
CALLS = 2000

finish(is_json(b"1"))  # compiles its patterns, once for each process


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


class Gap:
    """Counts the calls between two pauses."""

    def __init__(self) -> None:
        self.longest = self._calls = self.pauses = 0

    def counted(self, steps: Iterable[Any]) -> Iterator[Any]:
        gc.disable()  # it would call the finalizers of what earlier tests have left
        sys.setprofile(self._count)
        try:
            for step in steps:
                self.longest, self._calls = max(self.longest, self._calls), 0
                self.pauses += step is None
                yield step
        finally:
            sys.setprofile(None)
            gc.enable()

    def _count(self, frame: FrameType, event: str, argument: Any) -> None:
        self._calls += event in ("call", "c_call")


class Given:
    """Counts the bytes that the decoder is given at once."""

    def __init__(self) -> None:
        self.most = 0

    def __call__(self, raw: bytes) -> Record:
        self.most = max(self.most, len(raw))
        return decode_record(raw)


@pytest.mark.parametrize("name", HEAVY)
def test_heavy_event_is_decoded_in_steps(name: str) -> None:
    raw, gap, given = HEAVY[name], Gap(), Given()
    text = b'{"type":"DELETED","object":%b}\n{"type":"ADDED","object":{"metadata":{"name":"b"}}}\n' % raw
    steps = steps_of([text], decoder=RecordDecoder(decode=given))
    heavy, following = [event for event in gap.counted(steps) if event is not None]
    assert (heavy.type, heavy.error) == ("DELETED", None)
    assert (heavy.record.key, heavy.record.uid, heavy.record.resource_version) == ("ns/a", "u", "7")
    assert heavy.record.json == raw
    assert following.record.key == "b"
    assert given.most < LARGE
    assert gap.longest < CALLS
    assert gap.pauses >= len(raw) / WINDOW / 2


@pytest.mark.parametrize("name", HEAVY)
def test_heavy_item_is_decoded_in_steps(name: str) -> None:
    raw, gap, given = HEAVY[name], Gap(), Given()
    body = (
        b'{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"y"}},%b,{"metadata":{"name":"z"}}]}' % raw
    )
    parser: ListParser[Record] = ListParser(given, in_steps=partial(decode_in_steps, given))

    def items() -> Iterator[Any]:
        for at in range(0, len(body), 256 * 1024):
            parser.feed(body[at : at + 256 * 1024])
            yield from parser.items()
        parser.feed_eof()
        yield from parser.items()

    found = [item for item in gap.counted(items()) if item is not None]
    assert [item.key for item in found] == ["y", "ns/a", "z"]
    assert found[1].json == raw
    assert given.most < LARGE
    assert gap.longest < CALLS


def test_one_megabyte_config_map_is_decoded_at_once() -> None:
    data = json.dumps([{"type": "graph", "title": "Requests a second"}] * 15_000)
    raw = json.dumps({"metadata": {"name": "a"}, "data": {"x": data}}, separators=(",", ":")).encode()
    assert len(raw) > 800_000
    assert None not in list(steps_of([b'{"type":"ADDED","object":%b}\n' % raw]))


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


def test_heavy_bookmark_has_its_version() -> None:
    metadata = b'{"annotations":{"x":%b,"k8s.io/initial-events-end":"true"},"resourceVersion":"9"}' % many(b"[]")
    [event] = events_of(b'{"type":"BOOKMARK","object":{"metadata":%b}}\n' % metadata)
    assert (event.version, event.initial_events_end) == ("9", True)


def test_declared_fields_of_a_heavy_object_are_read() -> None:
    decode = FieldDecoder(["spec.nodeName", "metadata.annotations.x", "status.phase.name"])
    raw = b'{%b,"annotations":{"x":"y"}},"status":{"phase":%b},"spec":{"much":%b,"nodeName":"n"}}' % (
        META[:-1],
        many(b"[]"),
        many(b"{}"),
    )
    record = finish(decode_in_steps(decode, raw))
    assert record.fields is not None
    assert field_value(record, ("spec", "nodeName")) == "n"
    assert field_value(record, ("metadata", "annotations", "x")) == "y"
    assert field_value(record, ("status", "phase", "name")) is None


def test_different_heavy_objects_are_not_compared_in_depth() -> None:
    raw = HEAVY["empty lists"]
    record = finish(decode_in_steps(decode_record, raw))
    watched = finish(decode_in_steps(decode_record, b'{"kind":"Pod","apiVersion":"v1",' + raw[1:]))
    other = finish(decode_in_steps(decode_record, raw.replace(b"[],", b"7,", 1)))
    assert is_heavy(raw)
    assert record.same_content(watched)
    assert not record.same_content(other)


@pytest.mark.parametrize("name", ["deep", "numbers"])
def test_object_too_heavy_to_strip_is_kept_whole(name: str) -> None:
    record = finish(decode_in_steps(decode_record, HEAVY[name]))
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
    parser: ListParser[Record] = ListParser(decode_record, in_steps=partial(decode_in_steps, decode_record))
    body = b'{"metadata":{"resourceVersion":"9"},"items":[%b,%b]}' % (deep("a", levels), deep("b", levels))
    names = []
    for start in range(0, len(body), 50_000):
        parser.feed(body[start : start + 50_000])
        names += [item.name for item in parser.items() if isinstance(item, Record)]
    parser.feed_eof()
    names += [item.name for item in parser.items() if isinstance(item, Record)]
    assert names == ["a", "b"]
