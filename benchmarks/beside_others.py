"""What do others need for the same: client-go, and the Python libraries?

Each is optional: who cannot be built or installed is named. client-go needs `go`, the Python libraries come from
`peers/requirements.txt` into an environment of their own. Both are kept in `peers/.built/`.

None of the Python libraries has an informer; for them, what a program would write is written out (list, keep all
objects, watch, replace), so that they are measured by what they decode, not by what they lack. kopf is not among them:
it follows resources only within its own operator loop, which asks a server for more than a load server has.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

from clients import measure_floor, measure_informer
from harness import HERE, Offer, Question, Requirement, answer

if TYPE_CHECKING:
    from harness import Measure

_PEERS = HERE / "peers"
_BUILT = _PEERS / ".built"
_PODS = _EVENTS = 20_000
_PYTHON = {
    "lightkube": "lightkube, typed",
    "kubernetes_asyncio_raw": "kubernetes_asyncio, raw",
    "kubernetes_asyncio_typed": "kubernetes_asyncio, typed",
    "kubernetes": "kubernetes, typed",
}
_OWN: dict[str, Measure | list[str]] = {
    "floor": measure_floor,
    "aioinformer": measure_informer,
    "aioinformer, compressed": partial(measure_informer, storage="compressed"),
    "aioinformer, metadata": partial(measure_informer, storage="metadata"),
}
_GO = {"client-go typed, JSON": [], "client-go dynamic, JSON": ["-dynamic"]}
_GO_PROTOBUF = {"client-go typed, protobuf": ["-protobuf"], "client-go metadata, protobuf": ["-metadata"]}


def _client_go() -> str:
    """The program; "" if it cannot be built."""
    go, program = shutil.which("go"), _BUILT / "client-go"
    if go is None:
        return ""
    done = subprocess.run([go, "build", "-o", str(program), "."], cwd=_PEERS / "client_go")
    return "" if done.returncode else str(program)


def _python() -> str:
    """The interpreter of an environment with the Python libraries; "" if they cannot be installed."""
    python = _BUILT / "python" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(python.parent.parent)], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
    done = subprocess.run([*pip, "--requirement", str(_PEERS / "requirements.txt")])
    return "" if done.returncode else str(python)


def question() -> Question:
    """With everybody who is there."""
    subjects = dict(_OWN)
    notes = []
    program = _client_go()
    for name, flags in (_GO | _GO_PROTOBUF).items() if program else ():
        subjects[name] = [program, *flags, "URL", str(_EVENTS)]
    python = _python()
    for peer, name in _PYTHON.items() if python else ():
        subjects[name] = [python, str(_PEERS / "python_client.py"), peer, "URL", str(_EVENTS)]
    if not program:
        notes.append("client-go is absent: it takes `go` to build it.")
    if not python:
        notes.append("The Python libraries are absent: they could not be installed.")
    return Question(
        "beside_others",
        "What do others need for the same?",
        subjects,
        Offer(_PODS, _EVENTS, forms="json,metadata", protobuf_tool=(program, "encode") if program else ()),
        requirements=[
            Requirement(
                "an event, to client-go on JSON", "aioinformer", "watch_us_per_event", 1 / 12, "client-go typed, JSON"
            ),
            Requirement(
                "an event, to client-go on protobuf",
                "aioinformer",
                "watch_us_per_event",
                0.5,
                "client-go typed, protobuf",
            ),
            Requirement(
                "an event of metadata, to client-go on protobuf",
                "aioinformer, metadata",
                "watch_us_per_event",
                1.0,
                "client-go metadata, protobuf",
            ),
            Requirement(
                "first list, to client-go on JSON", "aioinformer", "sync_wall_seconds", 1 / 6, "client-go typed, JSON"
            ),
            Requirement(
                "memory, compressed, to client-go typed",
                "aioinformer, compressed",
                "kib_per_object",
                1 / 8,
                "client-go typed, JSON",
            ),
        ],
        rounds=3,
        notes=notes,
    )


if __name__ == "__main__":
    # A measurement of our own is a process of its own, which need not look for the others.
    answer(Question("beside_others", "", _OWN) if "--subject" in sys.argv else question())
