"""When a full run of the tests is needed, and which rows are in the sample of other runs."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

import full_run
from full_run import FOLDERS, FullRun
from tests.selection import ONE_OF, sample

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS_NOW = dict.fromkeys(FOLDERS, "a")
RUN = FullRun(real_server=True, folders=FOLDERS_NOW)
WITHOUT_SERVER = FullRun(real_server=False, folders=FOLDERS_NOW)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A git checkout with a file in each folder."""
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    for folder in FOLDERS:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "module.py").write_text("a = 1\n")
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    return tmp_path


def test_recorded_run_covers_unchanged_folders() -> None:
    assert full_run.reason_for(RUN, RUN) == ""


def test_first_run_is_full() -> None:
    assert full_run.reason_for(RUN, None) == "no full run is recorded"


def test_changed_folder_needs_a_full_run() -> None:
    changed = FullRun(real_server=True, folders={**FOLDERS_NOW, "tests/real/contract": "b"})
    assert full_run.reason_for(changed, RUN) == "changed since the last recorded full run: tests/real/contract"


def test_real_server_needs_a_full_run_with_one() -> None:
    assert "had no real API server" in full_run.reason_for(RUN, WITHOUT_SERVER)
    assert full_run.reason_for(WITHOUT_SERVER, RUN) == ""


def test_hash_depends_on_tracked_contents_only(checkout: Path) -> None:
    before = full_run.this_run(checkout)
    (checkout / "tests/real/contract/untracked.py").write_text("b = 2\n")
    (checkout / "tests/real/contract/module.py").touch()
    assert full_run.this_run(checkout) == before
    (checkout / "tests/real/contract/module.py").write_text("a = 2\n")
    after = full_run.this_run(checkout)
    assert [folder for folder in FOLDERS if after.folders[folder] != before.folders[folder]] == ["tests/real/contract"]


def test_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    assert full_run.read(record) is None
    assert full_run.write(RUN, record)
    assert full_run.read(record) == RUN


def test_run_without_a_real_server_does_not_replace_one_with(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    full_run.write(RUN, record)
    assert not full_run.write(WITHOUT_SERVER, record)
    assert full_run.read(record) == RUN


def test_sample_has_one_of_ten_rows_of_each_module() -> None:
    rows = {(module, f"row{number}") for module, count in (("small", 1), ("large", 95)) for number in range(count)}
    chosen = sample(rows)
    assert sorted(module for module, _ in chosen) == ["large"] * -(-95 // ONE_OF) + ["small"]
    assert chosen == sample(sorted(rows))
