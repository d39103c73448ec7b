"""Finds the newest Python of this machine for `make test-newest`.

    .venv/bin/python scripts/newest_python.py      prints its path; nothing, and the reason on stderr, if there is none

A candidate counts if it starts, is a final release that pyproject.toml declares as supported, and is newer than the
Python that runs this script. Candidates are the interpreters of pyenv, and `python3.N` on the PATH.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

PROJECT = Path(__file__).resolve().parent.parent

#: Fails if an environment cannot be created: venv needs ensurepip, and pip needs ssl. Free-threaded builds need locks
#: of their own.
_PROBE = """
import ensurepip, ssl, sys, sysconfig, venv
assert sys.version_info.releaselevel == "final" and not sysconfig.get_config_var("Py_GIL_DISABLED")
print(*sys.version_info[:3])
"""


def supported(project: Path = PROJECT) -> list[int]:
    """Return the minor versions of Python 3 that pyproject.toml declares."""
    classifiers = tomllib.loads((project / "pyproject.toml").read_text())["project"]["classifiers"]
    return [int(found[1]) for each in classifiers if (found := re.fullmatch(r".* :: Python :: 3\.(\d+)", each))]


def candidates(minors: Iterable[int]) -> list[str]:
    """Return the interpreters of pyenv, and those on the PATH. The latter may be shims that do not start."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    named = (shutil.which(f"python3.{minor}") for minor in minors)
    return [*map(str, sorted(pyenv.glob("versions/*/bin/python"))), *filter(None, named)]


def version_of(python: str) -> tuple[int, ...]:
    """Return the version of an interpreter; () if it does not start, or cannot run the tests."""
    try:
        probe = subprocess.run([python, "-c", _PROBE], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(map(int, probe.stdout.split()))


def newest(minors: Iterable[int], than: tuple[int, ...]) -> str | None:
    """Return the newest interpreter of these minor versions, if its minor version is above that of `than`."""
    minors = [minor for minor in minors if minor > than[1]]
    found = {python: version_of(python) for python in candidates(minors)}
    usable = [python for python, version in found.items() if version[:1] == (3,) and version[1] in minors]
    return max(usable, key=found.__getitem__, default=None)


def main() -> None:
    """Print the interpreter."""
    own = sys.version_info[:2]
    if (python := newest(supported(), own)) is not None:
        print(python)
    else:
        print(f"No supported Python newer than {own[0]}.{own[1]} starts on this machine.", file=sys.stderr)


if __name__ == "__main__":
    main()
