"""The rooms of the package: imports go downward only, and the core imports no event loop, clock, random or network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def test_imports_follow_the_contracts_of_the_layers() -> None:
    lint_imports = Path(sys.executable).parent / "lint-imports"
    run = subprocess.run([lint_imports, "--no-cache"], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
