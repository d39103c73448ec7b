"""Exec plugins: their input, their output, and when they run."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import HttpTransport
from aioinformer.errors import TransportError, UsageError
from aioinformer.transport import HttpRequest
from aioinformer.transport.auth.exec_plugin import ExecCredentials, exec_plugin
from tests.support.loopback import open_files

if TYPE_CHECKING:
    from collections.abc import Callable

    MakeSection = Callable[..., dict[str, Any]]

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"

PREAMBLE = """\
import json, os, sys, time
with open(os.environ["RUNS"], "a") as file:
    file.write("x")
runs = os.path.getsize(os.environ["RUNS"])
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
def answer(**status):
    print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


@pytest.fixture
def section(tmp_path: Path) -> MakeSection:
    """Write the section of a plugin that runs Python code, which can use `answer`, `info` and the number of `runs`."""

    def make(code: str, **settings: Any) -> dict[str, Any]:
        script = tmp_path / "plugin.py"
        script.write_text(PREAMBLE + textwrap.dedent(code))
        env = [{"name": "RUNS", "value": str(tmp_path / "runs")}]
        return {"command": sys.executable, "args": [str(script)], "env": env, "apiVersion": V1, **settings}

    return make


def credentials(section: dict[str, Any], cluster: dict[str, Any] | None = None, **options: Any) -> ExecCredentials:
    return ExecCredentials(exec_plugin(section, cluster or {}, "users[me]"), **options)


async def test_plugin_continues_after_its_request_times_out(section: MakeSection, tmp_path: Path) -> None:
    started, go_on = tmp_path / "started", tmp_path / "go on"
    for pipe in (started, go_on):
        os.mkfifo(pipe)
    code = f"open({str(started)!r}, 'w').write('x'); open({str(go_on)!r}).read(); answer(token=f'run-{{runs}}')"
    source = credentials(section(code), timeout=300)
    waiting = asyncio.create_task(source.current(), name="request")
    assert await asyncio.to_thread(started.read_text) == "x"
    waiting.cancel()
    await asyncio.wait({waiting})
    await asyncio.to_thread(go_on.write_text, "x")
    async with asyncio.timeout(60):
        assert (await source.current()).authorization == "Bearer run-1"


async def test_hanging_plugin_is_killed_when_the_transport_closes(section: MakeSection, tmp_path: Path) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    code = f"open({str(started)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    async with HttpTransport("http://127.0.0.1:9", credentials=credentials(section(code), timeout=300)) as transport:
        waiting = asyncio.create_task(transport.request(HttpRequest("/")), name="request")
        plugin = int(await asyncio.to_thread(started.read_text))
        waiting.cancel()
        await asyncio.wait({waiting})
        os.kill(plugin, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(plugin, 0)
    assert [task.get_name() for task in asyncio.all_tasks() if "renewal" in task.get_name()] == []
    with pytest.raises(UsageError, match="closed"):
        await transport.request(HttpRequest("/"))


@pytest.mark.parametrize("timestamp", ["2030-01-01T00:10:00Z", "2030-01-01T01:10:00.123456789+01:00"])
async def test_plugin_runs_again_before_credentials_expire(section: MakeSection, timestamp: str) -> None:
    clock = [1893456000.0]
    source = credentials(
        section(f"answer(token=f'run-{{runs}}', expirationTimestamp={timestamp!r})"), now=lambda: clock[0]
    )
    tokens = []
    for second in (0, 530, 545):
        clock[0] = 1893456000.0 + second
        tokens.append((await source.current()).authorization)
    assert tokens == ["Bearer run-1", "Bearer run-1", "Bearer run-2"]


async def test_plugin_is_not_interactive(section: MakeSection, tmp_path: Path) -> None:
    said = tmp_path / "said"
    code = f"open({str(said)!r}, 'w').write(json.dumps(info) + sys.stdin.read()); answer(token='abc')"
    await credentials(section(code), {"server": "https://host"}).current()
    assert json.loads(said.read_text()) == {"apiVersion": V1, "kind": "ExecCredential", "spec": {"interactive": False}}


async def test_plugin_gets_cluster_information_on_request(section: MakeSection, tmp_path: Path) -> None:
    said = tmp_path / "said"
    (tmp_path / "ca.crt").write_text("PEM")
    cluster = {
        "server": "https://host",
        "certificate-authority": str(tmp_path / "ca.crt"),
        "tls-server-name": "name",
        "extensions": [
            {"name": "other", "extension": 1},
            {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "me"}},
        ],
    }
    code = f"open({str(said)!r}, 'w').write(json.dumps(info['spec']['cluster'])); answer(token='abc')"
    await credentials(section(code, provideClusterInfo=True), cluster).current()
    assert json.loads(said.read_text()) == {
        "server": "https://host",
        "certificate-authority-data": b64encode(b"PEM").decode(),
        "tls-server-name": "name",
        "config": {"audience": "me"},
    }


