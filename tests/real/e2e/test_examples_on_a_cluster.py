"""The examples run unchanged on a real cluster."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.example_controllers import USES, play

if TYPE_CHECKING:
    from tests.support.real_cluster import RealCluster

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize(
    ("name", "last_line"),
    [
        ("quickstart.py", r"\d+ pods are in the cache"),  # other tests may have left some
        ("deployment_lister.py", 'deployments.apps "no-such-deployment" not found'),
        ("custom_resource.py", "updated first: 1 -> 3"),
        ("list_and_watch.py", "DELETED aioinformer-example"),
        ("multi_namespace.py", "deleted: default/of-many"),
    ],
)
def test_example_runs_on_a_real_cluster(cluster: RealCluster, name: str, last_line: str) -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), "--kubeconfig", str(cluster.kubeconfig)]
    run = subprocess.run([*command, "--duration", "2"], capture_output=True, text=True, check=False, timeout=200)
    assert run.returncode == 0, run.stderr
    # The handler may print after the program's last line.
    assert any(re.fullmatch(last_line, line) for line in run.stdout.splitlines()[-2:])


@pytest.mark.behaviour("C-89")
@pytest.mark.parametrize("name", USES)
async def test_controller_works_on_a_real_cluster(
    controlled_cluster: RealCluster, unused_tcp_port: int, name: str
) -> None:
    await play(name, controlled_cluster.kubeconfig, unused_tcp_port)
