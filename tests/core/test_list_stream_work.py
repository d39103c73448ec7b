"""How much is looked at to take a list apart: work that grows with the list, and no faster."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aioinformer import item_scanner, list_stream
from aioinformer.errors import DecodeError
from aioinformer.list_stream import ListParser

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
            def find(self, what: bytes, start: int = 0) -> int:  # type: ignore[override]  # what is used
                found = super().find(what, start)
                counter.bytes += (len(self) if found < 0 else found) - start
                return found

            def __add__(self, more: bytes) -> Buffer:  # type: ignore[override]  # what is used
                return Buffer(super().__add__(more))

        class Chunk(bytes):
            def find(self, what: bytes, start: int = 0) -> int:  # type: ignore[override]  # what is used
                found = super().find(what, start)
                counter.bytes += (len(self) if found < 0 else found) - start
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
        for module, name in ((list_stream, "_ITEMS"), (item_scanner, "_TOKEN"), (item_scanner, "_STRING_TOKEN")):
            monkeypatch.setattr(module, name, Pattern(getattr(module, name)))


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


def test_a_compact_list_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch)
    body = json.dumps({"metadata": {}, "items": objects(10_000)}, separators=(",", ":")).encode()
    assert count(looks, body) == 10_000
    assert looks.bytes < 1.1 * len(body)


def test_a_list_with_spaces_is_looked_at_twice_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch)
    body = json.dumps({"metadata": {}, "items": objects(10_000)}).encode()
    assert count(looks, body) == 10_000
    assert looks.bytes < 2.2 * len(body)


def test_a_huge_item_in_many_chunks_is_looked_at_twice_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch)
    body = json.dumps({"items": objects(1, data=["x" * 3000] * 2000)}, separators=(",", ":")).encode()
    assert count(looks, body, 512) == 1
    assert looks.bytes < 2.2 * len(body)


def test_a_body_that_shows_no_items_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch)
    body = b"<p>go away</p>" * 200_000
    parser = ListParser(len)
    for chunk in chunks(body, 512):
        parser.feed(looks.chunk(chunk))
        assert not list(parser.items())
    assert looks.bytes < 1.3 * len(body)


def test_who_refuses_an_item_is_asked_once() -> None:
    asked: list[str] = []

    def refuse(raw: bytes) -> bytes:
        try:
            asked.append(json.loads(raw)["metadata"]["name"])
        except ValueError as error:
            raise DecodeError("no JSON") from error
        raise DecodeError("refused")

    parser = ListParser(refuse)
    parser.feed(json.dumps({"metadata": {}, "items": objects(3)}, separators=(",", ":")).encode())
    parser.feed_eof()
    assert all(isinstance(item, DecodeError) for item in parser.items())
    assert asked == ["n0", "n1", "n2"]


def test_the_last_item_of_a_compact_list_is_searched_for_its_end_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch)
    body = json.dumps({"metadata": {}, "items": objects(2, data=["x"] * 10_000)}, separators=(",", ":")).encode()
    assert count(looks, body, len(body)) == 2
    assert looks.bytes < 1.1 * len(body)


def test_who_refuses_the_last_item_is_asked_once() -> None:
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
