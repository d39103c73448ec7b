"""`aioinformer serve`: the embedded API server. `demo` and `bench` use its parts."""

from __future__ import annotations

import asyncio
import json
import stat
import tempfile
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from aioinformer.cli.program import Program
from aioinformer.concurrency import create_task
from aioinformer.errors import UsageError
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from aioinformer.testing import ApiServer

logger = get_logger("aioinformer.cli")


class ServeProgram(Program):
    """Runs the embedded API server until the end. `make` returns one that does not listen yet."""

    def __init__(
        self,
        make: Callable[[], ApiServer],
        kubeconfig: str | None,
        duration: float | None,
        write: Callable[[bytes], None],
        *,
        load: Sequence[str] = (),
        save: str | None = None,
    ) -> None:
        super().__init__()
        self._make = make
        self._kubeconfig = kubeconfig
        self._duration = duration
        self._write = write
        self._load = load
        self._save = save

    async def run(self) -> int:
        work = create_task(self._serve(), name="serve")
        return await self.stop(work, await self.wait_for_end(work, self._duration, 0))

    async def _serve(self) -> None:
        server = self._make()
        if self._save is not None:
            _check_save_folder(self._save)
        for source in self._load:
            logger.info("loaded %s objects from %s", server.load_manifests(source), source)
        with kubeconfig_file(self._kubeconfig) as path:
            async with listening(server):
                self._write(f"KUBECONFIG={write_kubeconfig(server, path)}\n".encode())
                logger.info("the server listens at %s; press Ctrl-C to end it", server.url)
                try:
                    await asyncio.get_running_loop().create_future()
                finally:
                    if self._save is not None:
                        server.save_manifests(self._save)


@asynccontextmanager
async def listening(server: ApiServer) -> AsyncIterator[None]:
    """Start the server, and stop it at the end of the block.

    Raises:
        UsageError: the server cannot listen at its address.
    """
    try:
        await server.__aenter__()
    except OSError as error:
        raise UsageError(
            f"the server cannot listen: {error.strerror or error}; choose another --port or --host"
        ) from error
    try:
        yield
    finally:
        await server.stop()


@contextmanager
def kubeconfig_file(name: str | None) -> Iterator[Path]:
    """Provide the path for the kubeconfig: the given file, or a temporary one that is removed at the end.

    Raises:
        UsageError: the file exists and has other clusters, or its folder does not exist.
    """
    if name is None:
        with tempfile.TemporaryDirectory(prefix="aioinformer-") as folder:
            yield Path(folder, "kubeconfig")
        return
    path = Path(name)
    if not _may_replace(path):
        raise UsageError(f"--kubeconfig {name}: the file exists and has other clusters; choose another file")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"--kubeconfig {name}: the folder does not exist; create it first")
    yield path


def write_kubeconfig(server: ApiServer, path: Path) -> Path:
    """Write the kubeconfig of a server, and return its absolute path.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        return server.kubeconfig(path)
    except OSError as error:
        raise UsageError(f"--kubeconfig {path}: the file cannot be written: {error.strerror or error}") from error


def warn_of_host(host: str, *, tls: bool) -> None:
    """Warn that a server beyond loopback needs a token, and TLS to protect it."""
    if tls:
        unencrypted = ""
    else:
        unencrypted = "; without --tls it is sent unencrypted, and kubectl does not send it at all: add --tls"
    logger.warning(
        "--host %s is reachable from other machines: requests need the token in the kubeconfig%s", host, unencrypted
    )


def _check_save_folder(name: str) -> None:
    """Check the folder of `--save` at the start rather than at the end.

    Raises:
        UsageError: the folder is a symbolic link, or cannot be written to.
    """
    folder = Path(name)
    if folder.is_symlink():
        raise UsageError(f"--save {name}: it is a symbolic link; name the folder that it points to")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(f"--save {name}: the folder cannot be written to: {error.strerror or error}") from error


def _may_replace(path: Path) -> bool:
    """Return whether the file does not exist, is empty, or was written by an earlier run."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return False
        text = path.read_text()
        return not text.strip() or [entry["name"] for entry in json.loads(text)["clusters"]] == ["aioinformer"]
    except FileNotFoundError:
        return True
    except (OSError, ValueError, KeyError, TypeError):
        return False
