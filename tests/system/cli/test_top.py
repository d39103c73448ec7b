"""`aioinformer run --debug-port`, its report at SIGUSR1, and `aioinformer top`."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import sys
from io import StringIO
from typing import TYPE_CHECKING

import pytest
from aiohttp import web
from rich.console import Console

from aioinformer.cli.controllers.top import LISTS, Screen
from aioinformer.controller import Manager, Request, TerminalError
from aioinformer.models import core_v1
from tests.support.limits import ignore_late_loops
from tests.support.loopback import free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from aioinformer.testing import ApiServer
    from tests.support.shell import Shell

PROGRAM = """
from aioinformer.controller import Manager, TerminalError
from aioinformer.models import core_v1
manager = Manager("shop")
@manager.controller(core_v1.CONFIG_MAPS)
async def maps(request):
    raise TerminalError("the colour is not known")
"""


def config_map(name: str) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "default"}}


@pytest.fixture
async def address(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    ignore_late_loops(monkeypatch)
    manager = Manager("shop", client=server.url, debug_port=free_port())

    @manager.controller(core_v1.CONFIG_MAPS)
    async def maps(request: Request) -> None:
        raise TerminalError("the \x1b[31mcolour is not known")

    server.create("configmaps", config_map("web"))
    server.create("configmaps", config_map("api"))
    async with manager:
        async with asyncio.timeout(50):
            while len(manager.snapshot()["controllers"]["maps"]["parked"]) < 2:  # noqa: ASYNC110 - real time
                await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{manager.debug_port}/"


async def test_top_prints_lines_without_a_terminal(shell: Shell, address: str) -> None:
    done = await shell.run("top", "--attach", address, "--duration", "0.5")
    assert done.code == 0
    first, problem, controller = done.lines[:3]
    assert first == "shop runs, 1 problem"
    assert problem.startswith("error: 2 keys are parked in maps; default/")
    assert problem.endswith(f"See {address}troubleshooting#parked")
    assert "\x1b" not in problem
    assert controller.startswith(
        "controller maps: working, 0/4 running, 0 ready, 0 delayed, 0 failing, 2 parked, 0 waiting;"
    )


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("http://127.0.0.1:9/", "does not answer"),
        ("127.0.0.1:80", "--attach must be an URL"),
    ],
)
async def test_top_says_what_is_wrong_with_its_address(shell: Shell, url: str, text: str) -> None:
    done = await shell.run("top", "--attach", url)
    assert done.code == 2
    assert text in done.stderr


async def test_top_sends_the_token_of_a_file_to_the_page_alone(shell: Shell, tmp_path: Path) -> None:
    seen: list[str] = []

    async def page(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization", ""))
        if request.path.startswith("/away"):
            raise web.HTTPFound("/elsewhere/api/events")
        return web.json_response({"error": "who are you?"}, status=401)

    application = web.Application()
    application.add_routes([web.get("/{path:.*}", page)])
    runner = web.AppRunner(application)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    (tmp_path / "token").write_text("abc\n")
    address, token = f"http://127.0.0.1:{port}", ("--token-file", str(tmp_path / "token"))
    refused, unknown, away, clear, missing = [
        await shell.run("top", "--attach", *arguments)
        for arguments in (
            (f"{address}/", *token),
            (f"{address}/",),
            (f"{address}/away", *token),
            ("http://example.com/", *token),
            (f"{address}/", "--token-file", str(tmp_path / "none")),
        )
    ]
    await runner.cleanup()
    assert seen == ["Bearer abc", "", "Bearer abc"]
    assert "refuses: 401 who are you?; the token is not accepted" in refused.stderr
    assert "pass --token-file" in unknown.stderr
    assert "is no debug page: 302" in away.stderr
    assert "in clear text" in clear.stderr
    assert "token file" in missing.stderr
    assert {each.code for each in (refused, unknown, away, clear, missing)} == {2}


async def test_top_of_another_server_is_refused(shell: Shell, server: ApiServer) -> None:
    done = await shell.run("top", "--attach", server.url)
    assert done.code == 2
    assert "is no debug page: 404" in done.stderr


class Terminal:
    """A command on a terminal: what it shows, and the keys that are pressed."""

    def __init__(self) -> None:
        self.main, self.terminal = pty.openpty()
        self._found, self._changed = bytearray(), asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self.main, self._read)

    async def start(self, *arguments: object, module: str = "aioinformer") -> asyncio.subprocess.Process:
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
        command = map(str, (sys.executable, "-m", module, *arguments))
        place = self.terminal
        process = await asyncio.create_subprocess_exec(
            *command, stdin=place, stdout=place, stderr=place, env=environment
        )
        os.close(place)
        return process

    def _read(self) -> None:
        try:
            self._found.extend(os.read(self.main, 65536))
        except OSError:
            self._loop.remove_reader(self.main)
        self._changed.set()

    async def seen(self, pattern: str) -> None:
        async with asyncio.timeout(50):
            while not re.search(pattern, self._found.decode(errors="replace")):
                self._changed.clear()
                await self._changed.wait()
        self._found.clear()

    def press(self, keys: bytes) -> None:
        os.write(self.main, keys)

    def close(self) -> None:
        self._loop.remove_reader(self.main)
        os.close(self.main)


@pytest.fixture
async def terminal() -> AsyncIterator[Terminal]:
    opened = Terminal()
    yield opened
    opened.close()


async def test_top_follows_a_key_and_quits_clean_on_a_terminal(address: str, terminal: Terminal) -> None:
    process = await terminal.start("top", "--attach", address, "--interval", 1)
    try:
        await terminal.seen("2 keys are parked")
        terminal.press(b"s")
        await terminal.seen("in the order of key")
        terminal.press(b"\r")
        await terminal.seen("default/api of maps[\\s\\S]*state: [\\s\\S]*parked")
        terminal.press(b"q")
        assert await asyncio.wait_for(process.wait(), 200) == 0
    finally:
        if process.returncode is None:
            process.kill()


async def test_top_shows_the_page_where_terminals_have_no_modes(address: str, terminal: Terminal) -> None:
    as_windows = ("--as-windows", "command", "top", "--attach", address, "--interval", 1)
    process = await terminal.start(*as_windows, module="tests.system.platforms.program")
    try:
        await terminal.seen("2 keys are parked")
        terminal.press(b"\n")  # Ctrl-C
        assert await asyncio.wait_for(process.wait(), 200) == 0
    finally:
        if process.returncode is None:
            process.kill()


async def test_watch_on_a_terminal_shows_the_progress_of_the_first_list(
    server: ApiServer, kubeconfig: Path, terminal: Terminal
) -> None:
    server.create("configmaps", config_map("web"))
    async with server.fault("latency", seconds=60.0, resources=["configmaps"], verbs=["list", "watch"]):
        process = await terminal.start("watch", "v1/configmaps", "-A", "--kubeconfig", kubeconfig)
        try:
            await terminal.seen(r"\r\x1b\[2Kconfigmaps: \d+ objects after \d+ s \(\d+ a second\)\r")
            process.terminate()
            await asyncio.wait_for(process.wait(), 200)
        finally:
            if process.returncode is None:
                process.kill()


def test_remedy_is_shown_beside_a_long_problem() -> None:
    problem = {"severity": "error", "text": "2 keys are parked in maps; default/web: the colour of the page " * 3}
    counts = dict.fromkeys(("ready", "delayed", "failing_keys", "parked_keys", "waiting_keys"), 0)
    maps = {"phase": "working", "running": [], "workers": 4, "results": {}} | counts
    screen = Screen("", {"problems": [problem | {"remedy": "Correct the object."}], "controllers": {"maps": maps}})
    with (console := Console(width=100, file=StringIO())).capture() as shown:
        console.print(screen.render(24))
    assert "\n  Correct the object." in shown.get()
    assert "0 parked, 0 waiting; no results yet" in shown.get()


def test_screen_says_what_it_leaves_out_and_for_what_a_standby_waits() -> None:
    problem = {
        "severity": "error",
        "text": "3,000 keys fail.",
        "remedy": "Correct the code.",
        "see": "reconciler-fails",
    }
    row = {"key": "a", "controller": "maps", "state": "delayed", "attempts": 3, "error": "no", "own_writes": ""}
    standby = "This replica is a standby: it waits for Lease default/shop, which web-2 holds."
    report = {"manager": "shop", "running": True, "standby": standby, "problems": [problem] * 9, "controllers": {}}
    report |= {"docs": "https://runbooks.test/shop"}
    screen = Screen("", report | {"keys": {"failing": [row | {"causes": []}] * 50}, "key_counts": {"failing": 3_000}})
    with (console := Console(width=100, file=StringIO())).capture() as shown:
        console.print(screen.render(24))
    text = shown.get()
    assert "failing (50 of 3,000), in the order of page" in text
    assert "and 5 more problems" in text
    assert f"standby: {standby}" in text
    first, second, third, *_ = screen.lines()
    assert (first, second) == ("shop is a standby, 9 problems", standby)
    assert third.endswith("Correct the code. See https://runbooks.test/shop#reconciler-fails")


def test_keys_of_the_terminal_choose_what_is_shown() -> None:
    row = {"controller": "maps", "state": "parked", "error": "", "own_writes": "", "causes": []}
    rows = [{**row, "key": name, "attempts": count} for name, count in (("b", 3), ("a", 1), ("c", 2))]
    screen = Screen("", {"keys": {"parked": rows}})
    assert [each["key"] for each in screen.rows()] == ["b", "a", "c"]
    screen.press("sort")
    assert [each["key"] for each in screen.rows()] == ["a", "b", "c"]
    screen.press("sort")
    assert [each["key"] for each in screen.rows()] == ["b", "c", "a"]
    for _ in range(5):
        screen.press("down")
    screen.press("enter")
    assert screen.followed == ("maps", "a")
    screen.press("escape")
    assert screen.followed != ("maps", "a")
    for _ in LISTS:
        screen.press("list")
    assert screen.shown == "parked"


async def test_run_serves_a_page_and_writes_its_report_at_sigusr1(
    shell: Shell, server: ApiServer, kubeconfig: Path, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM)
    server.create("configmaps", config_map("web"))
    report, port = tmp_path / "report.json", free_port()
    command = (sys.executable, "-m", "aioinformer", "run", "shop:manager", "--kubeconfig", kubeconfig)
    for options in (("--debug-port", port, "--report-file", report), ()):
        process = await asyncio.create_subprocess_exec(
            *map(str, (*command, *options)), cwd=tmp_path, stderr=asyncio.subprocess.PIPE
        )
        assert process.stderr is not None

        async def line_with(text: str, stderr: asyncio.StreamReader = process.stderr) -> str:
            async with asyncio.timeout(50):
                while text not in (line := (await stderr.readline()).decode()):
                    assert line, f"the program ended before {text!r}"
            return line

        try:
            if options:
                await line_with(f"the debug page is at http://127.0.0.1:{port}/")
            await line_with("parked until an input changes")
            process.send_signal(10)
            line = await line_with("report")
            found = json.loads(report.read_text() if options else line.partition(" report: ")[2])
            assert any("1 key is parked in maps" in each["text"] for each in found["problems"])
            assert (found["recording"] is None) is not bool(options)
            process.terminate()
            assert await asyncio.wait_for(process.wait(), 200) == 0
        finally:
            if process.returncode is None:
                process.kill()


async def test_page_options_need_a_port(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM)
    command = (sys.executable, "-m", "aioinformer", "run", "shop:manager", "--debug-retry")
    process = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, stderr=asyncio.subprocess.PIPE)
    _, stderr = await asyncio.wait_for(process.communicate(), 200)
    assert (process.returncode, b"need --debug-port" in stderr) == (2, True)
