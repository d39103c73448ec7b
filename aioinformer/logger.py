"""The loggers of the package, whose records are fit for a terminal."""

from __future__ import annotations

import logging

from aioinformer.visible import visible


class VisibleFilter(logging.Filter):
    """Make control characters in the message and the traceback of each record visible; see `visible`.

    Line feeds between the lines of a traceback stay. A record without control characters is left alone, with its
    arguments; in any other record the text replaces them.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            message = record.getMessage()
        except (TypeError, ValueError):  # the arguments do not fit: the handler reports this with the line at fault
            return True
        if (shown := visible(message)) is not message:
            record.msg, record.args = shown, None
        if record.exc_info and record.exc_info[1] is not None and not record.exc_text:
            traceback = _FORMATTER.formatException(record.exc_info)
            if (shown := visible_lines(traceback)) != traceback:
                record.exc_text = shown
        return True


_FORMATTER = logging.Formatter()
VISIBLE = VisibleFilter()
"""For handlers that take records of other packages too."""


def visible_lines(text: str) -> str:
    """Return `text` with control characters made visible in each of its lines."""
    return "\n".join(map(visible, text.split("\n")))


def get_logger(name: str) -> logging.Logger:
    """Return the logger of this name. What a server, a plugin or a user's error says cannot control a terminal in it.

    Handlers of the application need no filter of their own: a record is made visible before any handler gets it.
    """
    logger = logging.getLogger(name)
    logger.addFilter(VISIBLE)
    return logger
