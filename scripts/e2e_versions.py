"""Runs tests on a real API server of several versions of Kubernetes.

    .venv/bin/python scripts/e2e_versions.py 1.34.4 default -- tests/real/e2e -k informer
    .venv/bin/python scripts/e2e_versions.py --go-on-without-build 1.34.4 1.37.2 -- tests/real/e2e

Each version is built by the program `build` of the folder AIOINFORMER_TEST_CLUSTER, which needs minutes the first time,
and says meanwhile that it still runs. What follows `--` is passed to pytest. A version that fails does not stop the
others. At the end, there is a line for each one; the exit code is 1 if one has failed.

`--go-on-without-build`: a version that cannot be built within 15 minutes is reported as not tested, and is no failure.
For CI: whether the source of another version can be had says nothing of the change that is checked. Tests that fail
always count.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
#: Seconds between two lines that say that a build still runs.
_PERIOD = 60.0
DEFAULT = "default"


def built(version: str, tools: Path, patience: float) -> str | None:
    """Build a version and return the path of its binary; None, after a line that says why, if this fails.

    Args:
        version: such as "1.34.4".
        tools: the folder with the program `build`.
        patience: seconds after which the build is ended.
    """
    environment = {key: value for key, value in os.environ.items() if key not in ("KUBERNETES", "TEST_CLUSTER_BIN")}
    if version != DEFAULT:
        environment["KUBERNETES"] = version
    elif binary := os.environ.get("TEST_CLUSTER_BIN"):
        return binary
    build_tool = tools / "build"
    try:
        # In a group of its own, so that the compilers can be ended with it.
        build = subprocess.Popen([build_tool], env=environment, stdout=subprocess.PIPE, text=True, process_group=0)
    except OSError as error:
        say(f"Kubernetes {version} cannot be built: {error}")
        return None
    with build:
        try:
            output = waited_for(build, version, patience)
        finally:
            if build.poll() is None:
                os.killpg(build.pid, signal.SIGKILL)
    if build.returncode == 0:
        return output.strip()
    how = (
        f"has failed with exit code {build.returncode}" if build.returncode > 0 else f"takes more than {patience:.0f} s"
    )
    say(f"Kubernetes {version} cannot be built: {build_tool} {how}")
    return None


def waited_for(build: subprocess.Popen[str], version: str, patience: float) -> str:
    """Wait for the end of a build, at most so many seconds, and return what it has printed. Say that it still runs."""
    began = time.monotonic()
    while (taken := time.monotonic() - began) < patience:
        try:
            return build.communicate(timeout=min(_PERIOD, patience - taken))[0]
        except subprocess.TimeoutExpired:
            say(f"Kubernetes {version}: the build has run for {time.monotonic() - began:.0f} s")
    return ""


def passed(version: str, binary: str, arguments: list[str]) -> bool:
    """Run pytest with a version, and return whether all tests have passed."""
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=PROJECT, env={**os.environ, "TEST_CLUSTER_BIN": binary}).returncode == 0


def say(line: str) -> None:
    print(f"== {line}", flush=True)


def main() -> int:
    """Run the tests, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("versions", nargs="+", metavar="VERSION", help=f'such as "1.34.4", or "{DEFAULT}"')
    parser.add_argument(
        "--go-on-without-build", action="store_true", help="a version that cannot be built is no failure"
    )
    own, arguments = split(sys.argv[1:])
    options = parser.parse_args(own)
    tools = os.environ.get("AIOINFORMER_TEST_CLUSTER")
    if not tools:
        parser.error("set AIOINFORMER_TEST_CLUSTER to the folder of a test cluster (see docs/contributing.md)")
    results: dict[str, str] = {}
    for version in options.versions:
        say(f"Kubernetes {version}")
        binary = built(version, Path(tools), 900.0 if options.go_on_without_build else 7200.0)
        if binary is None:
            results[version] = "NOT TESTED, the build has failed"
            continue
        began = time.monotonic()
        outcome = "passed" if passed(version, binary, arguments) else "FAILED"
        results[version] = f"{outcome} in {time.monotonic() - began:.0f} s"
    for version, result in results.items():
        say(f"Kubernetes {version}: {result}")
    fatal = ("FAILED",) if options.go_on_without_build else ("FAILED", "NOT TESTED")
    return int(any(each.startswith(fatal) for each in results.values()))


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return what is before "--", and what is behind it."""
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


if __name__ == "__main__":
    sys.exit(main())
