"""The work of parsing a list is linear in its size."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aioinformer.errors import DecodeError
from aioinformer.transport import list_parser as list_stream
from aioinformer.transport.json_scanner import ItemScanner
from aioinformer.transport.list_parser import ListParser

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    import pytest

CHUNK = 16 * 1024


class Looks:
    """Counts the bytes that searches go over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes = 0
        counter = self

        class Buffer(bytearray):
            def find(self, what: bytes, start: int = 0, end: int | None = None) -> int:  # type: ignore[override]  # what is used
                found = super().find(what, start, end)
                counter.bytes += max(0, ((len(self) if end is None else end) if found < 0 else found) - start)
                return found

            def __add__(self, more: bytes) -> Buffer:  # type: ignore[override]  # what is used
                return Buffer(super().__add__(more))

        class Chunk(bytes):
            def find(self, what: bytes, start: int = 0, end: int | None = None) -> int:  # type: ignore[override]  # what is used
                found = super().find(what, start, end)
                counter.bytes += max(0, ((len(self) if end is None else end) if found < 0 else found) - start)
                return found

        self.chunk = Chunk

        class Pattern:
            def __init__(self, pattern: re.Pattern[bytes]) -> None:
                self._pattern = pattern

            def search(self, buffer: bytearray, start: int, end: int | None = None) -> re.Match[bytes] | None:
                stop = len(buffer) if end is None else min(end, len(buffer))
                found = self._pattern.search(buffer, start, stop)
                counter.bytes += max(0, (stop if found is None else found.end()) - start)
                return found

        monkeypatch.setattr(list_stream, "bytearray", Buffer, raising=False)

        class Scanner(ItemScanner):
            def step(self, buffer: bytes | bytearray) -> int:
                window, before = self._window, self._position
                end = super().step(buffer)
                counter.bytes += min(window, len(buffer) - before)
                return end

        monkeypatch.setattr(list_stream, "_ITEMS", Pattern(list_stream._ITEMS))
        monkeypatch.setattr(list_stream, "ItemScanner", Scanner)


def chunks(body: bytes, size: int = CHUNK) -> Iterator[bytes]:
    return (body[i : i + size] for i in range(0, len(body), size))


def count(looks: Looks, body: bytes, size: int = CHUNK) -> int:
    parser, found = ListParser(len), 0
    for chunk in chunks(body, size):
        parser.feed(looks.chunk(chunk))
        found += sum(1 for _ in parser.items())
    parser.feed_eof()
    return found + sum(1 for _ in parser.items())


def objects(number: int, **more: object) -> list[dict[str, object]]:
    return [{"metadata": {"name": f"n{i}"}, "spec": {"text": "x" * 300}, **more} for i in range(number)]


def test_compact_list_is_scanned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch)
    body = json.dumps({"metadata": {}, "items": objects(10_000)}, separators=(",", ":")).encode()
    assert count(looks, body) == 10_000
    assert looks.bytes < 1.1 * len(body)


def test_huge_item_in_chunks_is_scanned_twice_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch)
    body = json.dumps({"items": objects(1, data=["x" * 3000] * 2000)}, separators=(",", ":")).encode()
    assert count(looks, body, 512) == 1
    assert looks.bytes < 2.2 * len(body)


def test_body_without_items_is_scanned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch)
    body = b"<p>go away</p>" * 200_000
    parser = ListParser(len)
    for chunk in chunks(body, 512):
        parser.feed(looks.chunk(chunk))
        assert not list(parser.items())
    assert looks.bytes < 1.3 * len(body)


def test_refusing_callback_is_called_once_for_the_last_item() -> None:
    asked: list[str] = []

    def refuse_the_last(raw: bytes) -> str:
        try:
            name = str(json.loads(raw)["metadata"]["name"])
        except ValueError as error:
            raise DecodeError("no JSON") from error
        asked.append(name)
        if name == "n2":
            raise DecodeError("refused")
        return name

    parser = ListParser(refuse_the_last)
    parser.feed(json.dumps({"metadata": {}, "items": objects(3)}, separators=(",", ":")).encode())
    items = list(parser.items())
    parser.feed_eof()
    items += parser.items()
    assert items[:2] == asked[:2] == ["n0", "n1"]
    assert isinstance(items[2], DecodeError)
    assert asked == ["n0", "n1", "n2"]


def by_the_name(raw: bytes) -> str:
    try:
        return str(json.loads(raw)["metadata"]["name"])
    except ValueError as error:
        raise DecodeError("no JSON") from error


def test_shrinking_items_are_found_at_any_cut() -> None:
    items = [{"metadata": {"name": f"n{i}"}, "spec": "x" * (3000 - 30 * i)} for i in range(100)]
    body = json.dumps({"metadata": {}, "items": items}, separators=(",", ":")).encode()
    for size in (100, 3333, len(body)):
        parser = ListParser(by_the_name)
        found: list[str | DecodeError | None] = []
        for chunk in chunks(body, size):
            parser.feed(chunk)
            found += parser.items()
        parser.feed_eof()
        found += parser.items()
        assert found == [f"n{i}" for i in range(100)]


def test_tiny_items_after_a_huge_one_are_not_copied() -> None:
    seen = 0

    def decode(raw: bytes) -> str:
        nonlocal seen
        seen += len(raw)
        return by_the_name(raw)

    template = {"metadata": {"name": "template"}}
    huge = {"metadata": {"name": "huge"}, "spec": "x" * 1_000_000}
    tiny = [{"metadata": {"name": f"n{i}"}, "templates": [template] * 3} for i in range(10_000)]
    body = json.dumps({"metadata": {}, "items": [huge, *tiny]}, separators=(",", ":")).encode()
    parser = ListParser(decode)
    parser.feed(body)
    parser.feed_eof()
    assert len(list(parser.items())) == 10_001
    assert seen < 4 * len(body)


def test_error_of_one_item_does_not_affect_the_next() -> None:
    template = {"metadata": {"name": "template"}}
    items: list[dict[str, object]] = [
        {"metadata": {"name": "long"}, "spec": "x" * 1000},
        {"metadata": {"name": "short"}},
        {"metadata": {"name": "late"}, "templates": [template] * 5, "spec": "x" * 900},
        {"metadata": {"name": "last"}},
    ]
    parser = ListParser(by_the_name)
    parser.feed(json.dumps({"metadata": {}, "items": items}, separators=(",", ":")).encode())
    parser.feed_eof()
    assert list(parser.items()) == ["long", "short", "late", "last"]
