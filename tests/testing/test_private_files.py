"""Files of the server are private, and links are replaced, not followed."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from aioinformer import UsageError
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


def filled(**options: object) -> ApiServer:
    server = ApiServer(**options)  # type: ignore[arg-type]
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


async def test_database_is_private(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with filled(database=path):
        assert modes(tmp_path) == {0o600}


async def test_existing_database_is_made_private_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with filled(database=path):
        pass
    path.chmod(0o644)
    async with ApiServer(database=path) as server:
        assert server.get("configmaps", "a")
        assert mode(path) == 0o600


@pytest.mark.parametrize("name", ["state.db", "state.db-wal"])
def test_link_is_refused_as_a_database(tmp_path: Path, precious: Path, name: str) -> None:
    (tmp_path / name).symlink_to(precious)
    with pytest.raises(UsageError, match="it is a link; name the file itself"):
        ApiServer(database=tmp_path / "state.db")
    assert precious.read_text() == "precious"


async def test_kubeconfig_replaces_links_and_existing_files(tmp_path: Path, precious: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.symlink_to(precious)
    (tmp_path / f".kubeconfig.{os.getpid()}").symlink_to(precious)
    async with ApiServer() as server:
        assert server.kubeconfig(path) == path
    assert text_of(precious) == "precious"
    assert stat.S_ISREG(path.lstat().st_mode)
    assert mode(path) == 0o600
