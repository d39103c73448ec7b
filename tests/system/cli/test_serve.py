"""`aioinformer serve` as a process."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import pytest

if TYPE_CHECKING:
    from tests.support.shell import Shell


def server_of(kubeconfig: str | Path) -> str:
    content = json.loads(Path(kubeconfig).read_text())
    return str(content["clusters"][0]["cluster"]["server"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_first_line_names_a_working_kubeconfig(shell: Shell, number: signal.Signals) -> None:
    command = await shell.start("serve")
    variable, _, kubeconfig = (await command.line()).partition("=")
    assert variable == "KUBECONFIG"
    watched = await shell.run("watch", "ns", "--until-synced", KUBECONFIG=kubeconfig)
    assert watched.code == 0
    finished = await command.finish(number)
    assert (finished.code, len(finished.lines)) == (0, 1)
    assert not exists(kubeconfig)


async def test_kubeconfig_with_tls_has_the_certificate_authority(shell: Shell) -> None:
    command = await shell.start("serve", "--tls")
    kubeconfig = (await command.line()).partition("=")[2]
    assert server_of(kubeconfig).startswith("https://")
    watched = await shell.run("watch", "ns", "--until-synced", KUBECONFIG=kubeconfig)
    assert watched.code == 0
    await command.finish(signal.SIGTERM)


async def test_kubeconfig_option_keeps_the_file(shell: Shell, tmp_path: Path) -> None:
    finished = await shell.run("serve", "--kubeconfig", "mine", "--duration", "0.2")
    assert finished.lines == [f"KUBECONFIG={shell.home / 'mine'}"]
    assert finished.code == 0
    assert server_of(shell.home / "mine").startswith("http://127.0.0.1:")


async def test_kubeconfig_of_other_clusters_is_not_replaced(shell: Shell, tmp_path: Path) -> None:
    precious = write(tmp_path / "precious", "apiVersion: v1\nkind: Config\nclusters: []\n")
    finished = await shell.run("serve", "--kubeconfig", precious)
    assert (finished.code, finished.lines) == (2, [])
    assert "has other clusters" in finished.stderr
    assert precious.read_text() == "apiVersion: v1\nkind: Config\nclusters: []\n"


async def test_empty_or_own_kubeconfig_is_replaced(shell: Shell, tmp_path: Path) -> None:
    mine = write(tmp_path / "mine", "")
    for _ in range(2):
        finished = await shell.run("serve", "--kubeconfig", mine, "--duration", "0.1")
        assert finished.lines == [f"KUBECONFIG={mine}"]


async def test_port_in_use_is_reported(shell: Shell, tmp_path: Path) -> None:
    first = await shell.start("serve")
    port = server_of((await first.line()).partition("=")[2]).rpartition(":")[2]
    finished = await shell.run("serve", "--port", port)
    assert finished.code == 2
    assert "--port" in finished.stderr


async def test_faults_are_served_only_with_the_option(shell: Shell) -> None:
    answers = []
    for flags in ((), ("--faults",)):
        command = await shell.start("serve", *flags)
        url = server_of((await command.line()).partition("=")[2])
        async with aiohttp.ClientSession() as session, session.get(f"{url}/_faults") as response:
            answers.append(response.status)
        await command.finish(signal.SIGTERM)
    assert answers == [404, 200]


async def test_curl_commands_of_the_help_work(shell: Shell, unused_tcp_port: int) -> None:
    expected = await shell.run("serve", "--help")
    lines = [line.strip() for line in expected.lines if line.strip().startswith("curl ")]
    assert len(lines) == 4
    command = await shell.start("serve", "--faults", "--port", str(unused_tcp_port))
    await command.line()
    codes = []
    for line in lines:
        here = line.replace("curl ", "curl -s -o answer -w '%{http_code}' ", 1).replace(":8001", f":{unused_tcp_port}")
        done = await asyncio.create_subprocess_shell(here, cwd=shell.home, stdout=asyncio.subprocess.PIPE)
        codes.append((await done.communicate())[0].decode())
    assert codes == ["200", "201", "200", "201"]
    await command.finish(signal.SIGTERM)


async def test_requests_of_other_origins_are_refused(shell: Shell) -> None:
    command = await shell.start("serve", "--faults")
    url = server_of((await command.line()).partition("=")[2])
    for headers in ({"Host": "rebound.example"}, {"Origin": "https://site.example"}):
        assert await status_of(f"{url}/api/v1/namespaces", **headers) == 403
        assert await status_of(f"{url}/_faults", **headers) == 403
    assert await status_of(f"{url}/api/v1/namespaces", Host="localhost:1") == 200
    await command.finish(signal.SIGTERM)


@pytest.mark.parametrize(
    ("flags", "warned"),
    [
        (["--tls"], []),
        (["--host", "0.0.0.0"], ["--host 0.0.0.0 is reachable from other machines", "add --tls"]),
        (["--host", "0.0.0.0", "--tls"], ["--host 0.0.0.0 is reachable from other machines"]),
    ],
)
async def test_token_is_required_beyond_loopback_and_with_tls(
    shell: Shell, flags: list[str], warned: list[str]
) -> None:
    command = await shell.start("serve", "--faults", *flags)
    kubeconfig = (await command.line()).partition("=")[2]
    url = server_of(kubeconfig)
    for path in ("/api/v1/namespaces", "/_faults"):
        assert await status_of(url + path) == 401
        assert await status_of(url + path, Authorization="Bearer wrong") == 401
    for path in ("/readyz", "/livez", "/healthz", "/version"):
        assert await status_of(url + path) == 200
    watched = await shell.run("watch", "ns", "--until-synced", KUBECONFIG=kubeconfig)
    assert watched.code == 0
    finished = await command.finish(signal.SIGTERM)
    for text in ["WARNING", *warned] if warned else []:
        assert text in finished.stderr
    assert ("WARNING" in finished.stderr) is bool(warned)
    assert ("add --tls" in finished.stderr) is ("add --tls" in warned)


async def test_written_files_are_private(shell: Shell) -> None:
    flags = ("--save", "saved", "--kubeconfig", "mine")
    assert (await shell.run("serve", *flags, "--duration", "0.2")).code == 0
    for name in ("mine", "saved/namespaces.json"):
        assert mode(shell.home / name) == 0o600
    assert mode(shell.home / "saved") == 0o700


async def test_symbolic_links_are_not_followed(shell: Shell, tmp_path: Path) -> None:
    (shell.home / "link").symlink_to(tmp_path)
    finished = await shell.run("serve", "--save", "link", "--duration", "0.1")
    assert (finished.code, finished.lines) == (2, [])
    assert "link: " in finished.stderr
    assert "name the f" in finished.stderr


async def test_saved_state_is_loaded_by_the_next_run(shell: Shell, tmp_path: Path) -> None:
    manifest = write(tmp_path / "a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n")
    state = tmp_path / "state"
    first = await shell.run("serve", "--load", manifest, "--save", state, "--duration", "0.1")
    assert first.code == 0
    second = await shell.start("serve", "--load", state)
    kubeconfig = (await second.line()).partition("=")[2]
    watched = await shell.run("watch", "cm", "-A", "-o", "jsonl", "--until-synced", KUBECONFIG=kubeconfig)
    assert json.loads(watched.lines[0])["key"] == "shop/a"
    await second.finish(signal.SIGTERM)


async def test_signal_ends_the_server_despite_open_watches(shell: Shell) -> None:
    command = await shell.start("serve")
    kubeconfig = (await command.line()).partition("=")[2]
    watching = await shell.start("watch", "ns", KUBECONFIG=kubeconfig)
    await watching.until("synced")
    assert (await command.finish(signal.SIGTERM)).code == 0
    await watching.says("backing_off")
    assert (await watching.finish(signal.SIGTERM)).code == 0


async def status_of(url: str, **headers: str) -> int:
    """Send a request and return the status of the response."""
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers, ssl=False) as response:
        return response.status


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def exists(name: str) -> bool:
    return Path(name).exists()


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path
