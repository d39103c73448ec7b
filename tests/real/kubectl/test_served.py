"""kubectl with `aioinformer serve` and the kubeconfig that it writes."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import pytest

from tests.support.shell import Shell

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    running = Shell(tmp_path)
    yield running
    await running.close()


@pytest.mark.parametrize("flags", [[], ["--tls"], ["--host", "0.0.0.0", "--tls"]])
async def test_kubectl_works_with_the_kubeconfig_of_serve(shell: Shell, kubectl_program: str, flags: list[str]) -> None:
    command = await shell.start("serve", *flags)
    kubeconfig = (await command.line()).partition("=")[2]
    done = await asyncio.create_subprocess_exec(
        *(kubectl_program, "--kubeconfig", kubeconfig, "create", "configmap", "a", "-o", "name"),
        cwd=shell.home,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await done.communicate()
    assert (said.decode(), done.returncode) == ("configmap/a\n", 0)
    await command.finish(signal.SIGTERM)
