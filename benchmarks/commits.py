"""The package as it was at a commit, for benchmarks that compare it with the present one."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

_REPOSITORY = Path(__file__).parents[1]
#: The package and the benchmarks of each measured commit. `make clean` removes it.
_CHECKOUTS = _REPOSITORY / "build" / "commits"


def package_at(commit: str) -> Path:
    """Return a folder that contains the package and its benchmarks as they were at a commit, a branch or a tag.

    Raises:
        CalledProcessError: the repository does not have the commit, as in a shallow clone.
    """
    folder = _CHECKOUTS / _git("rev-parse", "--verify", f"{commit}^{{commit}}").decode().strip()
    if not folder.exists():
        files = _git("archive", commit, "aioinformer", "benchmarks")
        partial = folder.with_suffix(".partial")
        with tarfile.open(fileobj=io.BytesIO(files)) as tar:
            tar.extractall(partial, filter="data")
        partial.rename(folder)
    return folder


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(_REPOSITORY), *arguments], check=True, stdout=subprocess.PIPE).stdout
