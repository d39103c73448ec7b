"""Log lines on stderr: plain, or in colour on a terminal, and never in the way of the event loop."""

from __future__ import annotations

import logging
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from aioinformer.cli.output.line_writer import LineWriter
from aioinformer.cli.output.palette import Palette, wants_colour
from aioinformer.logs import VISIBLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PATIENCE = 0.2
_INDENT = "\n" + " " * 19


class LineHandler(logging.Handler):
    """Hands each record to a function, as one line; those of a traceback are indented. Control characters are visible.

    Args:
        write: takes a line with its line feed.
        palette: colours for the levels.
    """

    def __init__(self, write: Callable[[bytes], None], palette: Palette) -> None:
        super().__init__()
        self._write = write
        self._palette = palette
        self.addFilter(VISIBLE)  # other packages log, too

    def emit(self, record: logging.LogRecord) -> None:
        try:
            level = self._palette.paint(record.levelname, f"{record.levelname:<7}")
            now = time.strftime("%H:%M:%S", time.localtime(record.created))
            said = self.format(record).replace("\n", _INDENT)
            self._write(f"{self._palette.paint('time', now)}  {level}  {said}\n".encode(errors="replace"))
        except Exception:
            self.handleError(record)


@contextmanager
def log_to(handler: logging.Handler) -> Iterator[None]:
    """Sends the log of the package, from INFO, and of everything else, from WARNING, to this handler alone."""
    root, package = logging.getLogger(), logging.getLogger("aioinformer")
    before = root.handlers[:], root.level, package.level
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    package.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.handlers[:], root_level, package_level = before
        root.setLevel(root_level)
        package.setLevel(package_level)


@contextmanager
def log_to_stderr() -> Iterator[None]:
    """Sends the log to stderr; what can be written soon is written in the end."""
    if sys.stderr is None:
        with log_to(logging.NullHandler()):
            yield
        return
    writer = LineWriter(sys.stderr.fileno())
    try:
        with log_to(LineHandler(writer.write, Palette(wants_colour(sys.stderr)))):
            yield
    finally:
        writer.close(_PATIENCE)
