"""The version of this package whose replicas write no annotations, from the history of the repository."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest

#: Its last commit.
COMMIT = "7536a066"
_ROOT = Path(__file__).parents[2]


@cache
def former_file(path: str) -> str:
    """Return a file of that version. Skip the test if the checkout has no history."""
    shown = subprocess.run(["git", "show", f"{COMMIT}:{path}"], cwd=_ROOT, capture_output=True, check=False, text=True)
    if shown.returncode:
        pytest.skip(f"the history of this checkout does not reach {COMMIT}")
    return shown.stdout


def extract_former(folder: Path) -> None:
    """Write that version of the package to a folder. Skip the test if the checkout has no history."""
    archive = folder / "former.tar"
    command = ["git", "archive", f"--output={archive}", COMMIT, "aioinformer"]
    if subprocess.run(command, cwd=_ROOT, capture_output=True, check=False).returncode:
        pytest.skip(f"the history of this checkout does not reach {COMMIT}")
    subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)
