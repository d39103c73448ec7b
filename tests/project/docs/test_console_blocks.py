"""Run each command of the documentation with a server and an empty home folder."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import signal
import sys
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import aioinformer.cli.commands
from tests.project.docs.blocks import PROJECT, Block, in_language
from tests.support.api import DEFINITION

if TYPE_CHECKING:
    from pathlib import Path

    from aioinformer.testing import ApiServer

MAKEFILE = (PROJECT / "Makefile").read_text()
EXTRAS = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
PATIENCE = 120.0
"""Seconds for one command: on a busy machine, the first import of changed code takes long."""
#: These print until they are interrupted.
ENDLESS = ("aioinformer watch", "aioinformer serve", "aioinformer demo")
#: Programs that not every machine has. The command is not run where its program is missing.
FOREIGN = ("kubectl", "curl", "jq")
#: Commands that are not run, and why.
NOT_RUN = {
    "aioinformer run shop:manager --debug-port 8081": "the tests of the page start such a manager, and open it",
    "aioinformer top --attach http://127.0.0.1:8081/": "test_top.py attaches it to a page",
    "kubectl exec deploy/shop -- sh -c 'kill -USR1 1'": "test_top.py sends the signal; no cluster here has a container",
    "kubectl logs deploy/shop | grep report:": "no cluster here has a container",
    "uvicorn service:app --workers 4": "test_services.py starts it with the program of the page",
}

BLOCKS = in_language("console")


def commands_of(block: Block) -> list[tuple[str, list[str]]]:
    """Return the commands of a block, without comments, each with the output that the page shows."""
    found: list[tuple[str, list[str]]] = []
    lines = block.code.replace("\\\n", " ").splitlines()
    for line in lines:
        if line.startswith("$ "):
            found.append((re.sub(r"\s+# .*$", "", line[2:]).strip(), []))
        else:
            found[-1][1].append(line)
    return found


def test_console_block_starts_with_a_prompt() -> None:
    for block in BLOCKS:
        assert block.code.startswith("$ "), block


def test_commands_that_are_not_run_exist() -> None:
    commands = {command for block in BLOCKS for command, _ in commands_of(block)}
    assert NOT_RUN.keys() <= commands


def test_options_of_the_command_line_page_exist() -> None:
    page = (PROJECT / "docs" / "command-line.md").read_text()
    commands = aioinformer.cli.commands.cli.commands.values()
    options = {option for command in commands for each in command.params for option in each.opts}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page))
    assert named - options - {"--help", "--from-literal"} == set()


def check_make(words: list[str]) -> None:
    """Assert that targets and variables are in the Makefile."""
    for word in words:
        name, is_variable, _ = word.partition("=")
        assert re.search(rf"^{name} \?=" if is_variable else rf"^{name}:", MAKEFILE, re.MULTILINE), word


def check_pip(words: list[str]) -> None:
    """Assert that the extra of the package exists; `.` is a checkout."""
    assert words[0] == "install"
    for word in words[1:]:
        match = re.fullmatch(r"(?:aioinformer|\.)(?:\[(\w+)\])?", word)
        assert match is not None
        assert match[1] is None or match[1] in EXTRAS


@dataclass
class Machine:
    """Where commands run.

    Attributes:
        home: the home folder, with a kubeconfig of a server.
        port: free, in place of the one that the documentation names.
    """

    home: Path
    port: int

    async def run(self, command: str, output: list[str]) -> asyncio.subprocess.Process | None:
        """Run a command to its end, or until it has printed something; return one that runs in the background."""
        words = shlex.split(command)
        if words[0] == "make":
            check_make(words[1:])
            return None
        if words[0] == "pip":
            check_pip(words[1:])
            return None
        if command in NOT_RUN or any(name in words and shutil.which(name) is None for name in FOREIGN):
            return None
        here = command.replace("8001", str(self.port)).replace("/tmp/", f"{self.home}/")
        here = here.replace(".venv/bin/python", "python")
        in_background = here.endswith("&")
        process = await self._start(here.rstrip("& "))
        try:
            if in_background:
                await self._first_line(process)
                return process
            if command.startswith(ENDLESS) and not {"--exit-after", "--until-synced", "--duration"} & {*words}:
                await self._first_line(process)
                os.killpg(process.pid, signal.SIGINT)
            async with asyncio.timeout(PATIENCE):
                printed, errors = await process.communicate()
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
        assert process.returncode in (0, -signal.SIGINT, 128 + signal.SIGINT), errors.decode()
        if output:
            assert [_label(line) for line in printed.decode().splitlines()] == [_label(line) for line in output]
        return None

    async def _start(self, command: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *("bash", "-o", "pipefail", "-c", command),
            cwd=PROJECT,
            env={
                "HOME": str(self.home),
                "PATH": f"{self.home}/bin:{os.environ['PATH']}",
                "PYTHONPATH": str(PROJECT),
                "SIMULATION_WORKERS": "1",
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )

    async def _first_line(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            assert await process.stdout.readline(), (await process.communicate())[1].decode()


def _label(line: str) -> str:
    """Return the first column of a line of a table."""
    return re.split(r"\s{2,}", line.strip())[0]


@pytest.fixture
async def machine(api_server: ApiServer, tmp_path: Path) -> Machine:
    """A home folder with `aioinformer` and `python`, and a kubeconfig of a server with some objects."""
    api_server.create("namespaces", {"metadata": {"name": "shop"}})
    api_server.create("customresourcedefinitions", DEFINITION)
    labels = {"app": "web"}
    containers = [{"name": "main", "image": "example.com/web"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    api_server.create("pods", {"metadata": {"name": "web-0", "labels": labels}, "spec": template["spec"]}, "shop")
    metadata = {"name": "web", "labels": labels}
    api_server.create("services", {"metadata": metadata, "spec": {"ports": [{"port": 80}]}}, "shop")
    specification = {"selector": {"matchLabels": labels}, "template": template}
    api_server.create("deployments.apps", {"metadata": metadata, "spec": specification}, "shop")
    api_server.create("widgets.example.com", {"metadata": metadata, "spec": {"size": 1}}, "shop")

    (tmp_path / ".kube").mkdir()
    api_server.kubeconfig(tmp_path / ".kube" / "config")
    (tmp_path / "bin").mkdir()
    python = sys.executable
    programs = {"aioinformer": f"{python} -m aioinformer", "python": python}
    if jq := shutil.which("jq"):
        programs["jq"] = f"{jq} --unbuffered"  # as on a terminal
    for name, program in programs.items():
        script = tmp_path / "bin" / name
        script.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
        script.chmod(0o755)
    listener = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    listener.close()
    await listener.wait_closed()
    return Machine(tmp_path, port)


@pytest.mark.parametrize("block", BLOCKS, ids=str)
async def test_commands_of_a_block_run(block: Block, machine: Machine) -> None:
    background: list[asyncio.subprocess.Process] = []
    try:
        for command, output in commands_of(block):
            process = await machine.run(command, output)
            if process is not None:
                background.append(process)
    finally:
        for process in reversed(background):
            os.killpg(process.pid, signal.SIGINT)
            async with asyncio.timeout(PATIENCE):
                await process.communicate()
    assert [process.returncode for process in background] == [0] * len(background)
