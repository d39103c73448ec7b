"""Body decoders: the end and the content of a body, for any split of its bytes into reads."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.transport.streaming import Body, ChunkedBody, MalformedBody, SizedBody

GOOD = {
    "nothing": (b"0\r\n\r\n", b""),
    "one chunk": (b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
    "chunks": (b"1\r\na\r\n2\r\nbc\r\n3\r\ndef\r\n0\r\n\r\n", b"abcdef"),
    "line ends within chunks": (b"6\r\n\r\n0\r\n\n\r\n2\r\n\r\n\r\n0\r\n\r\n", b"\r\n0\r\n\n\r\n"),
    "digits of both cases": (b"0a\r\n0123456789\r\nA\r\n0123456789\r\n000\r\n\r\n", b"01234567890123456789"),
    "extensions": (b'1;a\r\nx\r\n1 ;b="c;d"\r\ny\r\n0;last\r\n\r\n', b"xy"),
    "trailers": (b"1\r\nx\r\n0\r\nGrpc-Status: 0\r\nEmpty:\r\n\r\n", b"x"),
}
BAD = {
    "a size that is none": b"x\r\n",
    "no size": b"\r\n",
    "a sign": b"+1\r\na\r\n",
    "a minus": b"-1\r\na\r\n",
    "a prefix": b"0x1\r\na\r\n",
    "an underscore": b"1_0\r\n0123456789abcdef\r\n",
    "a blank before the size": b" 1\r\na\r\n",
    "a size beyond 64 bits": b"10000000000000000\r\n",
    "a bare line feed behind the size": b"1\na\r\n0\r\n\r\n",
    "a bare carriage return behind the size": b"1\ra\r\n0\r\n\r\n",
    "a chunk that is longer than its size": b"1\r\nab\r\n0\r\n\r\n",
    "a bare line feed behind a chunk": b"1\r\na\n0\r\n\r\n",
    "no line end behind a chunk": b"1\r\na0\r\n\r\n",
    "a zero byte in an extension": b"1;\0\r\na\r\n",
    "an extension without an end": b"1;" + b"x" * 5000,
    "an extension that is too long": b"1;" + b"x" * 5000 + b"\r\na\r\n",
    "a trailer without a name": b"0\r\n: x\r\n\r\n",
    "a trailer without a colon": b"0\r\nname\r\n\r\n",
    "a blank in the name of a trailer": b"0\r\na b: c\r\n\r\n",
    "a trailer that goes on in the next line": b"0\r\na: b\r\n c\r\n\r\n",
    "trailers without an end": b"0\r\n" + b"a: b\r\n" * 2000,
    "trailers that are too many": b"0\r\n" + b"a: b\r\n" * 2000 + b"\r\n",
}


def fed(body: Body, pieces: list[bytes]) -> tuple[bytes, int]:
    """Return the content of the pieces, and how many bytes belong to the body."""
    carried, used = b"", 0
    for piece in pieces:
        if body.ended:
            break
        part, taken = body.feed(memoryview(piece))
        assert taken == len(piece) or body.ended
        carried += part
        used += taken
    return carried, used


def one_by_one(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


@pytest.mark.parametrize(("sent", "carried"), GOOD.values(), ids=GOOD)
def test_chunked_body_ends_before_bytes_that_follow(sent: bytes, carried: bytes) -> None:
    for behind in (b"", b"0\r\n\r\nHTTP/1.1 200 OK\r\n"):
        for pieces in ([sent + behind], one_by_one(sent + behind)):
            body = ChunkedBody()
            assert fed(body, pieces) == (carried, len(sent))
            assert body.ended


@pytest.mark.parametrize("sent", BAD.values(), ids=BAD)
def test_invalid_chunk_raises_at_any_split(sent: bytes) -> None:
    for pieces in ([sent], one_by_one(sent)):
        with pytest.raises(MalformedBody):
            fed(ChunkedBody(), pieces)


@pytest.mark.parametrize(("sent", "carried"), GOOD.values(), ids=GOOD)
def test_body_ends_with_its_last_byte(sent: bytes, carried: bytes) -> None:
    for stop in range(len(sent)):
        body = ChunkedBody()
        assert carried.startswith(fed(body, [sent[:stop]])[0])
        assert not body.ended


@given(
    chunks=st.lists(st.binary(min_size=1, max_size=40), max_size=20),
    cuts=st.lists(st.integers(min_value=0, max_value=1000), max_size=20),
)
def test_any_split_of_chunks_gives_the_same_body(chunks: list[bytes], cuts: list[int]) -> None:
    sent = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    at = sorted({0, *(cut for cut in cuts if cut < len(sent)), len(sent)})
    body = ChunkedBody()
    carried, used = fed(body, [sent[begin:end] for begin, end in pairwise(at)])
    assert (carried, used, body.ended) == (b"".join(chunks), len(sent), True)


@given(sent=st.lists(st.sampled_from([b"0", b"1", b"a", b"\r", b"\n", b"\r\n", b";", b":", b" "]), max_size=14))
def test_result_does_not_depend_on_the_split(sent: list[bytes]) -> None:
    def outcome(pieces: list[bytes]) -> tuple[bytes, int, bool] | None:
        body = ChunkedBody()
        try:
            return *fed(body, pieces), body.ended
        except MalformedBody:
            return None

    whole = b"".join(sent)
    assert outcome([whole]) == outcome(sent) == outcome(one_by_one(whole))


def test_body_of_known_length_ends_there() -> None:
    for pieces in ([b"hello, world"], one_by_one(b"hello, world")):
        body = SizedBody(5)
        assert fed(body, pieces) == (b"hello", 5)
        assert body.ended
