"""Files are written whole or not at all."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from aioinformer.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize("private", [False, True])
def test_file_has_the_content_and_nothing_else_is_left(tmp_path: Path, private: bool) -> None:
    path = tmp_path / "file"
    for text in (b"one\n", b"two, and longer\n"):
        replace_file(path, [text[:2], text[2:]], private=private)
        assert path.read_bytes() == text
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    assert mode_of(path) == (0o600 if private else 0o644)


@pytest.mark.parametrize("private", [False, True])
def test_failure_leaves_the_former_file(tmp_path: Path, private: bool) -> None:
    path = tmp_path / "file"
    path.write_text("former")

    def parts() -> Iterator[bytes]:
        yield b"x" * 100_000
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        replace_file(path, parts(), private=private)
    assert path.read_text() == "former"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_mode_of_the_former_file_is_kept(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(mode)
    replace_file(path, [b"new"])
    assert mode_of(path) == mode


def test_private_file_replaces_an_open_one_and_a_link(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("of somebody else")
    for path in (tmp_path / "open", tmp_path / "link"):
        if path.name == "link":
            path.symlink_to(other)
        else:
            path.touch()
            path.chmod(0o666)
        replace_file(path, [b"secret"], private=True)
        assert (path.read_text(), mode_of(path), path.is_symlink()) == ("secret", 0o600, False)
    assert other.read_text() == "of somebody else"


def test_link_to_a_public_file_stays(tmp_path: Path) -> None:
    target = tmp_path / "folder" / "target"
    target.parent.mkdir()
    target.touch()
    link = tmp_path / "link"
    link.symlink_to(target)
    replace_file(link, [b"new"])
    assert (link.is_symlink(), target.read_text()) == (True, "new")
    assert [each.name for each in target.parent.iterdir()] == ["target"]
