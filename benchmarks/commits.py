"""Measure the informer of an earlier commit, in the same run as that of the present tree.

Results on a page come from many days and machines, so they do not show a step backward. A commit that is measured in
turns with the present code does. As a program, it takes a commit and the URL of a load server.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

_HERE = Path(__file__).parent
#: The package and the benchmarks of each measured commit. `make clean` removes it.
_CHECKOUTS = _HERE.parent / "build" / "commits"

#: Name of the subject -> the commit. Their floods are the marks that later code must not fall behind.
COMMITS = {"commit 43d68e0": "43d68e02", "commit 77e6fce": "77e6fcee"}


def subjects_at_commits(handlers: int = 1) -> dict[str, list[str]]:
    """Return a command for each commit that measures its informer."""
    program = [sys.executable, str(_HERE / "commits.py")]
    return {name: [*program, commit, str(handlers), "URL"] for name, commit in COMMITS.items()}


def package_at(commit: str) -> Path:
    """Return a folder that contains the package and its benchmarks as they were at a commit.

    Raises:
        CalledProcessError: the repository does not have the commit, as in a shallow clone.
    """
    folder = _CHECKOUTS / commit
    if not folder.exists():
        archive = ["git", "-C", str(_HERE.parent), "archive", commit, "aioinformer", "benchmarks"]
        files = subprocess.run(archive, check=True, stdout=subprocess.PIPE).stdout
        with tarfile.open(fileobj=io.BytesIO(files)) as tar:
            tar.extractall(folder, filter="data")
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", help="its package and benchmarks are unpacked below build/")
    parser.add_argument("handlers", type=int)
    parser.add_argument("url", help="of a load server")
    arguments = parser.parse_args()
    folder = package_at(arguments.commit)
    sys.path[:0] = [str(folder / "benchmarks"), str(folder)]
    from clients import measure_informer

    figures = measure_informer(arguments.url, handlers=arguments.handlers)
    print(json.dumps(asyncio.run(figures)))
