"""`aioinformer run`: a manager runs until a signal, as the options say."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from tests.cli.controllers.programs import PROGRAM

if TYPE_CHECKING:
    from pathlib import Path

    from aioinformer.testing import ApiServer
    from tests.cli.shell import Shell


@pytest.fixture(autouse=True)
def program(shell: Shell, server: ApiServer) -> None:
    (shell.home / "program.py").write_text(PROGRAM)
    for namespace in ("ops", "shop"):
        server.create("namespaces", {"metadata": {"name": namespace}})
        server.create("configmaps", {"metadata": {"name": "one", "namespace": namespace}}, namespace)


@pytest.mark.behaviour("C-94")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_manager_runs_until_a_signal(shell: Shell, kubeconfig: Path, number: signal.Signals) -> None:
    command = await shell.start("run", "program:manager", "-n", "shop", "--kubeconfig", kubeconfig, "--log-format=json")
    line = await command.line()
    finished = await command.finish(number)

    assert (finished.code, line, finished.lines) == (0, "patched shop/one", ["patched shop/one"])
    records = [json.loads(each) for each in finished.stderr.splitlines()]
    assert any(number.name in each["message"] and each["level"] == "info" for each in records)


async def test_dry_run_writes_nothing(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    command = await shell.start("run", "program:manager", "--kubeconfig", kubeconfig, "--dry-run")
    await command.says("dry run: patch configmaps shop/one")
    finished = await command.finish(signal.SIGTERM)

    assert finished.code == 0
    assert "data" not in server.get("configmaps", "one", "shop")
    assert not server.list("leases", "ops")


async def test_no_cluster_is_an_error(shell: Shell) -> None:
    finished = await shell.run("run", "program:manager")

    assert (finished.code, finished.lines) == (2, [])
    assert "no cluster found" in finished.stderr
