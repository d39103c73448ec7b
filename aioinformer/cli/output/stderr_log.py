"""Write log records to stderr, in colour on a terminal, without blocking the event loop."""

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
    """Formats each record as a line, with an indented traceback, and passes it to a function.

    Control characters are replaced by visible ones.

    Args:
        write: called with each line, which ends with a line feed.
    """

    def __init__(self, write: Callable[[bytes], None], palette: Palette) -> None:
        super().__init__()
        self._write = write
        self._palette = palette
        self.addFilter(VISIBLE)  # for records of other packages

    def emit(self, record: logging.LogRecord) -> None:
        try:
            level = self._palette.paint(record.levelname, f"{record.levelname:<7}")
            now = time.strftime("%H:%M:%S", time.localtime(record.created))
            message = self.format(record).replace("\n", _INDENT)
            self._write(f"{self._palette.paint('time', now)}  {level}  {message}\n".encode(errors="replace"))
        except Exception:
            self.handleError(record)


@contextmanager
def log_to(handler: logging.Handler, level: str = "INFO") -> Iterator[None]:
    """Send log records only to this handler: of the package from a level on, of other packages from WARNING on."""
    root = logging.getLogger()
    package = logging.getLogger("aioinformer")
    before = root.handlers[:], root.level, package.level
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    package.setLevel(level)
    try:
        yield
    finally:
        root.handlers[:], root_level, package_level = before
        root.setLevel(root_level)
        package.setLevel(package_level)


@contextmanager
def log_to_stderr(level: str = "INFO") -> Iterator[None]:
    """Send log records to stderr, of the package from a level on, and flush them at the end."""
    if sys.stderr is None:
        with log_to(logging.NullHandler()):
            yield
        return
    writer = LineWriter(sys.stderr.fileno())
    try:
        with log_to(LineHandler(writer.write, Palette(wants_colour(sys.stderr))), level):
            yield
    finally:
        writer.close(_PATIENCE)
