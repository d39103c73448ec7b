"""`aioinformer demo`, in a pipe and on a terminal; `bench`: its figures, and the deletion of its namespace."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from tests.support.shell import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

    from aioinformer.testing import ApiServer
    from tests.support.shell import Shell


LINE = re.compile(r"\d\d:\d\d:\d\d\.\d{3}  (add|update|delete|synced) +(nodes|configmaps|deployments|jobs|pods)( |$)")


async def test_demo_in_a_pipe_prints_lines_and_ends(shell: Shell) -> None:
    finished = await shell.run("demo", "--duration", "4")
    assert finished.code == 0
    assert [line for line in finished.lines if not LINE.match(line)] == []
    events = {line.split()[1] for line in finished.lines}
    assert {"add", "update", "synced"} <= events


async def test_signal_ends_demo(shell: Shell) -> None:
    command = await shell.start("demo")
    await command.line()
    assert (await command.finish(signal.SIGTERM)).code == 0


async def test_demo_server_works_with_watch(shell: Shell, tmp_path: Path) -> None:
    demo = await shell.start("demo", "--kubeconfig", tmp_path / "kubeconfig")
    await demo.line()
    beside = await shell.run("watch", "ns", "--kubeconfig", tmp_path / "kubeconfig", "--until-synced")
    assert beside.code == 0


async def test_demo_on_a_terminal_draws_and_restores_the_screen(shell: Shell) -> None:
    controller, terminal = os.openpty()
    command = await shell.start("demo", stdout=terminal, TERM="xterm-256color", COLUMNS="100", LINES="30")
    os.close(terminal)
    shown = bytearray()
    drawn = asyncio.Event()

    def read() -> None:
        # Reading fails once the command has closed its end of the terminal.
        with suppress(OSError):
            shown.extend(os.read(controller, 65536))
        if "● pods".encode() in shown:
            drawn.set()

    loop = asyncio.get_running_loop()
    loop.add_reader(controller, read)
    async with asyncio.timeout(PATIENCE):
        await drawn.wait()
    command.process.send_signal(signal.SIGINT)
    code = await command.ended()
    read()
    loop.remove_reader(controller)
    os.close(controller)
    assert code == 0
    assert shown.count(b"\x1b[?1049h") == shown.count(b"\x1b[?1049l") == 1
    assert b"notifications in" in shown


SMALL = ("--objects", "20", "--rate", "100", "--seconds", "0.3")


async def namespaces(server: ApiServer) -> list[str]:
    """Return the names of the namespaces that the command created."""
    async with aiohttp.ClientSession() as session, session.get(f"{server.url}/api/v1/namespaces") as response:
        listed: dict[str, Any] = await response.json()
    names = [item["metadata"]["name"] for item in listed["items"]]
    return [name for name in names if name.startswith("aioinformer-bench-")]


async def test_bench_without_server_measures_the_embedded_one(shell: Shell) -> None:
    finished = await shell.run("bench", *SMALL)
    assert finished.code == 0, finished.stderr
    assert [line.split("  ")[0].strip() for line in finished.lines] == [
        "create",
        "list",
        "list in pages",
        "watch",
        "catch up",
        "latency from sent",
        "latency from answered",
    ]
    assert "embedded" in finished.stderr


async def test_bench_figures_cover_all_writes(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    finished = await shell.run("bench", *SMALL, "--kubeconfig", str(kubeconfig), "-o", "json")
    report = json.loads(finished.lines[0])
    assert finished.code == 0, finished.stderr
    assert (report["list"]["objects"], report["list_in_pages"]["objects"]) == (20, 20)
    assert (report["watch"]["events"], report["catch_up"]["events"]) == (20, 20)
    assert 20 <= report["latency_from_sent"]["events"] <= 30
    assert 0 < report["latency_from_sent"]["p50_ms"] <= report["latency_from_sent"]["max_ms"]
    assert await namespaces(server) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_bench_deletes_its_namespace_after_a_signal(
    shell: Shell, server: ApiServer, kubeconfig: Path, number: signal.Signals
) -> None:
    command = await shell.start("bench", "--objects", "20", "--seconds", "60", "--kubeconfig", str(kubeconfig))
    while not (await command.line()).startswith("watch"):
        assert len(await namespaces(server)) == 1
    finished = await command.finish(number)
    assert finished.code == 1
    assert await namespaces(server) == []


async def test_bench_logs_a_refusal_in_one_line(shell: Shell, server: ApiServer) -> None:
    finished = await shell.run("bench", "--server", f"{server.url}/elsewhere")
    assert (finished.code, finished.lines) == (1, [])
    assert "404" in finished.stderr
    assert "Traceback" not in finished.stderr


@pytest.mark.parametrize("option", [("--objects", "0"), ("--size", "1000000"), ("--rate", "0"), ("--seconds", "inf")])
async def test_bench_options_out_of_range_are_usage_errors(shell: Shell, option: tuple[str, str]) -> None:
    finished = await shell.run("bench", *option)
    assert finished.code == 2
    assert f"{option[0]} must be" in finished.stderr
