"""Programs of other projects to compare with, built once and kept in `.built/`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

_HERE = Path(__file__).parent
_BUILT = _HERE / ".built"
_BUILD_SECONDS = 1200.0
#: `--help` builds and downloads nothing.
_ASKS_FOR_HELP = not {"-h", "--help"}.isdisjoint(sys.argv)
_PYTHON_PROGRAM = _BUILT / "python" / "bin" / "python"

_GO = {
    "client-go typed, JSON": [],
    "client-go dynamic, JSON": ["-dynamic"],
    "client-go typed, protobuf": ["-protobuf"],
    "client-go metadata, protobuf": ["-metadata"],
}
_RUST = {"kube-rs typed": [], "kube-rs metadata": ["--metadata"]}
_PYTHON = {
    "lightkube, typed": "lightkube",
    "kubernetes_asyncio, raw": "kubernetes_asyncio_raw",
    "kubernetes_asyncio, typed": "kubernetes_asyncio_typed",
    "kubernetes, its informer": "kubernetes",
    "kopf, its operator": "kopf",
}


class Peers:
    """Builds and installs the requested programs.

    Attributes:
        notes: which programs could not be built, and why.
        protobuf_tool: the command that encodes protobuf, empty if it could not be built.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.protobuf_tool: tuple[str, ...] = ()

    def go(self, events: int) -> dict[str, list[str]]:
        """Return the commands of client-go's informers, and set `protobuf_tool`."""
        program = _BUILT / "client-go"
        if not self._build("client-go", "go", ["build", "-o", str(program), "."], _HERE / "client_go"):
            return {}
        self.protobuf_tool = (str(program), "encode")
        return {name: [str(program), *flags, "URL", str(events)] for name, flags in _GO.items()}

    def load_server(self) -> str:
        """Return the program of the load server that writes event by event, empty if it could not be built."""
        program = _BUILT / "load-server"
        name = "The load server that writes event by event"
        built = self._build(name, "go", ["build", "-o", str(program), "."], _HERE / "load_server_go")
        return str(program) if built else ""

    @property
    def controller_runtime_program(self) -> str:
        """The program of controller-runtime's controllers, once it was built."""
        return str(_BUILT / "controller-runtime")

    def controller_runtime(self) -> bool:
        """Build controller-runtime's controllers, and return whether it succeeded."""
        build = ["build", "-o", self.controller_runtime_program, "."]
        return self._build("controller-runtime", "go", build, _HERE / "controller_runtime")

    @property
    def kopf_program(self) -> list[str]:
        """The command of kopf's controllers, once it was installed."""
        return [str(_PYTHON_PROGRAM), str(_HERE / "kopf_controllers.py")]

    def kopf(self) -> bool:
        """Install kopf, and return whether it succeeded."""
        return self._install("kopf")

    @property
    def driver(self) -> str:
        """The program that changes the pods of a real cluster, empty if it could not be built."""
        return next(iter(self.protobuf_tool), "")

    def cluster(self, sizes: str) -> dict[str, list[str]]:
        """Return the commands of client-go's informers on a real cluster, and set `driver`."""
        return {
            name: [*command[:-2], "-cluster", sizes, "URL", "0"]
            for name, command in self.go(0).items()
            if "dynamic" not in name
        }

    def lone(self, rates: str) -> dict[str, list[str]]:
        """Return the commands of client-go's informers at these rates of events, and set `protobuf_tool`."""
        return {
            name: [*command[:-2], "-rates", rates, "URL", "0"]
            for name, command in self.go(0).items()
            if "dynamic" not in name
        }

    def rust(self, events: int) -> dict[str, list[str]]:
        """Return the commands of kube-rs' reflectors."""
        target = _BUILT / "kube-rs"
        build = ["build", "--quiet", "--release", "--locked", "--target-dir", str(target)]
        if not self._build("kube-rs", "cargo", build, _HERE / "kube_rs"):
            return {}
        program = target / "release" / "kube-rs-peer"
        return {name: [str(program), *flags, "URL", str(events)] for name, flags in _RUST.items()}

    def python(self, events: int) -> dict[str, list[str]]:
        """Return the commands of the Python libraries, which share one environment."""
        if not self._install(", ".join(_PYTHON)):
            return {}
        command = [str(_PYTHON_PROGRAM), str(_HERE / "python_client.py")]
        return {name: [*command, peer, "URL", str(events)] for name, peer in _PYTHON.items()}

    def _install(self, names: str) -> bool:
        if not _ASKS_FOR_HELP and not _PYTHON_PROGRAM.exists():
            subprocess.run([sys.executable, "-m", "venv", str(_PYTHON_PROGRAM.parent.parent)], check=True)
        pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
        command = [str(_PYTHON_PROGRAM), *pip, "--requirement", str(_HERE / "requirements.txt")]
        return self._run(names, "pip", command, _HERE)

    def _build(self, names: str, tool: str, arguments: list[str], folder: Path) -> bool:
        found = shutil.which(tool)
        if found is None:
            self.notes.append(f"{names} was not measured: building it needs `{tool}`, which is not installed.")
            return False
        return self._run(names, tool, [found, *arguments], folder)

    def _run(self, names: str, tool: str, command: list[str], folder: Path) -> bool:
        if _ASKS_FOR_HELP:
            return True
        try:
            subprocess.run(command, cwd=folder, check=True, timeout=_BUILD_SECONDS)
        except (OSError, subprocess.SubprocessError) as error:
            reason = (
                f"status {error.returncode}"
                if isinstance(error, subprocess.CalledProcessError)
                else type(error).__name__
            )
            self.notes.append(f"{names} was not measured: `{tool}` failed to download or build it ({reason}).")
            return False
        return True
