"""The load servers, each a process on a core of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from peers import Peers
from pods import encoded

HERE = Path(__file__).parent
#: The version of the first pod of the server that writes event by event, whose versions have eight digits.
_FIRST_VERSION = 10_000_001


@dataclass(frozen=True, slots=True)
class Offer:
    """What the load server prepares.

    Attributes:
        pods: number of objects in the list.
        events: number of changes that a client can request.
        spread: the number of pods that change, 0 for all.
        forms: the available formats, separated by commas.
        protobuf_tool: the command that encodes protobuf.
        program: the file of the server.
        event_by_event: serve by the program in `peers/load_server_go/`, which sends each event by a write of its own.
        tls: serve that over TLS.
        annotation: the key of an annotation that changes with each event; without it, only the resourceVersion changes.
            Only for `event_by_event`.
    """

    pods: int = 20_000
    events: int = 20_000
    spread: int = 0
    forms: str = "json"
    protobuf_tool: tuple[str, ...] = ()
    program: str = "load_server.py"
    event_by_event: bool = False
    tls: bool = True
    annotation: str = ""


def on_core(core: int, command: list[str]) -> list[str]:
    """Return the command pinned to one of the available cores, or unchanged if there are not enough."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return ["taskset", "-c", str(cores[core]), *command] if len(cores) > core else command


def client_environment() -> dict[str, str]:
    """Return the environment of measured clients: PYTHONPATH decides which package they measure, else this checkout."""
    chosen = os.environ.get("PYTHONPATH")
    path = f"{chosen}{os.pathsep}{HERE.parent}" if chosen else str(HERE.parent)
    return {**os.environ, "PYTHONPATH": path}


def server_environment() -> dict[str, str]:
    """Return the environment of servers. They run the package of this checkout, whichever one is measured."""
    return {**os.environ, "PYTHONPATH": str(HERE.parent)}


class CannotServe(Exception):
    """The server could not be built."""


class Server:
    """A load server: `with Server(offer) as url:`.

    Attributes:
        environment: for the clients. OpenSSL and Go read the server's authority from the file that it names.

    Raises:
        CannotServe: the server needs a tool that is not installed.
    """

    def __init__(self, offer: Offer) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="load-server-")
        self.environment = client_environment()
        self._pods = offer.pods if offer.event_by_event else 0
        self._annotation = offer.annotation
        command = self._event_by_event(offer) if offer.event_by_event else _in_python(offer)
        self._command = on_core(1, command)

    def _event_by_event(self, offer: Offer) -> list[str]:
        peers = Peers()
        program = peers.load_server()
        if not program:
            raise CannotServe(peers.notes[-1])
        command = [program, "-events", str(offer.events), "-annotation", offer.annotation]
        if offer.tls:
            authority = os.path.join(self._folder.name, "ca.crt")
            self.environment["SSL_CERT_FILE"] = authority
            command += ["-ca", authority]
        if "metadata" in offer.forms.split(","):
            command.append("-metadata")
        return [*command, "-protobuf-tool", json.dumps(offer.protobuf_tool)] if offer.protobuf_tool else command

    def __enter__(self) -> str:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=server_environment()
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._process.stdin as file:
            for number in range(self._pods):
                file.write(_annotated(encoded(number, _FIRST_VERSION + number), self._annotation) + b"\n")
        return self._process.stdout.readline().decode().strip()

    def __exit__(self, *exc: object) -> None:
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._folder.cleanup()


def _annotated(pod: bytes, key: str) -> bytes:
    opening = b'"annotations":{'
    return pod.replace(opening, opening + f'"{key}":"00000000",'.encode(), 1) if key else pod


def _in_python(offer: Offer) -> list[str]:
    arguments = ["--pods", str(offer.pods), "--events", str(offer.events)]
    arguments += ["--spread", str(offer.spread), "--forms", offer.forms]
    if offer.protobuf_tool:
        arguments += ["--protobuf-tool", json.dumps(offer.protobuf_tool)]
    return [sys.executable, str(HERE / offer.program), *arguments]
