"""Bodies that are invalid, truncated or too large raise errors, and never look like a shorter list."""

from __future__ import annotations

import pytest

from aioinformer.cache.objects.record import Record, decode_record
from aioinformer.errors import DecodeError, Expired, FrameTooLarge
from aioinformer.transport.list_parser import ListParser
from tests.support.wire_objects import body

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


def test_list_of_any_kind_is_accepted() -> None:
    items = read([b'{"kind":"Menagerie","metadata":{"resourceVersion":"7"},"items":[' + body("a") + b"]}"])
    assert [item.key for item in items if isinstance(item, Record)] == ["ns/a"]


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
