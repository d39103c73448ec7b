"""`aioinformer init`: a project that cannot be made whole leaves nothing, and nothing of others is removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from aioinformer.cli.projects import init
from aioinformer.errors import UsageError
from aioinformer.files import replace_file

if TYPE_CHECKING:
    from pathlib import Path


def test_failed_project_keeps_files_of_other_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "projects" / "shop"
    written: list[Path] = []

    def write(path: Path, parts: list[bytes]) -> None:
        if len(written) == 3:
            raise OSError("the disk is full")
        replace_file(path, parts)
        written.append(path)
        (folder / "notes.txt").write_text("mine")

    monkeypatch.setattr(init, "replace_file", write)
    with pytest.raises(UsageError, match="the disk is full"):
        init.init_project(folder, "example.com", "Cart")
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert left == [folder / "notes.txt"]


def test_failed_project_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(path: Path, parts: list[bytes]) -> None:
        if path.parent.name == "tests":
            raise OSError("the disk is full")
        replace_file(path, parts)

    monkeypatch.setattr(init, "replace_file", write)
    with pytest.raises(UsageError, match="the disk is full"):
        init.init_project(tmp_path / "projects" / "shop", "example.com", "Cart")
    assert list(tmp_path.iterdir()) == []


def test_project_requires_what_its_port_serves(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    init.init_project(folder, "example.com", "Cart")
    assert "--health-port" in (folder / "Dockerfile").read_text()
    assert '"aioinformer[cli,prometheus]"' in (folder / "pyproject.toml").read_text()
