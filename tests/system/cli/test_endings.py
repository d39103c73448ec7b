"""How commands end: after signals in each phase, with a closed or unread stdout, and after usage errors."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from tests.support.shell import PATIENCE, PROJECT, config_map

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from aioinformer.testing import ApiServer
    from tests.support.shell import Command, Shell

SIGNALS = [signal.SIGINT, signal.SIGTERM]


class SilentServer:
    """A server that accepts connections and never answers."""

    def __init__(self) -> None:
        self.connected = asyncio.Event()
        self.url = ""
        self._writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        await reader.read(1)
        self.connected.set()

    def close(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


@pytest.fixture
async def silent() -> AsyncIterator[SilentServer]:
    silent = SilentServer()
    listening = await asyncio.start_server(silent.serve, "127.0.0.1", 0)
    silent.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    yield silent
    listening.close()
    silent.close()


@pytest.mark.parametrize("number", SIGNALS)
async def test_signal_while_watching_ends_with_0(
    shell: Shell, server: ApiServer, kubeconfig: Path, number: signal.Signals
) -> None:
    command = await shell.start("watch", "cm", "--kubeconfig", kubeconfig)
    await command.until("synced")
    assert (await command.finish(number)).code == 0


async def test_signal_before_the_condition_is_met_ends_with_1(
    shell: Shell, server: ApiServer, kubeconfig: Path
) -> None:
    command = await shell.start("watch", "cm", "--kubeconfig", kubeconfig, "--exit-after", "1")
    await command.until("synced")
    assert (await command.finish(signal.SIGTERM)).code == 1


@pytest.mark.parametrize("resource", ["cm", "v1/configmaps"], ids=["discovery", "list"])
async def test_signal_ends_a_command_that_waits_for_an_answer(
    shell: Shell, silent: SilentServer, resource: str
) -> None:
    command = await shell.start("watch", resource, "--server", silent.url)
    await silent.connected.wait()
    assert (await command.finish(signal.SIGINT)).code == 0


async def test_signal_ends_a_command_that_backs_off(shell: Shell) -> None:
    command = await shell.start("watch", "cm", "--server", "http://127.0.0.1:1")
    await command.says("retrying in")
    assert (await command.finish(signal.SIGTERM)).code == 0


SIGNALLED_ELSEWHERE = """
import os, signal, threading
from aioinformer.cli import main

def interrupt():
    # Long after the event loop went to sleep. A thread that is signalled itself does not interrupt that sleep.
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

