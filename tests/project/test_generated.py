"""Generated files agree with the generator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def test_generated_files_are_up_to_date() -> None:
    run = subprocess.run(
        [sys.executable, "scripts/generate.py", "--check"], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
