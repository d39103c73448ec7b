"""Lines out of chunks, however they are cut."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.errors import FrameTooLarge
from aioinformer.framing import LineSplitter

TEXT = b'{"a":1}\n\n{"b":"\xc3\xa9"}\r\n  \n{"c":3}\n{"half'


def lines_of(splitter: LineSplitter, chunks: list[bytes]) -> list[bytes]:
    return [line.strip() for chunk in chunks for line in splitter.feed(chunk)]


@pytest.mark.parametrize("cut", range(len(TEXT) + 1))
def test_where_a_chunk_is_cut_makes_no_difference(cut: int) -> None:
    splitter = LineSplitter()
    assert lines_of(splitter, [TEXT[:cut], TEXT[cut:]]) == [b'{"a":1}', b'{"b":"\xc3\xa9"}', b'{"c":3}']
    assert splitter.finish() == b'{"half'


def test_a_stream_may_come_byte_by_byte() -> None:
    splitter = LineSplitter()
    assert len(lines_of(splitter, [TEXT[i : i + 1] for i in range(len(TEXT))])) == 3


@given(st.lists(st.binary(max_size=6).map(lambda part: part.replace(b"x", b"\n"))))
def test_lines_are_those_of_the_whole_stream(chunks: list[bytes]) -> None:
    splitter = LineSplitter()
    *whole, rest = b"".join(chunks).split(b"\n")
    assert lines_of(splitter, chunks) == [line.strip() for line in whole if line.strip()]
    assert splitter.finish() == rest.strip()


def test_a_stream_that_ends_with_a_line_has_no_rest() -> None:
    splitter = LineSplitter()
    splitter.feed(b"a\n")
    assert splitter.finish() == b""


@pytest.mark.parametrize(
    "chunks", [[b"12345", b"678901"], [b"12345678901"], [b"1", b"2345678901\n"], [b"12345678901\n"]]
)
def test_a_line_over_the_cap_is_an_error_that_names_the_remedy(chunks: list[bytes]) -> None:
    splitter = LineSplitter(max_line=10)
    with pytest.raises(FrameTooLarge, match="raise max_frame"):
        lines_of(splitter, chunks)


def test_a_line_as_long_as_the_cap_is_none() -> None:
    assert list(LineSplitter(max_line=10).feed(b"1234567890\n1234567890\n12345")) == [b"1234567890"] * 2


def test_an_endless_line_is_refused_while_it_grows_and_not_at_its_end() -> None:
    splitter = LineSplitter(max_line=1000)
    for _ in range(10):
        splitter.feed(b"x" * 100)
    with pytest.raises(FrameTooLarge):
        splitter.feed(b"x")


class CountedBytes(bytes):
    """Bytes that count how often they were searched for a line's end."""

    searched = 0

    def rfind(self, *arguments: Any) -> int:
        type(self).searched += 1
        return super().rfind(*arguments)

    def index(self, *arguments: Any) -> int:
        type(self).searched += 1
        return super().index(*arguments)


def test_a_line_in_many_chunks_is_searched_once() -> None:
    splitter = LineSplitter()
    for _ in range(1000):
        assert list(splitter.feed(CountedBytes(b"x" * 100))) == []
    assert len(next(splitter.feed(b"\n"))) == 100_000
    assert CountedBytes.searched == 1000