threading.Timer(2, interrupt).start()
main()
"""


async def test_signal_that_interrupts_no_wait_ends_the_command(silent: SilentServer) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SIGNALLED_ELSEWHERE, "watch", "v1/pods", "--server", silent.url),
        env={"PYTHONPATH": str(PROJECT)},
    )
    try:
        async with asyncio.timeout(PATIENCE):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_closed_stdout_ends_the_command_quietly(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    reading, writing = os.pipe()
    command = await shell.start("watch", "cm", "--kubeconfig", kubeconfig, "--exit-after", "1", stdout=writing)
    os.close(writing)
    await command.says("watching")
    os.close(reading)
    assert await command.ended() == 0


def test_missing_stdout_ends_the_command_at_once(tmp_path: Path) -> None:
    closed = subprocess.run(
        ["sh", "-c", f'exec "{sys.executable}" -m aioinformer watch cm --server http://127.0.0.1:1 >&-'],
        cwd=tmp_path,
        env={"PYTHONPATH": str(PROJECT), "HOME": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (closed.returncode, closed.stderr) == (0, "")


@asynccontextmanager
async def unread(
    shell: Shell, server: ApiServer, kubeconfig: Path, *options: str
) -> AsyncIterator[tuple[Command, int]]:
    """Run `watch` with many objects; yield the command, and the end of its stdout, which is not read."""
    server.load("configmaps", [config_map(f"c{number}") for number in range(2000)])
    reading, writing = os.pipe()
    command = await shell.start("watch", "cm", "--kubeconfig", kubeconfig, *options, stdout=writing)
    os.close(writing)
    await command.says("watching")
    yield command, reading
    os.close(reading)


async def test_unread_stdout_does_not_delay_the_end(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    async with unread(shell, server, kubeconfig, "--dump-on-exit") as (command, reading):
        command.process.send_signal(signal.SIGTERM)
        assert await command.ended() == 0
        with os.fdopen(os.dup(reading), "rb") as left:
            assert left.read().endswith(b"}\n"), "the reader finds an incomplete line"


async def test_unread_stdout_does_not_block_a_finished_command(
    shell: Shell, server: ApiServer, kubeconfig: Path
) -> None:
    async with unread(shell, server, kubeconfig, "--until-synced") as (command, _):
        assert await command.ended() == 0


async def test_unread_stdout_does_not_block_the_event_loop(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    async with unread(shell, server, kubeconfig) as (command, _):
        async with server.fault("outage", duration=0.1):
            await command.says("backing_off")
        await command.kill()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
async def test_full_stdout_ends_with_1(shell: Shell, server: ApiServer, kubeconfig: Path) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    command = await shell.start("watch", "cm", "--kubeconfig", kubeconfig, stdout=full)
    os.close(full)
    await command.says("No space left on device")
    assert await command.ended() == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize(
    "arguments", [["--version"], ["watch", "--help"], ["init", "shop", "--group=a.io", "--kind=Cart"]]
)
@pytest.mark.parametrize("stdout", ["full", "closed"])
async def test_output_that_cannot_be_written_is_one_line_and_1(shell: Shell, arguments: list[str], stdout: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    if stdout == "full":
        os.close(writing)
        writing = os.open("/dev/full", os.O_WRONLY)
    command = await shell.start(*arguments, stdout=writing)
    os.close(writing)
    await command.says("; the output is not complete\n")
    assert await command.ended() == 1
    (line,) = bytes(command._stderr).decode().splitlines()
    assert line.startswith("Error: stdout cannot be written to: ")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["watch"], "Missing argument 'RESOURCE'"),
        (["watch", "a/b/c/d"], "is not the name of a resource"),
        (["watch", "pods", "--nonsense"], "No such option"),
        (["watch", "pods", "-o", "xml"], "'xml' is not one of"),
        (["watch", "pods", "-l", "a in ("], "at character 7"),
        (["watch", "pods", "--field-selector", "a"], "write path=value"),
        (["watch", "pods", "--resync", "-1"], "--resync must be 0 (none) or a number of seconds"),
        (["watch", "pods", "--resync", "nan"], "--resync must be"),
        (["watch", "pods", "--exit-after", "0"], "--exit-after must be at least 1"),
        (["watch", "pods", "--timeout", "-1"], "--timeout must be more than 0"),
        (["watch", "pods", "-n", ""], "--namespace must not be empty"),
        (["watch", "pods", "--server", "http://h", "--context", "c"], "omit --context"),
        (["watch", "pods", "--token-file", "t"], "--token-file requires --server"),
        (["watch", "pods", "--server", "nonsense"], "http://"),
        (["watch", "pods", "--server", "http://h", "--token-file", "/nonexistent"], "/nonexistent"),
        (["watch", "pods", "--kubeconfig", "/nonexistent"], "/nonexistent"),
        (["watch", "pods"], "no cluster found"),
        (["serve", "--port", "70000"], "--port"),
        (["serve", "--kubeconfig", "/nonexistent/file"], "the folder does not exist"),
        (["serve", "--load", "nowhere"], "nowhere: there is no such file or folder"),
        (["run", "program:manager", "--log-level", "loud"], "'loud' is not one of 'debug', 'info', 'warning', 'error'"),
        (["check", "program:manager", "--log-level", "loud"], "'loud' is not one of"),
        (["demo", "--duration", "0"], "--duration"),
        (["nonsense"], "No such command"),
    ],
)
async def test_usage_errors_end_with_2(shell: Shell, arguments: list[str], expected: str) -> None:
    finished = await shell.run(*arguments)
    assert (finished.code, finished.lines) == (2, [])
    assert expected in finished.stderr


async def test_invalid_kubeconfig_ends_with_2(shell: Shell, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x00nonsense: [")
    finished = await shell.run("watch", "pods", KUBECONFIG=str(broken))
    assert finished.code == 2
    assert str(broken) in finished.stderr


def test_missing_extra_is_named(tmp_path: Path) -> None:
    program = "import sys; sys.modules['click'] = None; from aioinformer.cli import main; main()"
    finished = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 2
    assert "pip install 'aioinformer[cli]'" in finished.stderr


INTERRUPTED_AT = """
import os, signal, sys
from aioinformer.cli import main

class Interrupts:
    def find_spec(self, name, *rest):
        if name == MODULE:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
main()
"""


@pytest.mark.parametrize(("module", "code"), [("aioinformer.cli.shutdown", 130), ("click", 0)])
def test_interrupt_during_imports_ends_quietly(module: str, code: int) -> None:
    program = f"MODULE = {module!r}\n{INTERRUPTED_AT}"
    finished = subprocess.run(
        [sys.executable, "-c", program, "watch", "v1/pods", "--server", "http://127.0.0.1:1"],
        env={"PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (finished.returncode, finished.stdout, finished.stderr) == (code, "", "")
