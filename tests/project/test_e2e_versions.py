"""End-to-end tests with several versions of Kubernetes: what counts as a failure. The builds are make-believe."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
BUILD = """#!/bin/sh
[ "$KUBERNETES" = 1.0.0 ] && exit 3
echo "/nowhere/$KUBERNETES"
"""
PASSES = "import os\n\ndef test_a(): assert os.environ['TEST_CLUSTER_BIN'] != '/nowhere/2.0.0'\n"


@pytest.mark.parametrize(
    ("arguments", "code", "lines"),
    [
        (["1.34.4"], 0, ["1.34.4: passed in"]),
        (["1.0.0", "1.34.4"], 1, ["1.0.0: NOT TESTED, the build has failed", "1.34.4: passed in"]),
        (["--go-on-without-build", "1.0.0", "1.34.4"], 0, ["1.0.0: NOT TESTED", "1.34.4: passed in"]),
        (["--go-on-without-build", "2.0.0", "1.34.4"], 1, ["2.0.0: FAILED in", "1.34.4: passed in"]),
    ],
)
def test_tests_that_fail_always_count(arguments: list[str], code: int, lines: list[str], tmp_path: Path) -> None:
    build = tmp_path / "build"
    build.write_text(BUILD)
    build.chmod(0o755)
    (tmp_path / "test_it.py").write_text(PASSES)
    environment = {**os.environ, "AIOINFORMER_TEST_CLUSTER": str(tmp_path)}
    command = [sys.executable, "scripts/e2e_versions.py", *arguments, "--", "-p", "no:cacheprovider", "--noconftest"]
    run = subprocess.run(
        [*command, "--rootdir", tmp_path, "-c", os.devnull, tmp_path / "test_it.py"],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == code, run.stdout + run.stderr
    assert all(f"== Kubernetes {each}" in run.stdout for each in lines)


def test_without_a_cluster_the_remedy_is_named() -> None:
    environment = {key: value for key, value in os.environ.items() if key != "AIOINFORMER_TEST_CLUSTER"}
    command = [sys.executable, "scripts/e2e_versions.py", "1.34.4"]
    run = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "set AIOINFORMER_TEST_CLUSTER to the folder of a test cluster" in run.stderr
