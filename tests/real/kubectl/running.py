"""Runs kubectl and reads what it prints."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

PATIENCE = 120.0


class KubectlError(AssertionError):
    """kubectl has failed; the text is its stderr."""


@dataclass(frozen=True)
class Kubectl:
    """Runs kubectl against the server of the test.

    Attributes:
        program: path of kubectl.
        environment: the complete environment.
        directory: the current folder of kubectl, None for that of this process.
    """

    program: str
    environment: dict[str, str]
    directory: Path | None = None

    async def __call__(self, *arguments: str, stdin: Any = None) -> str:
        """Run a command, and return its output.

        Args:
            arguments: of kubectl.
            stdin: an object to write to standard input as JSON.
        """
        async with self.running(*arguments, stdin=stdin is not None) as process:
            data = None if stdin is None else json.dumps(stdin).encode()
            async with asyncio.timeout(PATIENCE):
                out, err = await process.communicate(data)
        if process.returncode:
            raise KubectlError(err.decode())
        return out.decode()

    async def json(self, *arguments: str) -> Any:
        """Return the output with `-o json`, decoded."""
        return json.loads(await self(*arguments, "-o", "json"))

    @asynccontextmanager
    async def running(
        self, *arguments: str, stdin: bool = False, variables: Mapping[str, str] | None = None
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        """Start a command for the length of a block, and kill it at the end.

        Args:
            arguments: of kubectl.
            stdin: whether standard input is a pipe.
            variables: to add to the environment.
        """
        process = await asyncio.create_subprocess_exec(
            self.program,
            *arguments,
            stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**self.environment, **(variables or {})},
            cwd=self.directory,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()


async def next_line(process: asyncio.subprocess.Process) -> str:
    """Return the next line that a running kubectl prints."""
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        return (await process.stdout.readline()).decode().rstrip("\n")


def environment(home: Path, kubeconfig: Path) -> dict[str, str]:
    """Return the complete environment of kubectl.

    Args:
        home: a new folder; kubectl caches discovery and OpenAPI in it, by host and port of the server.
        kubeconfig: for the server.
    """
    return {"HOME": str(home), "KUBECONFIG": str(kubeconfig), "PATH": os.defpath, "TMPDIR": str(home)}


def for_namespace(kubeconfig: Path, namespace: str, path: Path) -> str:
    """Write a kubeconfig for a server with fixed names, so that output does not depend on the server.

    Returns:
        The server's URL.
    """
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    told = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": cluster}],
        "users": [{"name": "admin", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "cluster", "user": "admin", "namespace": namespace}}],
        "current-context": "test",
    }
    path.write_text(yaml.safe_dump(told))
    server: str = cluster["server"]
    return server
