"""How many files of the package one watch event passes, from the chunk that arrives to the call of the handler.

`python scripts/trace_event.py` shows the way of the event.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[3]
MAX_FILES, MAX_MOVES = 20, 36


def test_watch_event_passes_few_files() -> None:
    script = [sys.executable, "scripts/trace_event.py"]
    run = subprocess.run([*script, "--json"], cwd=PROJECT, capture_output=True, text=True, check=True)
    trace = json.loads(run.stdout)
    assert trace["files"] <= MAX_FILES, trace["names"]
    assert trace["moves"] <= MAX_MOVES, subprocess.run(script, cwd=PROJECT, capture_output=True, text=True).stdout
