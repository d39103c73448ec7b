"""A hostile server or tenant cannot control the terminal with names, versions, keys, labels or errors.

A correct server refuses such names. But tenants choose map keys, labels of custom resources and messages, and the
server may be malicious.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.support.shell import Finished, Shell

TITLE, ERASE = "\x1b]0;owned\x07", "\x1b[2K\x1b[1A\r"
FORGED = f"{ERASE}12:00:00.000  delete  default/important\n"
INVISIBLE = "\x9b31m\u202e\u2066\u2028\u2029\x85\x7f\ufeff"
EVIL = f"{TITLE}{FORGED}{INVISIBLE}"


def config_map(name: str, version: str, **data: str) -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": f"default{EVIL}",
        "uid": f"uid{EVIL}",
        "resourceVersion": version,
        "labels": {EVIL: EVIL},
    }
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data}


class HostileServer:
    """Serves one ConfigMap that changes and is deleted, or refuses each request with a hostile message."""

    def __init__(self, refusal: int = 0) -> None:
        self._refusal = refusal
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if self._refusal:
            return _json({"kind": "Status", "code": self._refusal, "reason": EVIL, "message": EVIL}, self._refusal)
        if "sendInitialEvents" in request.query:
            return _json({"kind": "Status", "code": 422, "reason": "Invalid", "message": EVIL}, 422)
        if "watch" not in request.query:
            items = [config_map(f"a{EVIL}", "10", **{EVIL: "1"})]
            head = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "10"}}
            return _json({**head, "items": items})
        stream = web.StreamResponse(headers={"Content-Type": "application/json"})
        await stream.prepare(request)
        for kind, obj in (
            ("MODIFIED", config_map(f"a{EVIL}", "11", **{EVIL: "2", f"other{EVIL}": EVIL})),
            ("DELETED", config_map(f"a{EVIL}", "12")),
            ("ADDED", {"kind": "ConfigMap", "metadata": {"name": [EVIL]}, "data": EVIL}),
            ("ADDED", config_map(f"b{EVIL}", "14")),
        ):
            await stream.write(json.dumps({"type": kind, "object": obj}, ensure_ascii=False).encode() + b"\n")
        return stream


class UnreadableNames(HostileServer):
    """Serves a list with three objects whose names are unreadable, and one with a readable name."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if "sendInitialEvents" in request.query:
            return _json({"kind": "Status", "code": 422, "reason": "Invalid"}, 422)
        if "watch" in request.query:
            stream = web.StreamResponse()
            await stream.prepare(request)
            return stream
        names = (b"good", b"\xff", b"\\ud800", b"\xfe")
        items = b",".join(b'{"metadata":{"name":"%b","namespace":"d","resourceVersion":"1"}}' % name for name in names)
        head = b'{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"10"},"items":['
        return web.Response(body=head + items + b"]}", content_type="application/json")


def _json(document: Any, status: int = 200) -> web.Response:
    body = json.dumps(document, ensure_ascii=False).encode()
    return web.Response(body=body, status=status, content_type="application/json")


@asynccontextmanager
async def serving(server: HostileServer) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get("/{tail:.*}", server.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def assert_harmless(finished: Finished) -> None:
    # splitlines() would also split at separators that an attacker may use.
    for line in [*finished.lines, *finished.stderr.split("\n")]:
        assert line.isprintable(), line


@pytest.mark.parametrize("output", ["text", "jsonl", "json", "summary"])
async def test_names_and_keys_cannot_control_the_terminal(shell: Shell, output: str) -> None:
    async with serving(HostileServer()) as url:
        finished = await shell.run(
            *("watch", "v1/configmaps", "-A", "--server", url, "-o", output, "--exit-after", "3", "--dump-on-exit")
        )
    assert finished.code == 0
    assert_harmless(finished)
    starts = [line[14:20] for line in finished.lines if line.startswith(("0", "1", "2"))]
    assert starts == (["add   ", "synced", "update", "delete", "add   "] if output == "text" else [])


async def test_json_lines_keep_escaped_values(shell: Shell) -> None:
    async with serving(HostileServer()) as url:
        finished = await shell.run("watch", "v1/configmaps", "-A", "--server", url, "-o", "json", "--until-synced")
    (add, _) = finished.events
    assert add["key"] == f"default{EVIL}/a{EVIL}"
    assert add["object"]["metadata"]["labels"] == {EVIL: EVIL}
    assert add["object"]["data"] == {EVIL: "1"}


@pytest.mark.parametrize("output", ["text", "jsonl", "json", "summary"])
async def test_objects_with_unreadable_names_are_counted(shell: Shell, output: str) -> None:
    async with serving(UnreadableNames()) as url:
        finished = await shell.run(*("watch", "v1/configmaps", "-A", "--server", url, "-o", output, "--until-synced"))
    assert finished.code == 0
    assert (
        "configmaps: 3 versions of objects were not printed, because they could not be decoded; an object"
        in finished.stderr
    )
    assert_harmless(finished)


@pytest.mark.parametrize("status", [403, 500, 400])
@pytest.mark.parametrize("resource", ["v1/configmaps", "widgets"])
async def test_refusals_cannot_control_the_terminal(shell: Shell, resource: str, status: int) -> None:
    async with serving(HostileServer(status)) as url:
        finished = await shell.run(
            *("watch", resource, "--server", url, "--until-synced", "--timeout", "2", "--field-selector", "a=b")
        )
    assert finished.code == (2 if status == 400 and resource != "widgets" else 1)
    assert "owned" in finished.stderr
    assert_harmless(finished)


@pytest.mark.parametrize("arguments", [("watch", EVIL), ("watch", "pods", "-o", EVIL), (EVIL,), (f"--{EVIL}",)])
async def test_arguments_in_errors_cannot_control_the_terminal(shell: Shell, arguments: tuple[str, ...]) -> None:
    finished = await shell.run(*arguments)
    assert finished.code == 2
    assert_harmless(finished)


async def test_hostile_kubeconfig_cannot_control_the_terminal(shell: Shell) -> None:
    path = shell.home / "config"
    path.write_text(json.dumps({"current-context": EVIL, "contexts": [{"name": "a", "context": {"cluster": EVIL}}]}))
    for more in ((), ("--context", "a")):
        finished = await shell.run("watch", "pods", "--kubeconfig", path, *more)
        assert finished.code == 2
        assert_harmless(finished)


async def test_help_without_a_command_keeps_its_lines(shell: Shell) -> None:
    finished = await shell.run()
    assert finished.code in (0, 2)  # before click 8.2, help is no error
    shown = "\n".join(finished.lines) + finished.stderr
    assert "\\x" not in shown
    assert "\n  watch       Run an informer" in shown
