"""Decides whether the tests need a full run, and records full runs.

A full run (`make test-all`) tests every row of the server for tests, with a real API server too if there is one, and
plays more seeds of the simulation; `make test` tests a sample of the rows. A full run is needed if the server for tests
or its tests have changed since the last recorded full run. The record is `tests/full_run.json`: a hash of each of these
folders, and whether a real API server took part. `make test-all` writes it if all tests pass; commit it.

    python scripts/full_run.py      prints the make target that is needed, and the reason on stderr
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
RECORD = PROJECT / "tests" / "full_run.json"

#: The server for tests, and its tests.
FOLDERS = ("aioinformer/testing", "aioinformer/cel", "tests/real/contract", "tests/real/kubectl", "tests/unit/testing")


@dataclass(frozen=True)
class FullRun:
    """A full run that passed.

    Attributes:
        real_server: whether a real API server took part.
        folders: the hash of each folder.
    """

    real_server: bool
    folders: dict[str, str]


def has_real_server() -> bool:
    """Return whether the environment names a real API server for the tests."""
    return any(os.environ.get(name) for name in ("AIOINFORMER_TEST_CLUSTER", "AIOINFORMER_TEST_KUBECONFIG"))


def this_run(project: Path = PROJECT) -> FullRun:
    """Return what a full run of the files as they are now would record.

    Raises:
        OSError, subprocess.CalledProcessError: git cannot be run, or this is no checkout.
    """
    return FullRun(has_real_server(), {folder: hash_of(project, folder) for folder in FOLDERS})


def hash_of(project: Path, folder: str) -> str:
    """Return a hash of the names and contents of all files in a folder that git tracks."""
    command = ["git", "ls-files", "-z", "--", folder]
    listed = subprocess.run(command, cwd=project, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    total = hashlib.sha256()
    for name in sorted(set(filter(None, listed.stdout.split(b"\0")))):
        path = project / os.fsdecode(name)
        content = path.read_bytes() if path.is_file() else b""
        total.update(name + b"\0" + hashlib.sha256(content).digest())
    return total.hexdigest()


def read(record: Path = RECORD) -> FullRun | None:
    """Return the last recorded full run, or None if there is none."""
    return FullRun(**json.loads(record.read_text())) if record.exists() else None


def write(run: FullRun, record: Path = RECORD) -> bool:
    """Record a full run that passed, unless the record covers it; return whether the record has changed."""
    if not reason_for(run, read(record)):
        return False
    record.write_text(json.dumps(asdict(run), indent=2, sort_keys=True) + "\n")
    return True


def reason_for(now: FullRun, last: FullRun | None) -> str:
    """Return why a full run is needed, or "" if the recorded one covers the present files."""
    if last is None:
        return "no full run is recorded"
    if changed := [folder for folder in FOLDERS if now.folders[folder] != last.folders.get(folder)]:
        return f"changed since the last recorded full run: {', '.join(changed)}"
    if now.real_server and not last.real_server:
        return "the last recorded full run had no real API server, and now there is one"
    return ""


def main() -> int:
    try:
        reason = reason_for(this_run(), read())
    except (OSError, subprocess.CalledProcessError):
        reason = "this is no git checkout, so that changes cannot be detected"
    if reason:
        print(f"Full run: {reason}.", file=sys.stderr)
    else:
        print(f"Sample: {', '.join(FOLDERS)} are as in the last recorded full run.", file=sys.stderr)
    print("test-all" if reason else "test")
    return 0


if __name__ == "__main__":
    sys.exit(main())
