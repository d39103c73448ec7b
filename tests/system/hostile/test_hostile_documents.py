"""Responses that no API server sends: they cost no more than correct ones, and discovery asks for no other paths."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer import RunOptions
from aioinformer.backoff import MAX_RETRY_AFTER
from aioinformer.cache.objects.record import Record, decode_record, labels_of
from aioinformer.errors import AioinformerError, ApiError, DecodeError, FrameTooLarge
from aioinformer.reflector import Phase
from aioinformer.reflector.protocol.messages import Failed
from aioinformer.reflector.watch_decoder import decode_watch_line
from aioinformer.reflector.watch_events import RecordDecoder
from aioinformer.resources import Discovery
from aioinformer.transport.list_parser import ListParser
from tests.support.collection import Response
from tests.support.conversation import Conversation
from tests.support.virtual_time import in_virtual_time

if TYPE_CHECKING:
    from aioinformer.transport import HttpRequest


PAGES = RunOptions(streaming_list=False)
HEAD = b'{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":['


def test_alternating_continue_tokens_end_the_list() -> None:
    talk = Conversation(PAGES)
    talk.ask()
    talk.page("a", token="one")
    talk.ask()
    talk.page("b", token="two")
    talk.ask()
    talk.page("a", token="one")
    assert talk.protocol.phase is Phase.BACKING_OFF
    assert talk.delay() > 0


def test_empty_pages_are_read_at_a_limited_rate() -> None:
    talk = Conversation(PAGES)
    for number in range(50):
        talk.ask()
        talk.page(token=f"after {number}")
    talk.ask()
    talk.page("a")
    assert list(talk.cache) == ["ns/a"]
    assert talk.now > 30


@pytest.mark.parametrize("digits", [20, 309, 400, 4000])
def test_huge_retry_after_in_a_status_is_capped(digits: int) -> None:
    details = b'{"retryAfterSeconds":' + b"9" * digits + b"}"
    event = decode_watch_line(
        b'{"type":"ERROR","object":{"code":429,"details":' + details + b"}}", RecordDecoder().from_watch
    )
    assert isinstance(event.error, ApiError)
    talk = Conversation(PAGES)
    talk.ask()
    talk.answer(Failed(event.error))
    assert talk.delay() <= MAX_RETRY_AFTER


def test_labels_with_invalid_utf8_match_no_selector() -> None:
    assert labels_of(decode_record(b'{"metadata":{"name":"a","labels":{"app":"\xff\xfe"}}}')) == {}


def test_endless_bytes_after_the_items_are_refused() -> None:
    parser: ListParser[Record] = ListParser(decode_record)
    parser.feed(HEAD + b"]")
    assert list(parser.items()) == []
    parser.feed(b" " * 2_000_000)
    with pytest.raises(FrameTooLarge, match="does not end"):
        list(parser.items())


@pytest.mark.parametrize(
    "code", [b"true", b"-410", b"0", b"7", b"1e3", b"410.5", b'"410"', b"[410]", b"9" * 19, b"9" * 9999]
)
def test_invalid_status_code_counts_as_500(code: bytes) -> None:
    event = decode_watch_line(b'{"type":"ERROR","object":{"code":' + code + b"}}", RecordDecoder().from_watch)
    assert isinstance(event.error, ApiError)
    assert event.error.status == 500


LISTED = b'{"metadata":{"resourceVersion":"9"},"items":['
TWICE = {
    "items": LISTED + b'{"metadata":{"name":"a"}}],"items":[{"metadata":{"name":"b"}}]}',
    "metadata": LISTED.replace(b"{", b'{"metadata":{},', 1) + b'{"metadata":{"name":"b"},"metadata":{"name":"a"}}]}',
    "name": LISTED.replace(b'{"r', b'{"resourceVersion":"8","r') + b'{"metadata":{"name":"b","name":"a"}}]}',
}


@pytest.mark.parametrize("what", TWICE)
@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_duplicate_list_fields_parse_the_same_in_any_chunks(what: str, cut: int) -> None:
    parser: ListParser[Record] = ListParser(decode_record)
    found = []
    for at in range(0, len(TWICE[what]), cut):
        parser.feed(TWICE[what][at : at + cut])
        found += [item for item in parser.items() if item is not None]
    parser.feed_eof()
    found += [item for item in parser.items() if item is not None]
    metadata = parser.head().metadata
    assert metadata is not None
    assert (metadata.resource_version, [item.key for item in found]) == ("9", ["a"])


RESOURCE = {"resource": "things", "responseKind": {"kind": "Thing"}, "verbs": ["list"], "shortNames": ["th"]}
AGGREGATED: dict[str, Any] = {
    "kind": "APIGroupDiscoveryList",
    "items": [{"metadata": {"name": "example.com"}, "versions": [{"version": "v1", "resources": [RESOURCE]}]}],
}
GROUPS: dict[str, Any] = {
    "kind": "APIGroupList",
    "groups": [{"name": "example.com", "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}}],
}
LEGACY: dict[str, Any] = {
    "kind": "APIResourceList",
    "resources": [{"name": "things", "kind": "Thing", "verbs": ["list"]}],
}

VALUES: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(["", "a/b", "../..", "x y", "x\r\nX-Evil: 1", "\0", "?a=b", "#", "%0d%0a", "é", "a" * 3000, "v1"]),
    st.sampled_from([None, True, 0, -1, 1e300, [], {}, [None], {"name": []}]),
    st.text(max_size=5),
)


@st.composite
def spoilt(draw: st.DrawFn, document: Any) -> Any:
    """Return the document with one replaced value."""
    if isinstance(document, (dict, list)) and document and draw(st.integers(0, 5)):
        places = list(document) if isinstance(document, dict) else range(len(document))
        chosen = draw(st.sampled_from(places))
        pairs = document.items() if isinstance(document, dict) else enumerate(document)
        replaced = {place: draw(spoilt(value)) if place == chosen else value for place, value in pairs}
        return replaced if isinstance(document, dict) else list(replaced.values())
    return draw(VALUES)


class Documents:
    """A transport that returns documents by the beginning of the path, and records the paths."""

    def __init__(self, root: Any, other: Any) -> None:
        self._root = root
        self._other = other
        self.paths: list[str] = []

    async def request(self, request: HttpRequest) -> Response:
        self.paths.append(request.path)
        response = Response()
        known = {"/api": {"kind": "APIVersions", "versions": []}, "/apis": self._root}
        response.feed(json.dumps(known.get(request.path, self._other)).encode())
        response.end()
        return response


@settings(max_examples=60)
@given(st.one_of(spoilt(AGGREGATED), spoilt(GROUPS)), st.one_of(st.just(LEGACY), spoilt(LEGACY)))
def test_any_documents_give_resources_or_a_named_error(root: Any, other: Any) -> None:
    documents = Documents(root, other)

    async def story() -> None:
        with suppress(AioinformerError):
            await Discovery(documents).resources()

    in_virtual_time(story())
    assert all(path.isascii() and path.isprintable() and not set(path) & set("?# ") for path in documents.paths)
    assert all(path.count("/") <= 3 for path in documents.paths)


@pytest.mark.parametrize(
    "body", [b"", b"[", b"null", b"[]", b"\xff", b"<html>", b"[" * 100_000, b'{"kind":7}', b'{"kind":"x"}']
)
def test_invalid_document_is_a_named_error(body: bytes) -> None:
    class Saying:
        async def request(self, request: HttpRequest) -> Response:
            response = Response()
            response.feed(body)
            response.end()
            return response

    async def story() -> None:
        with pytest.raises(DecodeError, match="not a discovery document"):
            await Discovery(Saying()).resources()

    in_virtual_time(story())
