"""Lists that are parsed while they arrive: as a JSON parser reads them, in linear time, and never shorter."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from time import thread_time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.cache.objects.record import Record, decode_record
from aioinformer.errors import DecodeError, Expired, FrameTooLarge
from aioinformer.transport.list_parser import ListParser
from tests.support.wire_objects import body

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
    "lists-behind-the-items": compact(
        {"items": [named("a"), named("b")], "kind": "XList", "metadata": {**META, "x": [{}]}}
    ),
    "null": compact({"metadata": META, "items": None}),
    "byte order mark": b"\xef\xbb\xbf" + compact({"metadata": META, "items": [named("a")]}),
    "byte order mark, null": b"\xef\xbb\xbf" + compact({"metadata": META, "items": None}),
    "empty-pretty": b'{ "metadata" : {"resourceVersion":"77","continue":"token"}, "items" : [ ] }\n',
    "templates": compact(
        {"metadata": META, "items": [named("a", templates=TEMPLATES), named("b", templates=TEMPLATES)]}
    ),
    "strings": compact(
        {"metadata": META, "items": [named(f"n{i}", data={text: text}) for i, text in enumerate(TEXTS)]}
    ),
    "mixed": compact({"metadata": META, "items": [named("a"), {"kind": "X", **named("b")}, {}, named("c"), {"x": 1}]}),
    "trailing": compact({"metadata": META, "items": [named("a"), named("b")]}) + b"\n",
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


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(TEXTS) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["metadata", "items", *TEXTS]), inner, max_size=3)
    ),
    max_leaves=6,
)
ITEMS = st.lists(
    st.dictionaries(st.sampled_from(["metadata", "kind", "apiVersion", *TEXTS]), VALUES, max_size=4), max_size=3
)
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


# Bodies that are invalid, truncated or too large raise errors, and never look like a shorter list.


LIST = b'{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[' + body("a") + b"," + body("b") + b"]}"
STATUS = b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"too old","code":410}'


def read(chunks: list[bytes], max_item: int = 10_000) -> list[Record | DecodeError]:
    parser: ListParser[Record] = ListParser(decode_record, max_item)
    items: list[Record | DecodeError] = []
    for chunk in chunks:
        parser.feed(chunk)
        items += [item for item in parser.items() if item is not None]
    parser.feed_eof()
    items += [item for item in parser.items() if item is not None]
    parser.head()
    return items


def halves(text: bytes) -> list[list[bytes]]:
    return [[text[:cut], text[cut:]] for cut in range(0, len(text), 7)]


@pytest.mark.parametrize("end", range(len(LIST)))
def test_truncated_body_is_an_error_at_any_length(end: int) -> None:
    with pytest.raises(DecodeError):
        read([LIST[:end]])


@pytest.mark.parametrize("chunks", halves(STATUS))
def test_status_in_place_of_a_list_is_its_error(chunks: list[bytes]) -> None:
    with pytest.raises(Expired, match="too old"):
        read(chunks)


@pytest.mark.conformance("REF-23")
@pytest.mark.parametrize(
    "text",
    [
        b'{"kind":"Table","metadata":{"resourceVersion":"7"},"rows":[]}',
        b'{"kind":"Table","metadata":{"resourceVersion":"7"},"items":[],"rows":[]}',
    ],
)
def test_table_is_refused(text: bytes) -> None:
    with pytest.raises(DecodeError, match="Table"):
        read([text])


@pytest.mark.parametrize(
    "text", [b"", b"null", b"[]", b"7", b'"items":[', b'{"items":{}}', b'{"items":[]', b"{]}", b"\xff"]
)
def test_other_documents_are_refused(text: bytes) -> None:
    with pytest.raises(DecodeError):
        read([text])


def test_html_page_is_reported_as_from_a_proxy() -> None:
    with pytest.raises(DecodeError, match="proxy"):
        read([b"<html>", b"go away</html>"])


def test_single_object_with_nested_items_is_refused() -> None:
    with pytest.raises(DecodeError, match="not a list"):
        read([b'{"kind":"Pod","metadata":{"name":"a"},"spec":{"items":[' + body("a") + b"]}}"])


@pytest.mark.parametrize("item", [b"null", b"7", b'"text"', b"true", b"[]", b"[[{}]]"])
@pytest.mark.parametrize("others", [b"", b"," + body("b")], ids=["alone", "before-another"])
@pytest.mark.parametrize("before", [b"", body("a") + b","], ids=["first", "behind-another"])
def test_list_of_non_objects_is_refused(before: bytes, item: bytes, others: bytes) -> None:
    with pytest.raises(DecodeError):
        read([b'{"metadata":{"resourceVersion":"7"},"items":[' + before + item + others + b"]}"])


def test_item_without_a_name_is_an_error_in_its_place() -> None:
    text = b'{"metadata":{},"items":[' + b",".join([body("a"), b'{"metadata":{"uid":"u"}}', body("b")]) + b"]}"
    first, broken, last = read([text])
    assert isinstance(broken, DecodeError)
    assert [item.key for item in (first, last) if isinstance(item, Record)] == ["ns/a", "ns/b"]


@pytest.mark.parametrize("size", [1, 64, 10**9])
@pytest.mark.parametrize("place", ["first", "last", "only"])
def test_item_over_the_cap_names_the_option(size: int, place: str) -> None:
    huge, small = body("huge", data="x" * 2000), body("small")
    items = {"first": [huge, small], "last": [small, huge], "only": [huge]}[place]
    text = b'{"metadata":{},"items":[' + b",".join(items) + b"]}"
    with pytest.raises(FrameTooLarge, match="raise max_frame"):
        read([text[i : i + size] for i in range(0, len(text), size)], max_item=1000)


def test_endless_body_without_items_is_refused() -> None:
    with pytest.raises(FrameTooLarge):
        read([b"<p>" * 1000] * 10)


@pytest.mark.parametrize("nested", [b"[" * 100_000, b'{"a":' * 100_000])
def test_endlessly_nested_item_is_an_error(nested: bytes) -> None:
    text = b'{"metadata":{},"items":[{"metadata":{"name":"a"},"spec":' + nested + b"}]}"
    try:
        items = read([text], max_item=10_000_000)
    except DecodeError:
        return
    assert [type(item) for item in items] == [DecodeError]


@pytest.mark.parametrize("text", [b'{"metadata":{"resourceVersion":"1"}}', b'{"kind":"PodList","metadata":{}}', b"{}"])
def test_document_without_items_is_refused(text: bytes) -> None:
    with pytest.raises(DecodeError, match="no items"):
        read([text])


# The work of parsing a list is linear in its size.


def test_huge_item_in_small_chunks_takes_linear_time() -> None:
    body = compact({"items": objects(1, data=["x" * 3000] * 8000)})
    parser, items = ListParser(len, 2 * len(body)), list[object]()
    begin = thread_time()
    for start in range(0, len(body), 512):
        parser.feed(body[start : start + 512])
        items += parser.items()
    parser.feed_eof()
    assert len([item for item in (*items, *parser.items()) if item is not None]) == 1
    assert thread_time() - begin < 20, "the time is not linear"


def objects(number: int, **more: object) -> list[dict[str, object]]:
    return [{"metadata": {"name": f"n{i}"}, "spec": {"text": "x" * 300}, **more} for i in range(number)]


def by_the_name(raw: bytes) -> str:
    try:
        return str(json.loads(raw)["metadata"]["name"])
    except ValueError as error:
        raise DecodeError("no JSON") from error


def test_refusing_callback_is_called_once_for_the_last_item() -> None:
    asked: list[str] = []

    def refuse_the_last(raw: bytes) -> str:
        asked.append(by_the_name(raw))
        if asked[-1] == "n2":
            raise DecodeError("refused")
        return asked[-1]

    parser = ListParser(refuse_the_last)
    parser.feed(compact({"metadata": {}, "items": objects(3)}))
    items = list(parser.items())
    parser.feed_eof()
    items += parser.items()
    done = [item for item in items if item is not None]
    assert [item if isinstance(item, str) else "refused" for item in done] == ["n0", "n1", "refused"]
    assert asked == ["n0", "n1", "n2"]


def test_tiny_items_after_a_huge_one_are_not_copied() -> None:
    seen = 0

    def decode(raw: bytes) -> str:
        nonlocal seen
        seen += len(raw)
        return by_the_name(raw)

    template = {"metadata": {"name": "template"}}
    huge = {"metadata": {"name": "huge"}, "spec": "x" * 1_000_000}
    tiny = [{"metadata": {"name": f"n{i}"}, "templates": [template] * 3} for i in range(10_000)]
    body = compact({"metadata": {}, "items": [huge, *tiny]})
    parser = ListParser(decode)
    parser.feed(body)
    parser.feed_eof()
    assert len([item for item in parser.items() if item is not None]) == 10_001
    assert seen < 4 * len(body)
