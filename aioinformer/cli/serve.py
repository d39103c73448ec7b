"""`aioinformer serve`: the embedded API server, alone."""

from __future__ import annotations

import asyncio
import json
import stat
import tempfile
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from aioinformer.cli.program import Program
from aioinformer.errors import UsageError
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from aioinformer.testing import ApiServer

logger = get_logger("aioinformer.cli")


class ServeProgram(Program):
    """Serves until the end.

    Args:
        make: a server that is not yet listening.
        kubeconfig: file to write, None for a temporary one.
        duration: seconds, None for ever.
        write: takes each line of stdout.
        load: files and folders with objects to begin with.
        save: folder to write all objects to in the end.
    """

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
        work = asyncio.create_task(self._serve(), name="serve")
        return await self.unwind(work, await self.until_end(work, self._duration, 0))

    async def _serve(self) -> None:
        server = self._make()
        if self._save is not None:
            _check_folder(self._save)
        for source in self._load:
            logger.info("%s objects from %s", server.load_manifests(source), source)
        with kubeconfig_file(self._kubeconfig) as path:
            async with listening(server):
                self._write(f"KUBECONFIG={written(server, path)}\n".encode())
                logger.info("serving at %s, with this KUBECONFIG; Ctrl-C ends it", server.url)
                try:
                    await asyncio.get_running_loop().create_future()
                finally:
                    if self._save is not None:
                        server.save_manifests(self._save)


@asynccontextmanager
async def listening(server: ApiServer) -> AsyncIterator[None]:
    """The server, accepting requests.

    Raises:
        UsageError: it cannot listen where it should.
    """
    try:
        await server.__aenter__()
    except OSError as error:
        raise UsageError(f"the server cannot listen there: {error.strerror or error}; choose another --port") from error
    try:
        yield
    finally:
        await server.stop()


@contextmanager
def kubeconfig_file(name: str | None) -> Iterator[Path]:
    """Where to write the kubeconfig: the file named, or a temporary one that is removed in the end.

    Raises:
        UsageError: the file exists and is about other clusters, or cannot be written.
    """
    if name is None:
        with tempfile.TemporaryDirectory(prefix="aioinformer-") as folder:
            yield Path(folder, "kubeconfig")
        return
    path = Path(name)
    if not _may_replace(path):
        raise UsageError(f"--kubeconfig {name}: the file exists and is about other clusters; name another one")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"--kubeconfig {name}: there is no such folder; make it first")
    yield path


def written(server: ApiServer, path: Path) -> Path:
    """Write the kubeconfig of a server, and return its absolute path.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        return server.kubeconfig(path)
    except OSError as error:
        raise UsageError(f"--kubeconfig {path}: the file cannot be written: {error.strerror or error}") from error


def warn_of_host(host: str, *, tls: bool) -> None:
    """Log what it means to listen beyond loopback."""
    said = (
        ""
        if tls
        else "; it goes over the network unencrypted, and kubectl sends none without TLS and is refused: add --tls"
    )
    logger.warning(
        "--host %s is reachable from other machines: requests need the token in the kubeconfig%s", host, said
    )


def _check_folder(name: str) -> None:
    """Find out at once what would fail in the end.

    Raises:
        UsageError: the folder is a link, or cannot be written to.
    """
    folder = Path(name)
    if folder.is_symlink():
        raise UsageError(f"--save {name}: it is a link; name the folder itself")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(f"--save {name}: the folder cannot be written to: {error.strerror or error}") from error


def _may_replace(path: Path) -> bool:
    """Whether nothing of value is there: no file, an empty one, or one written by an earlier run."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return False
        text = path.read_text()
        return not text.strip() or [entry["name"] for entry in json.loads(text)["clusters"]] == ["aioinformer"]
    except FileNotFoundError:
        return True
    except (OSError, ValueError, KeyError, TypeError):
        return False
