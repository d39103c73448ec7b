"""Token files: when they are read again, and which paths raise."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from aioinformer.errors import TransportError, UsageError
from aioinformer.transport.auth.token_file import TokenFile
from aioinformer.transport.http import HttpTransport
from tests.support.loopback import Server, fetch, open_files
from tests.unit.transport.test_renewal import Clock, Gate

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def test_newline_of_a_token_file_is_not_sent(server: Server, tmp_path: Path) -> None:
    server.answer = Gate("one")
    (tmp_path / "token").write_text("one\n")
    async with HttpTransport(server.url, token_file=tmp_path / "token") as transport:
        assert await fetch(transport) == b"Bearer one"


async def test_rotated_token_file_is_read_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\n")
    async with HttpTransport(server.url, token_file=tmp_path / "token") as transport:
        await fetch(transport)
        (tmp_path / "next").write_text("two\n")
        os.replace(tmp_path / "next", tmp_path / "token")
        server.answer = Gate("two")
        assert await fetch(transport) == b"Bearer two"
    assert len(server.requests) == 2


async def test_unchanged_token_file_is_read_again_after_a_minute(clock: Clock, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    file = TokenFile(path, now=clock)
    await file.current()
    status = path.stat()
    path.write_text("two")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    before = await file.current()
    clock.time += 61
    after = await file.current()
    assert (before.authorization, after.authorization) == ("Bearer one", "Bearer two")


async def test_missing_token_file_leaves_the_last_token(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    file = TokenFile(path)
    await file.current()
    path.unlink()
    assert (await file.current()).authorization == "Bearer one"


@pytest.mark.parametrize("content", [None, "", "two words", "bell\a"])
async def test_invalid_token_file_raises_before_the_first_request(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=f"token file {path}.*name a readable file") as caught:
        async with HttpTransport("http://127.0.0.1:1", token_file=path):
            pass
    assert not content or content not in str(caught.value)


def large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(100 * 1024 * 1024)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.write_bytes(b"\xff\xfe\x00s3cret"), "it is not a text file"),
        (lambda path: path.write_bytes(b"s3cret\0"), "not one token"),
        (lambda path: path.write_text("s3cret\r\nX-Other: 1"), "not one token"),
        (lambda path: path.write_text("s3crét"), "not one token"),
        (large, "it has more than 1048576 bytes"),
        (lambda path: path.mkdir(), "it is not a regular file"),
        (os.mkfifo, "it is not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "it is not a regular file"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
    ],
)
async def test_invalid_token_file_is_a_transport_error(
    tmp_path: Path, make: Callable[[Path], object], reason: str
) -> None:
    path = tmp_path / "token"
    make(path)
    before = open_files()
    with pytest.raises(TransportError, match=reason) as caught:
        await TokenFile(path).current()
    assert str(path) in str(caught.value)
    assert "s3cr" not in repr((caught.value, caught.value.__cause__, caught.value.__context__))
    assert open_files() == before
