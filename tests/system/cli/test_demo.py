"""`aioinformer demo`, in a pipe and on a terminal."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.support.shell import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

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
