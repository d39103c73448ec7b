"""Log lines on stderr: plain, or in colour on a terminal, and never in the way of the event loop."""

from __future__ import annotations

import logging
import sys
import time
from typing import TYPE_CHECKING

from aioinformer.cli.palette import Palette, wants_colour
from aioinformer.cli.writer import LineWriter

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger("aioinformer.cli")


class LineHandler(logging.Handler):
    """Hands each record to a function, as one line (more with a traceback).

    Args:
        write: takes a line with its line feed.
        palette: colours for the levels.
    """

    def __init__(self, write: Callable[[bytes], None], palette: Palette) -> None:
        super().__init__()
        self._write = write
        self._palette = palette

    def emit(self, record: logging.LogRecord) -> None:
        try:
            level = self._palette.paint(record.levelname, f"{record.levelname:<7}")
            now = time.strftime("%H:%M:%S", time.localtime(record.created))
            self._write(
                f"{self._palette.paint('time', now)}  {level}  {self.format(record)}\n".encode(errors="replace")
            )
        except Exception:
            self.handleError(record)


def log_to(handler: logging.Handler) -> None:
    """Sends the log of the package, from INFO, and of everything else, from WARNING, to this handler alone."""
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("aioinformer").setLevel(logging.INFO)


def log_to_stderr() -> LineWriter | None:
    """Sends the log to stderr; None if there is no stderr. The caller closes the writer."""
    if sys.stderr is None:
        log_to(logging.NullHandler())
        return None
    writer = LineWriter(sys.stderr.fileno())
    log_to(LineHandler(writer.write, Palette(wants_colour(sys.stderr))))
    return writer
