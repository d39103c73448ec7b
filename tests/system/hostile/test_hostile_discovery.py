"""Invalid discovery documents lead to named errors, and never to requests for other paths."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer.errors import AioinformerError, DecodeError
from aioinformer.resources.discovery import Discovery
from tests.support.collection import Response
from tests.support.hostile_collection import in_virtual_time

if TYPE_CHECKING:
    from aioinformer.transport import Request

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

    async def request(self, request: Request) -> Response:
        self.paths.append(request.path)
        response = Response()
        known = {"/api": {"kind": "APIVersions", "versions": []}, "/apis": self._root}
        response.feed(json.dumps(known.get(request.path, self._other)).encode())
        response.end()
        return response


@settings(max_examples=300)
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
        async def request(self, request: Request) -> Response:
            response = Response()
            response.feed(body)
            response.end()
            return response

    async def story() -> None:
        with pytest.raises(DecodeError, match="not a discovery document"):
            await Discovery(Saying()).resources()

    in_virtual_time(story())
