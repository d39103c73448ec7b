"""`aioinformer run`: a manager runs until a signal, as the options say."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import aiohttp
import pytest

from tests.system.cli.programs import LEVELS, PROGRAM

if TYPE_CHECKING:
    from pathlib import Path

    from aioinformer.testing import ApiServer
    from tests.support.shell import Shell


@pytest.fixture(autouse=True)
def program(shell: Shell, server: ApiServer) -> None:
    (shell.home / "program.py").write_text(PROGRAM)
    (shell.home / "levels.py").write_text(LEVELS)
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


@pytest.mark.behaviour("C-81")
async def test_probes_listen_at_the_health_port(shell: Shell, kubeconfig: Path, unused_tcp_port: int) -> None:
    options = ("--kubeconfig", kubeconfig, "--health-port", str(unused_tcp_port))
    command = await shell.start("run", "program:manager", *options)
    await command.line()
    async with aiohttp.ClientSession(f"http://127.0.0.1:{unused_tcp_port}") as client:
        for path in ("/livez", "/readyz"):
            async with client.get(path) as response:
                assert (response.status, await response.text()) == (200, "ok\n")
    assert (await command.finish(signal.SIGTERM)).code == 0


@pytest.mark.behaviour("C-127")
@pytest.mark.parametrize(("level", "shown"), [("debug", {"debug", "info", "warning"}), ("WARNING", {"warning"})])
async def test_log_level_is_an_option(shell: Shell, kubeconfig: Path, level: str, shown: set[str]) -> None:
    options = ("--kubeconfig", kubeconfig, "--log-format", "json", "--log-level", level)
    command = await shell.start("run", "levels:manager", *options)
    await command.line()
    finished = await command.finish(signal.SIGTERM)

    records = [json.loads(each) for each in finished.stderr.splitlines()]
    assert {each["level"] for each in records} - {"error"} == shown


@pytest.mark.behaviour("C-127")
async def test_lines_of_attempts_have_controller_and_key_in_json(shell: Shell, kubeconfig: Path) -> None:
    command = await shell.start("run", "levels:manager", "-n", "shop", "--kubeconfig", kubeconfig, "--log-format=json")
    await command.line()
    finished = await command.finish(signal.SIGTERM)

    records = [json.loads(each) for each in finished.stderr.splitlines()]
    assert {
        (each["level"], each["controller"], each["key"]) for each in records if "dns answers 500" in each["message"]
    } == {("warning", "levels", "shop/one")}


async def test_unknown_log_level_is_an_error(shell: Shell) -> None:
    for command in ("run", "check"):
        finished = await shell.run(command, "program:manager", "--log-level", "loud")
        assert finished.code == 2
        assert "'loud' is not one of 'debug', 'info', 'warning', 'error'" in finished.stderr


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
