"""kubectl as a reader of files, without a cluster."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any

KUBECTL = shutil.which("kubectl")
RECORDS = bool(os.environ.get("AIOINFORMER_RECORD"))


def read_objects(manifests: str) -> list[Any] | None:
    """Return the objects that kubectl reads from a text, None if it refuses the text."""
    command = [str(KUBECTL), "annotate", "--local", "-f", "-", "by=kubectl", "-o", "json"]
    ended = subprocess.run(command, input=manifests.encode(), capture_output=True, check=False, timeout=200)
    if ended.returncode != 0:
        told = ended.stderr.decode(errors="replace")
        assert "error parsing STDIN" in told, f"kubectl failed for another reason, {ended.returncode}: {told}"
        return None
    decoder = json.JSONDecoder()
    text = ended.stdout.decode().strip()
    found: list[Any] = []
    while text:
        value, end = decoder.raw_decode(text)
        found += value["items"] if value["kind"] == "List" else [value]
        text = text[end:].strip()
    return found
