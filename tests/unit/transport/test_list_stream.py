"""Lists that are parsed while they arrive, compared with a JSON parser for the whole body."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.cache.objects.record import Record, decode_record
from aioinformer.errors import DecodeError
from aioinformer.transport.list_parser import ListParser

if TYPE_CHECKING:
    from aioinformer.transport.list_parser import ListHead


def decode(raw: bytes) -> dict[str, Any]:
    """As strict as the decoder of objects: anything but one JSON object is an error."""
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DecodeError("no object") from error


def taken_apart(*chunks: bytes) -> tuple[list[dict[str, Any]], ListHead]:
    parser, items = ListParser(decode), []
    for chunk in chunks:
        parser.feed(chunk)
        items += list(parser.items())
    parser.feed_eof()
    items += list(parser.items())
    errors = [item for item in items if isinstance(item, DecodeError)]
    assert not errors, errors
    return [item for item in items if isinstance(item, dict)], parser.head()


def compact(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def named(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": "1"}, **more}


META = {"resourceVersion": "77", "continue": "token", "remainingItemCount": 3}
TEMPLATES = [named("inner-1", spec={"a": []}), named("inner-2"), named("inner-3")]
TEXTS = ['},{"metadata":', "]}", '"items":[', '\\"', "\\", "{[", 'a"},{"metadata":{"name":"x"', "\u00e9\U0001f600", ""]

BODIES = {
    "built-in": compact({"kind": "PodList", "apiVersion": "v1", "metadata": META, "items": [named("a"), named("b")]}),
    "metadata-last": compact(
        {
            "apiVersion": "x/v1",
            "items": [{"apiVersion": "x/v1", **named("a")}, named("b")],
            "kind": "XList",
            "metadata": META,
        }
    ),
    "lists-behind-the-items": compact(
        {"items": [named("a"), named("b")], "kind": "XList", "metadata": {**META, "x": [{}]}}
    ),
    "one": compact({"metadata": META, "items": [named("a")]}),
    "empty": compact({"metadata": META, "items": []}),
    "null": compact({"metadata": META, "items": None}),
    "pretty": json.dumps({"metadata": META, "items": [named("a"), named("b", spec=[[{}]])]}, indent=2).encode(),
    "spaced": json.dumps({"metadata": META, "items": [named("a"), named("b"), named("c")]}).encode(),
    "empty-pretty": b'{ "metadata" : {"resourceVersion":"77","continue":"token"}, "items" : [ ] }\n',
    "templates": compact(
        {"metadata": META, "items": [named("a", templates=TEMPLATES), named("b", templates=TEMPLATES)]}
    ),
    "strings": compact(
        {"metadata": META, "items": [named(f"n{i}", data={text: text}) for i, text in enumerate(TEXTS)]}
    ),
    "mixed": compact({"metadata": META, "items": [named("a"), {"kind": "X", **named("b")}, {}, named("c"), {"x": 1}]}),
    "trailing": compact({"metadata": META, "items": [named("a"), named("b")]}) + b"\n",
    "unicode": json.dumps({"metadata": META, "items": [named("\u00e9\U0001f600")]}, ensure_ascii=False).encode(),
}


@pytest.mark.parametrize("name", BODIES)
def test_every_body_has_the_same_items_at_any_cut(name: str) -> None:
    body = BODIES[name]
    wanted = json.loads(body).get("items") or []
    for cut in range(len(body) + 1):
        items, head = taken_apart(body[:cut], body[cut:])
        assert items == wanted, f"cut at {cut}"
        assert head.metadata is not None
        assert (head.metadata.resource_version, head.metadata.continue_) == ("77", "token"), f"cut at {cut}"


@pytest.mark.parametrize("name", BODIES)
def test_every_body_may_arrive_byte_by_byte(name: str) -> None:
    body = BODIES[name]
    items, _ = taken_apart(*(body[i : i + 1] for i in range(len(body))))
    assert items == (json.loads(body).get("items") or [])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(TEXTS) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["metadata", "items", *TEXTS]), inner),
    max_leaves=8,
)
ITEMS = st.lists(st.dictionaries(st.sampled_from(["metadata", "kind", "apiVersion", *TEXTS]), VALUES), max_size=4)
HEADS = st.fixed_dictionaries({}, optional={"kind": st.just("XList"), "apiVersion": st.just("v1")})


@given(
    ITEMS, HEADS, st.booleans(), st.sampled_from([None, 1]), st.booleans(), st.lists(st.integers(0, 400), max_size=4)
)
def test_lists_are_parsed_as_a_json_parser_does(
    items: list[Any], head: dict[str, Any], last: bool, indent: int | None, escape: bool, cuts: list[int]
) -> None:
    meta = {"metadata": {"resourceVersion": "5"}}
    document = {**head, "items": items, **meta} if last else {**head, **meta, "items": items}
    text = json.dumps(document, indent=indent, ensure_ascii=escape, separators=None if indent else (",", ":"))
    try:
        body = text.encode()
    except UnicodeEncodeError:
        return
    places = sorted({0, *(cut for cut in cuts if cut < len(body)), len(body)})
    found, around = taken_apart(*(body[a:b] for a, b in itertools.pairwise(places)))
    assert found == items
    assert around.metadata is not None
    assert around.metadata.resource_version == "5"


@pytest.mark.conformance("REF-24")
@pytest.mark.parametrize("chunk_size", [1_000_000, 3000], ids=["one chunk", "many chunks"])
def test_kept_item_does_not_keep_its_page(chunk_size: int) -> None:
    items = [{"metadata": {"name": f"p{number}", "labels": {"app": "web"}}, "pad": "x" * 1000} for number in range(500)]
    tracemalloc.start()
    try:
        page = compact({"metadata": {"resourceVersion": "5"}, "items": items})
        parser = ListParser(decode_record)
        kept: list[Record] = []
        for start in range(0, len(page), chunk_size):
            parser.feed(page[start : start + chunk_size])
            kept += [item for item in parser.items() if isinstance(item, Record) and item.name == "p7"]
        del page, parser
        left = sum(each.size for each in tracemalloc.take_snapshot().statistics("filename"))
    finally:
        tracemalloc.stop()
    assert [record.name for record in kept] == ["p7"]
    assert left < 100_000


@pytest.mark.parametrize(
    "body",
    [
        b'{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}}]}',
        b'{"metadata":{"resourceVersion":"9"},"items":null}',
    ],
)
@pytest.mark.parametrize("size", [1, 2, 1000])
def test_byte_order_mark_is_skipped(body: bytes, size: int) -> None:
    parser, found, text = ListParser(len), list[Any](), b"\xef\xbb\xbf" + body
    for at in range(0, len(text), size):
        parser.feed(text[at : at + size])
        found += parser.items()
    parser.feed_eof()
    found += parser.items()
    assert len(found) == body.count(b"name")
    metadata = parser.head().metadata
    assert metadata is not None
    assert metadata.resource_version == "9"