async def test_plugin_may_write_much_to_both_outputs(section: MakeSection) -> None:
    source = credentials(section("sys.stderr.write('e' * 1_000_000); print(' ' * 1_000_000); answer(token='abc')"))
    assert (await source.current()).authorization == "Bearer abc"


FORK = """
import subprocess
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], close_fds=False{options})
open({path!r}, "w").write(str(child.pid))
"""


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"  # orphans may stay zombies
    except (ProcessLookupError, FileNotFoundError):
        return False


async def test_child_process_may_keep_the_outputs_open(section: MakeSection, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    before = open_files()
    source = credentials(section(FORK.format(options="", path=str(path)) + "answer(token='abc')"), timeout=30)
    assert (await source.current()).authorization == "Bearer abc"
    assert open_files() == before
    pid = int(path.read_text())
    os.kill(pid, 0)  # a child process of a successful plugin keeps running
    os.kill(pid, 9)


@pytest.mark.parametrize("end", ["closed", "too much output"])
async def test_cancelled_plugin_is_killed_with_its_children(section: MakeSection, tmp_path: Path, end: str) -> None:
    path, ready = tmp_path / "pid", tmp_path / "ready"
    os.mkfifo(ready)
    then = "while True: print('x' * 1000)" if end == "too much output" else "time.sleep(600)"
    before = open_files()
    code = FORK.format(options=", stdout=subprocess.DEVNULL", path=str(path))
    own = f"open({str(tmp_path / 'own')!r}, 'w').write(str(os.getpid())); open({str(ready)!r}, 'w').write('x')"
    source = credentials(section(f"{code}\n{own}\n{then}"), timeout=300)
    waiting = asyncio.ensure_future(source.current())
    assert await asyncio.to_thread(ready.read_text) == "x"
    if end == "closed":
        await source.aclose()
    await asyncio.wait({waiting})
    assert isinstance(waiting.exception(), TransportError)
    with pytest.raises(ProcessLookupError):  # reaped: no zombie
        os.kill(int((tmp_path / "own").read_text()), 0)
    async with asyncio.timeout(50):
        while is_running(int(path.read_text())):  # noqa: ASYNC110 - not a child of this process
            await asyncio.sleep(0.01)
    assert open_files() == before


@pytest.mark.parametrize("turns", range(4))
async def test_plugin_that_is_cancelled_while_it_starts_is_killed_with_its_children(
    section: MakeSection, tmp_path: Path, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, ready = tmp_path / "pid", tmp_path / "ready"
    os.mkfifo(ready)
    code = FORK.format(options=", stdout=subprocess.DEVNULL", path=str(path))
    source = credentials(section(f"{code}\nopen({str(ready)!r}, 'w').write('x')\ntime.sleep(600)"), timeout=300)
    is_started = False

    class Popen(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **settings: Any) -> None:
            nonlocal is_started
            super().__init__(*args, **settings)
            is_started = True

    monkeypatch.setattr(subprocess, "Popen", Popen)
    waiting = asyncio.ensure_future(source.current())
    while not is_started:  # noqa: ASYNC110 - the event would end the wait some turns later
        await asyncio.sleep(0)
    for _ in range(turns):
        await asyncio.sleep(0)
    assert ready.read_text() == "x"  # blocks the event loop, which has not connected all outputs
    await source.aclose()
    await asyncio.wait({waiting})
    assert isinstance(waiting.exception(), TransportError)
    async with asyncio.timeout(50):
        while is_running(int(path.read_text())):  # noqa: ASYNC110 - not a child of this process
            await asyncio.sleep(0.01)


async def test_repr_hides_arguments_and_variables_of_a_plugin(section: MakeSection) -> None:
    settings = section("answer(token='abc')", env=[{"name": "SECRET", "value": "s3cret-value"}])
    settings["args"].append("--client-secret=s3cret")
    plugin = exec_plugin(settings, {"proxy-url": "http://me:s3cret@proxy"}, "users[me]")
    assert "s3cret" not in f"{plugin!r} {plugin} {ExecCredentials(plugin)!r}"


async def test_plugin_is_killed_after_its_timeout(section: MakeSection) -> None:
    with pytest.raises(TransportError, match=r"printed no credentials within 0\.1 s"):
        await credentials(section("time.sleep(600)"), timeout=0.1).current()


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("print('half', file=sys.stderr); sys.exit('log in first')", "ended with status 1: log in first"),
        ("print('s3cret')", "not JSON"),
        ("info['apiVersion'] = 'v2'; answer(token='s3cret')", f"another version than {V1}"),
        ("answer()", "neither a token nor a client certificate"),
        ("answer(clientCertificateData='s3cret')", "without its key"),
        ("answer(token='s3cret', expirationTimestamp='soon')", "not RFC 3339"),
        ("answer(token='s3cret', expirationTimestamp='2030-01-01T00:00:00')", "without a time zone"),
        ("answer(token='s3cret\\nX-Other: 1')", "not one token"),
        ("answer(token='s3cret', expirationTimestamp=['s3cret'])", "status.expirationTimestamp that is not a string"),
        ("answer(token={'s3cret': 1})", "status.token that is not a string"),
        ("sys.stdout.buffer.write(b'\\xff\\xfes3cret')", "not JSON"),
        ("print('{\"kind\": ' + '1' * 5000 + '}')", "not JSON"),
        (
            "print(json.dumps({'kind': 'ExecCredential', 'apiVersion': info['apiVersion'], 'status': 's3cret'}))",
            "neither",
        ),
        ("while True: print('s3cret')", "printed more than 1048576 bytes"),
        ("os.kill(os.getpid(), 9)", "ended with status -9"),
    ],
)
async def test_failed_plugin_is_named_without_its_output(section: MakeSection, code: str, message: str) -> None:
    with pytest.raises(TransportError, match=message) as caught:
        await credentials(section(code)).current()
    assert sys.executable in str(caught.value)
    assert "s3cret" not in repr((caught.value, caught.value.__cause__))


async def test_plugin_deleted_later_is_a_transport_error(section: MakeSection, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    source = credentials(section("", command=str(program)))
    program.unlink()
    with pytest.raises(TransportError, match="cannot be run: No such file"):
        await source.current()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"command": None}, r"users\[me\]\.exec\.command is missing"),
        ({"command": "no-such-program"}, r"command 'no-such-program' is not an executable .* install it"),
        ({"command": "no-such-program", "installHint": "Get it from us."}, "Get it from us"),
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, r"apiVersion is .*v1alpha1'; it must be one of"),
        ({"interactiveMode": "Always"}, "interactiveMode is Always"),
        ({"interactiveMode": "Sometimes"}, "interactiveMode must be one of Never, IfAvailable, Always"),
        ({"env": [{"value": "one"}]}, r"env\[0\]\.name is missing"),
    ],
)
def test_invalid_section_raises_with_a_remedy(section: MakeSection, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        credentials(section("", **settings))
