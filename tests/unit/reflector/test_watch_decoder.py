"""JSON values of a stream, for any cuts and any notation."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.errors import DecodeError, FrameTooLarge
from aioinformer.reflector.value_stream import ValueStream
from tests.support.watch_values import each_event, events_of

if TYPE_CHECKING:
    from aioinformer.reflector.watch_events import WatchEvent

TEXT = b'{"a":1}\n\n{"b":"\xc3\xa9"}\r\n  \n{"c":3}\n{"half'
BOM = b"\xef\xbb\xbf"


def decode(raw: bytes) -> Any:
    try:
        value = json.loads(raw.decode())
    except ValueError as error:
        raise DecodeError("not one value") from error
    if not isinstance(value, dict):
        raise DecodeError("not an object")
    return value


def values_of(stream: ValueStream, *chunks: bytes) -> list[Any]:
    return [value for chunk in chunks for value in stream.read(chunk, decode, decode) if value is not None]


@pytest.mark.parametrize("cut", range(len(TEXT) + 1))
def test_chunk_boundaries_do_not_matter(cut: int) -> None:
    stream = ValueStream()
    assert values_of(stream, TEXT[:cut], TEXT[cut:]) == [{"a": 1}, {"b": "é"}, {"c": 3}]
    assert stream.finish() == b'{"half'


@pytest.mark.parametrize(
    "chunks",
    [
        [b'{"a":', b'"45678'],
        [b'{"a":"45678'],
        [b"{", b'"a":"4567"}\n'],
        [b'{"a":"4567"}\n'],
        [b'{"a"\n:"4567"}\n'],
        [b'{"a":1}{"a":"4567"}\n'],
    ],
)
def test_value_over_the_cap_names_the_option(chunks: list[bytes]) -> None:
    with pytest.raises(FrameTooLarge, match="raise max_frame"):
        values_of(ValueStream(10), *chunks)


def test_value_at_the_cap_is_accepted() -> None:
    assert values_of(ValueStream(10), b'{"a":"45"}\n{"a":"45"}\n{"a":') == [{"a": "45"}] * 2


# Values, not lines.


WRITTEN = {
    "one a line": b'{"a":1}\n{"b":2}\n',
    "no line break between": b'{"a":1}{"b":2}\n',
    "no line break at all": b'{"a":1}{"b":2}',
    "a space between": b'{"a":1} {"b":2}\n',
    "pretty": b'{\n  "a": 1\n}\n{\n  "b": 2\n}\n',
    "pretty, without a line break between": b'{\n  "a": 1\n}{\n  "b": 2\n}\n',
    "a line behind pretty": b'{\n  "a": 1\n}\n{"b":2}\n',
    "pretty, CRLF": b'{\r\n  "a": 1\r\n}\r\n{\r\n  "b": 2\r\n}\r\n',
    "a mark": BOM + b'{"a":1}\n{"b":2}\n',
    "marks": BOM + b'{"a":1}\n' + BOM + b'{"b":2}\n' + BOM,
    "a mark within a line": b'{"a":1}' + BOM + b'{"b":2}\n',
}


@pytest.mark.parametrize("name", WRITTEN)
def test_values_are_found_in_any_layout(name: str) -> None:
    text = WRITTEN[name]
    for size in (1, 2, 3, 5, len(text)):
        assert values_of(ValueStream(), *(text[i : i + size] for i in range(0, len(text), size))) == [
            {"a": 1},
            {"b": 2},
        ]


BROKEN = {
    "no JSON": b"garbage\n",
    "a page of a proxy": b"<html>\n",
    "another value": b"7\n",
    "a closing bracket": b"}\n",
    "cut in a text": b'{"a":"x\n',
    "cut behind a value": b'{"a":{"b":1}\n{"c":3}\n',
    "one bracket more": b'{"a":1}}\n',
    "garbage behind a value": b'{"a":1}x\n',
    "broken in the middle of a pretty one": b'{\n  "a": {\n  "b": 1\n  "c": 2\n',
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("before", [b"", b'{"before":1}\n', b'{"before":1}'])
def test_broken_json_is_an_immediate_error(name: str, before: bytes) -> None:
    values, seen = ValueStream().read(before + BROKEN[name], decode, decode), list[Any]()
    good = [{"before": 1}] * bool(before) + [{"a": 1}] * (name == "garbage behind a value")
    if name == "a closing bracket" and not before.endswith(b"\n"):
        good = []  # of the broken line
    with pytest.raises(DecodeError):
        seen.extend(value for value in values if value is not None)
    assert seen == good


def test_refused_bytes_remain_readable() -> None:
    stream = ValueStream()
    with pytest.raises(DecodeError):
        values_of(stream, b'{"a":1}\n<html>\n{"b":2}\n{"half')
    assert stream.unread() == b'<html>\n{"b":2}\n{"half'


def test_work_for_a_pretty_value_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0

    def count(text: bytes) -> bool:
        nonlocal looked
        looked += len(text)
        return True

    monkeypatch.setattr("aioinformer.reflector.value_stream._may_be_valid", count)
    text = json.dumps({"a": list(range(20_000))}, indent=0).encode()
    assert len(values_of(ValueStream(), *(text[i : i + 10] for i in range(0, len(text), 10)))) == 1
    assert looked < 3 * len(text)


# Whatever is sent comes out.


TEXTS = st.text(max_size=8) | st.sampled_from(['}{"type":"ADDED","object":{', "}{", '"', "\\", '\\"}', "\n", "\ufeff"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
MANAGED = [{"manager": "kubelet", "fieldsV1": {'k:{"type":"Ready"}': {}}}]


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": draw(st.sampled_from("abc")), "resourceVersion": str(draw(st.integers(1, 9)))}
    if draw(st.booleans()):
        metadata["annotations"] = draw(st.dictionaries(TEXTS, TEXTS, max_size=2))
    if draw(st.booleans()):
        metadata["managedFields"] = MANAGED
    obj = {"metadata": metadata, **draw(st.dictionaries(st.sampled_from(["spec", "status", "data"]), JSON))}
    event = {"type": draw(st.sampled_from(["ADDED", "MODIFIED", "DELETED"])), "object": obj}
    return dict(reversed(event.items())) if draw(st.sampled_from([False, False, True])) else event


@st.composite
def written(draw: st.DrawFn, event: dict[str, Any]) -> bytes:
    layout = draw(st.sampled_from(["compact", "compact", "spaces", "pretty", "flat", "anyhow"]))
    more: dict[str, Any] = {"ensure_ascii": draw(st.booleans())}
    if layout in ("compact", "anyhow"):
        more["separators"] = (",", ":")
    elif layout != "spaces":
        more["indent"] = 2 if layout == "pretty" else 0
    text = json.dumps(event, **more)
    if layout == "anyhow":
        text = _spread(text, random.Random(draw(st.integers(0, 1000))))
    return text.encode("utf-8")


def _spread(text: str, chance: random.Random) -> str:
    """White space anywhere between tokens."""
    spread, in_string, escaped = "", False, False
    for character in text:
        in_string ^= character == '"' and not escaped
        escaped = character == "\\" and in_string and not escaped
        spread += character
        if not in_string and character in "{}[],:" and chance.random() < 0.3:
            spread += chance.choice([" ", "\n", "\r\n", "\t", "\n\n"])
    return spread


BETWEEN = st.sampled_from([b"\n", b"\n", b"", b" ", b"\t", b"\r\n", b"\n\n", b"\n" + BOM, BOM, b" \n "])


@st.composite
def streams(draw: st.DrawFn) -> list[tuple[dict[str, Any], bytes]]:
    return [(event, draw(written(event)) + draw(BETWEEN)) for event in draw(st.lists(events(), max_size=6))]


def told(event: WatchEvent) -> Any:
    assert event.record is not None
    return {"type": event.type, "object": json.loads(event.record.json)}


@given(streams(), st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_encoded_events_are_decoded(sent: list[tuple[dict[str, Any], bytes]], sizes: list[int]) -> None:
    text = b"".join(written for _, written in sent)
    chunks, at = list[bytes](), 0
    while at < len(text):
        chunks.append(text[at : at + sizes[len(chunks) % len(sizes)]])
        at += len(chunks[-1])
    stream = ValueStream()
    assert [told(event) for event in events_of(*chunks, stream=stream)] == [event for event, _ in sent]
    assert BOM.startswith(stream.finish())


@given(streams(), st.sampled_from([b"x", b"}", b"]", b"[", b"7", b'"', b"<html>", b"\xff", b"{]"]), st.integers(1, 40))
def test_events_before_damage_are_decoded(sent: list[tuple[dict[str, Any], bytes]], damage: bytes, size: int) -> None:
    text = b"".join(written for _, written in sent) + damage + b"\n{}\n{}\n"
    stream, found = ValueStream(), list[Any]()
    with pytest.raises(DecodeError):  # noqa: PT012 # what came before it counts
        for event in each_event([text[at : at + size] for at in range(0, len(text), size)], stream=stream):
            found.append(told(event))
    on_broken_line = bool(sent) and damage in (b"}", b"]") and b"\n" not in sent[-1][1].rpartition(b"}")[2]
    assert found in ([event for event, _ in sent], [event for event, _ in sent[: len(sent) - on_broken_line]])
