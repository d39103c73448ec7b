"""What releases promise: a warning before a name goes, and a changelog with every changed signature."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import TYPE_CHECKING

import changelog
import pytest
import signatures

import aioinformer
from aioinformer import exports
from aioinformer.cache import Storage
from aioinformer.exports import ADDRESSES, DEPRECATED, modules_of

if TYPE_CHECKING:
    from pathlib import Path

FRONT_DOOR = {"aioinformer", "aioinformer.controller"}


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> str:
    """A name that has moved from the front door to `aioinformer.cache`."""
    row = {"aioinformer": {"Storage": ("cache.objects.storage", "0.4", "aioinformer.cache.Storage")}}
    monkeypatch.setattr(exports, "DEPRECATED", row)
    return "aioinformer.Storage goes with version 0.4: use aioinformer.cache.Storage"


def test_name_that_has_moved_is_found_with_a_warning(planted: str) -> None:
    with pytest.warns(DeprecationWarning, match="goes with version") as caught:
        assert aioinformer.Storage is Storage  # type: ignore[attr-defined]
    assert [str(each.message) for each in caught] == [planted]
    assert caught[0].filename == __file__


def test_import_statement_warns_at_its_own_line(planted: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("from aioinformer import Storage\n")
    with pytest.warns(DeprecationWarning, match="goes with version") as caught:
        exec(compile(program.read_text(), str(program), "exec"), {"__name__": "program"})
    assert {(str(each.message), each.filename, each.lineno) for each in caught} == {(planted, str(program), 1)}


def test_name_that_has_moved_is_no_part_of_a_star_import(planted: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec("from aioinformer import *", {"__name__": "program"})
        dir(aioinformer)


def test_only_names_of_the_front_door_are_deprecated() -> None:
    assert DEPRECATED.keys() <= FRONT_DOOR
    assert [name for address in DEPRECATED for name in DEPRECATED[address] if name in modules_of(address)] == []


def test_importing_rooms_and_names_warns_of_nothing() -> None:
    lines = [f"import {address}; [getattr({address}, name) for name in {address}.__all__]" for address in ADDRESSES]
    script = "\n".join(lines)
    run = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")


def test_changelog_has_every_changed_signature() -> None:
    now = signatures.render(signatures.signatures())
    assert signatures.find_problems(signatures.LISTING.read_text(), now, changelog.sections()[0].text) == []


WAIT = "aioinformer.wait() -> None\n"
BEFORE = "aioinformer.Lister class() -> None\naioinformer.Lister.get(self, name: str) -> T\n" + WAIT
ADDED = BEFORE.replace("name: str", "name: str, namespace: str = ''")
LINE = "- `aioinformer.Lister.get` takes a namespace.\n"
CHANGES = f"### Changed signatures\n\n{LINE}"


@pytest.mark.parametrize(
    ("now", "section", "problem"),
    [
        pytest.param(BEFORE, "", "", id="unchanged"),
        pytest.param(BEFORE + "aioinformer.new() -> None\n", "", "", id="new name"),
        pytest.param(ADDED, "", "aioinformer.Lister.get has changed", id="changed"),
        pytest.param(ADDED, CHANGES, "", id="changed, with a line"),
        pytest.param(ADDED, f"### Informers\n\n{LINE}", "aioinformer.Lister.get has changed", id="another heading"),
        pytest.param(WAIT, "", "aioinformer.Lister has changed", id="gone"),
        pytest.param(BEFORE, CHANGES, "CHANGELOG.md lists aioinformer.Lister.get", id="stale"),
    ],
)
def test_line_for_a_changed_signature(now: str, section: str, problem: str) -> None:
    found = signatures.find_problems(BEFORE, now, section)
    assert [each.startswith(problem) for each in found] == ([True] if problem else [])


def test_signatures_have_arguments_defaults_and_members() -> None:
    found = signatures.signatures()
    assert found["aioinformer.wait_for_cache_sync"].startswith("async (*")
    assert found["aioinformer.Lister.get"].startswith("(self, key: str")
    assert found["aioinformer.RunOptions.page_size"] == ": int"
    assert "0x" not in signatures.render(found)
