"""Measure what a program pays before its first request: the imports of a factory, and `connect()`.

Each measurement starts fresh interpreters, with bytecode that is compiled before, and takes the median of their CPU
time (user and system, the start of the interpreter included) and of their largest resident memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from base64 import b64encode
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from harness import Question, Requirement, run

if TYPE_CHECKING:
    from harness import Figures

_INTERPRETERS = 5
_CONNECT = """
import asyncio
from aioinformer import connect

async def main():
    async with await connect(kubeconfig={kubeconfig!r}):
        pass

asyncio.run(main())
"""
#: The peak belongs to the program alone; `ru_maxrss` may be that of the process that started it.
_SHOW_PEAK = "\nprint(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0])"
#: The program, and the imports that it needs in any case.
_PROGRAMS = {
    "factory": ("from aioinformer import SharedInformerFactory", "import asyncio, msgspec"),
    "connect()": (_CONNECT, "import aiohttp, msgspec, yaml"),
}


def started(program: str, kubeconfig: str) -> tuple[float, float]:
    """Run a program in a fresh interpreter; return its CPU time in seconds, and its peak in KiB."""
    code = program.replace("{kubeconfig!r}", repr(kubeconfig)) + _SHOW_PEAK
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    peak = process.stdout.read()
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, "python")
    return usage.ru_utime + usage.ru_stime, float(peak)


async def measure(kubeconfig: str, *, program: str, needs: str) -> Figures:
    """Measure a program, and alternately one that only imports the libraries that it needs."""
    runs, bare = [], []
    for _ in range(_INTERPRETERS):
        runs.append(started(program, kubeconfig))
        bare.append(started(needs, kubeconfig))
    return {
        "cpu_ms": median(cpu for cpu, _ in runs) * 1000,
        "needs_cpu_ms": median(cpu for cpu, _ in bare) * 1000,
        "peak_mib": median(peak for _, peak in runs) / 1024,
        "needs_peak_mib": median(peak for _, peak in bare) / 1024,
    }


class Kubeconfig:
    """Writes a kubeconfig, and compiles what the programs import."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        self.environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self._path = folder / "kubeconfig"

    def __enter__(self) -> str:
        import trustme

        authority = b64encode(trustme.CA().cert_pem.bytes()).decode()
        self._path.write_text(
            f"""
current-context: here
contexts: [{{name: here, context: {{cluster: here, user: me}}}}]
clusters: [{{name: here, cluster: {{server: "https://127.0.0.1:6443", certificate-authority-data: {authority}}}}}]
users: [{{name: me, user: {{token: abc}}}}]
"""
        )
        for program, _ in _PROGRAMS.values():
            code = program.replace("{kubeconfig!r}", repr(str(self._path)))
            subprocess.run([sys.executable, "-c", code], check=True, env=self.environment)
        return str(self._path)

    def __exit__(self, *exc: object) -> None:
        self._folder.cleanup()


QUESTION = Question(
    "imports",
    "How much CPU and memory does a program need before its first request?",
    {name: partial(measure, program=program, needs=needs) for name, (program, needs) in _PROGRAMS.items()},
    requirements=[
        Requirement("a factory, ratio to asyncio and msgspec", "factory", "cpu_ms", 1.6, "factory", "needs_cpu_ms"),
        Requirement("connect(), ratio to its libraries", "connect()", "cpu_ms", 1.3, "connect()", "needs_cpu_ms"),
        Requirement("connect(), resident memory in MiB", "connect()", "peak_mib", 45),
    ],
    rounds=9,
    serve=Kubeconfig(),
)

if __name__ == "__main__":
    run(QUESTION)
