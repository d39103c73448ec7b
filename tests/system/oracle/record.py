"""Plays all scripts to client-go's informer and writes recorded.jsonl. Run it by `make record-oracle`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.system.oracle.compare import Record, read, write
from tests.system.oracle.player import Player
from tests.system.oracle.script import FOLDER, Script, load

#: If the machine was busy for longer, the times of a script are unreliable, and it is played again.
DISTURBED = 0.2
ATTEMPTS = 3
#: Seconds between the starts of scripts, which are played together.
STAGGER = 0.03


class ClientGo:
    """The program with client-go's informers.

    Attributes:
        lines: its output, by script.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.lines: dict[str, list[dict[str, Any]]] = {}
        self._process = process
        self._stores: dict[str, asyncio.Future[list[str]]] = {}

    async def read(self) -> None:
        """Read its output until it ends."""
        assert self._process.stdout is not None
        async for text in self._process.stdout:
            line = json.loads(text)
            if line["store"] is None:
                self.lines.setdefault(line["script"], []).append(line)
            else:
                self._stores[line["script"]].set_result(line["store"])

    def start(self, script: Script, url: str) -> None:
        """Start an informer."""
        self._stores[script.name] = asyncio.get_running_loop().create_future()
        self._command({"start": script.name, "url": url, "streaming": script.streaming})

    async def stop(self, script: Script) -> list[str]:
        """Stop an informer and return its store."""
        self._command({"stop": script.name})
        return await asyncio.wait_for(self._stores[script.name], 10)

    def _command(self, command: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")


async def play(client: ClientGo, script: Script) -> Record:
    """Play a script to client-go, and again if the machine was too busy for reliable times."""
    for _ in range(ATTEMPTS):
        client.lines.pop(script.name, None)
        async with Player(script) as player:
            client.start(script, player.url)
            await player.wait_for_end()
            requests = player.requests()
            store = await client.stop(script)
        if player.lateness < DISTURBED:
            break
    delivered: dict[str, list[str]] = {}
    for line in client.lines.get(script.name, ()):
        delivered.setdefault(line["key"], []).append(line["delivered"])
    return Record(requests, delivered, store)


async def record(program: Path, scripts: list[Script]) -> dict[str, Record | Exception]:
    """Play all scripts at once."""
    process = await asyncio.create_subprocess_exec(
        program,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        limit=1 << 24,
        env=os.environ | {"NO_PROXY": "127.0.0.1"},
    )
    client = ClientGo(process)
    reading = asyncio.create_task(client.read())

    async def one(position: int, script: Script) -> Record:
        await asyncio.sleep(position * STAGGER)
        return await play(client, script)

    records = await asyncio.gather(*(one(*each) for each in enumerate(scripts)), return_exceptions=True)
    assert process.stdin is not None
    process.stdin.close()
    await process.wait()
    await reading
    outcome: dict[str, Record | Exception] = {}
    for script, result in zip(scripts, records, strict=True):
        if isinstance(result, BaseException) and not isinstance(result, Exception):
            raise result
        outcome[script.name] = result
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=Path, help="a build of client_go/; built by default, which needs go")
    parser.add_argument("names", nargs="*", help="scripts or groups to record; all by default")
    arguments = parser.parse_args()
    scripts = load()
    chosen = [each for each in scripts if not arguments.names or {each.name, each.group} & set(arguments.names)]
    with tempfile.TemporaryDirectory() as folder:
        program = arguments.program
        if program is None:
            program = Path(folder) / "client-go"
            subprocess.run(["go", "build", "-o", program, "."], cwd=FOLDER / "client_go", check=True)
        outcome = asyncio.run(record(program, chosen))
    failed = {name: result for name, result in outcome.items() if isinstance(result, Exception)}
    new = {name: result for name, result in outcome.items() if not isinstance(result, Exception)}
    write(scripts, (read() if arguments.names else {}) | new)
    print("\n".join(f"{name}: {error!r}" for name, error in failed.items()) or f"{len(chosen)} scripts recorded")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
