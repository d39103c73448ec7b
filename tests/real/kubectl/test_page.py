"""docs/kubectl.md says what the scripts and their recordings say."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.real.kubectl.script import HERE

sys.path.insert(0, str(HERE.parents[1] / "scripts"))

import kubectl_page

if TYPE_CHECKING:
    from pathlib import Path


def test_the_page_is_up_to_date() -> None:
    page = kubectl_page.render(kubectl_page.read_scripts(), kubectl_page.clients())
    assert page == kubectl_page.PAGE.read_text(), "run scripts/kubectl_page.py"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "recorded").mkdir()
    for client, status in (("v1.9", 2), ("v1.36", 0)):
        told = f'{{"some": [{{"command": "kubectl version", "status": {status}}}]}}'
        (tmp_path / "recorded" / f"{client}.json").write_text(told)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "some.txt").write_text("# Some\n\nkubectl version\n")
    (tmp_path / "differences.toml").write_text('[some]\n"kubectl version" = "why"\n')
    return tmp_path


def test_command_has_status_and_difference(suite: Path) -> None:
    assert kubectl_page.read_scripts(suite) == {"Some": [kubectl_page.Line("kubectl version", 0, "why")]}


def test_recording_of_another_script_is_refused(suite: Path) -> None:
    (suite / "scripts" / "some.txt").write_text("# Some\nkubectl get pods\n")
    with pytest.raises(ValueError, match="some has other commands than the script"):
        kubectl_page.read_scripts(suite)


def test_difference_without_a_command_is_refused(suite: Path) -> None:
    (suite / "differences.toml").write_text('[some]\n"kubectl get pods" = "why"\n')
    with pytest.raises(ValueError, match="some has no command kubectl get pods"):
        kubectl_page.read_scripts(suite)
