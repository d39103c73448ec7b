"""Files of the server are private, and links are replaced, not followed."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from aioinformer.testing import ApiServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG_MAP = {"metadata": {"name": "a"}}


@pytest.fixture(autouse=True)
def generous() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    path = tmp_path / "precious"
    path.write_text("precious")
    return path


def mode(path: Path) -> int:
    return path.lstat().st_mode & 0o777


def modes(folder: Path) -> set[int]:
    return {mode(path) for path in folder.iterdir()}


def text_of(path: Path) -> str:
    return path.read_text()


def filled() -> ApiServer:
    server = ApiServer()
    server.create("configmaps", CONFIG_MAP)
    return server


def test_saved_files_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    filled().save_manifests(folder)
    assert mode(folder) == 0o700
    assert modes(folder) == {0o600}


def test_saving_replaces_open_files_and_links(tmp_path: Path, precious: Path) -> None:
    (tmp_path / "configmaps.json").symlink_to(precious)
    (tmp_path / ".state.json").write_text("{}")
    filled().save_manifests(tmp_path)
    assert precious.read_text() == "precious"
    assert mode(tmp_path / "configmaps.json") == mode(tmp_path / ".state.json") == 0o600
    assert not (tmp_path / "configmaps.json").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".state.json",
        "configmaps.json",
        "namespaces.json",
        "precious",
    ]


async def test_kubeconfig_replaces_links_and_existing_files(tmp_path: Path, precious: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.symlink_to(precious)
    (tmp_path / f".kubeconfig.{os.getpid()}").symlink_to(precious)
    async with ApiServer() as server:
        assert server.kubeconfig(path) == path
    assert text_of(precious) == "precious"
    assert stat.S_ISREG(path.lstat().st_mode)
    assert mode(path) == 0o600
