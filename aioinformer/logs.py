"""Log records: loggers whose records cannot control a terminal, and traces of work that takes long.

Text from a server, a plugin or a user's error may hold control characters. `visible` replaces them by escapes, and
`get_logger` returns loggers that do so for each record.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

#: `re` compiles it at its first use, which few programs have: it takes as long as importing the module.
_HIDDEN = (
    "["
    "\x00-\x1f\x7f-\x9f"  # C0 with TAB, LF, CR and ESC; DEL; C1 with NEL and CSI
    "\u00ad\u061c\u180e"  # soft hyphen, Arabic letter mark, Mongolian vowel separator
    "\u200b-\u200f"  # zero width space and joiners, left-to-right and right-to-left marks
    "\u2028-\u202e"  # line and paragraph separators, embeddings and overrides
    "\u2060-\u206f"  # word joiner, invisible operators, isolates, deprecated format characters
    "\ufeff\ufff9-\ufffb"  # byte order mark, interlinear annotations
    "\ud800-\udfff"  # lone surrogates, which cannot be encoded
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"  # format characters of other planes, tags
    "]"
)

_CONTROLS = re.compile(b"[\x00-\x1f\x7f]")
_SPACES = bytes.maketrans(b"\t\n\r", b"   ")
_FORMATTER = logging.Formatter()
#: A list with more pages than this, which takes longer than this number of seconds, may be one without an end.
_MANY_PAGES: Final = 5000
_LONG_LIST: Final = 10.0


def get_logger(name: str) -> logging.Logger:
    """Return the logger of this name, with a filter that makes control characters in its records visible.

    The application's handlers need no filter of their own: the filter runs before any handler gets the record.
    """
    logger = logging.getLogger(name)
    logger.addFilter(VISIBLE)
    return logger


def visible(text: str) -> str:
    r"""Return `text` with each control, format and bidirectional character replaced by its escape, such as `\x1b`.

    The result has one line, can be encoded, and leaves a terminal in the state in which it was. Line feeds and tabs
    are escaped too. Backslashes stay as they are, so that `visible(visible(text)) == visible(text)`; the result is for
    reading and cannot be reversed. A text of printable characters alone is returned unchanged.
    """
    return text if text.isprintable() else re.sub(_HIDDEN, _escape, text)


def visible_lines(text: str) -> str:
    """Return `text` with control characters made visible in each of its lines."""
    return "\n".join(map(visible, text.split("\n")))


def visible_json(text: bytes) -> bytes:
    r"""Return a JSON text on one line whose hidden characters are escapes such as `\u202e`.

    The parsed value stays the same: in valid JSON such characters occur in strings only. Line feeds, carriage returns
    and tabs between values become spaces. Bytes that are not UTF-8 become U+FFFD.
    """
    if text.isascii() and not _CONTROLS.search(text):
        return text
    shown = text.translate(_SPACES).decode(errors="replace")
    return (shown if shown.isprintable() else re.sub(_HIDDEN, _escape_json, shown)).encode()


class VisibleFilter(logging.Filter):
    """Makes control characters in the message and the traceback of each record visible; see `visible`.

    Line feeds between the lines of a traceback stay. A record without control characters stays unchanged; in any other
    record, the formatted message replaces message and arguments.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            message = record.getMessage()
        except (TypeError, ValueError):  # the arguments do not fit the message; the handler reports it
            return True
        if (shown := visible(message)) is not message:
            record.msg = shown
            record.args = None
        if record.exc_info and record.exc_info[1] is not None and not record.exc_text:
            traceback = _FORMATTER.formatException(record.exc_info)
            if (shown := visible_lines(traceback)) != traceback:
                record.exc_text = shown
        return True


VISIBLE = VisibleFilter()
"""The filter, for handlers that also get records of other packages."""


class Trace:
    """Measures the time of one operation and of its steps, and logs it if it took long.

    Args:
        logger: gets the line.
        what: names the operation and its owner; without content of objects.
        clock: a monotonic clock, in seconds.

    Attributes:
        objects: how many objects were counted.
    """

    __slots__ = ("_begun", "_clock", "_logger", "_pages", "_steps", "_warn_at", "_what", "objects")

    def __init__(self, logger: logging.Logger, what: str, clock: Callable[[], float]) -> None:
        self._logger = logger
        self._what = what
        self._clock = clock
        self._begun = clock()
        self._steps: list[tuple[float, str]] = []
        self.objects = 0
        self._pages = 0
        self._warn_at = _MANY_PAGES

    @property
    def seconds(self) -> float:
        """The time since the start."""
        return self._clock() - self._begun

    def step(self, what: str) -> None:
        """Record that a step is done."""
        self._steps.append((self._clock(), what))

    def count(self, objects: int = 0, *, pages: int = 0) -> None:
        """Count objects and pages of a list. Warn after 10 s and 5,000 pages, and whenever their number has doubled."""
        self.objects += objects
        self._pages += pages
        if self._pages >= self._warn_at and self.seconds >= _LONG_LIST:
            self._warn_at = 2 * self._pages
            self._logger.warning(
                "%s has not ended after %d pages with %d objects in %.0f s: does the server repeat continue tokens?",
                *(self._what, self._pages, self.objects, self.seconds),
            )

    def log_if_long(self, threshold: float) -> None:
        """Log one line if more than `threshold` seconds have passed: each step with its own duration."""
        seconds = self.seconds
        if seconds <= threshold:
            return
        parts = []
        before = self._begun
        for at, what in self._steps:
            parts.append(f"{what} +{at - before:.1f} s")
            before = at
        self._logger.info("%s took %.1f s%s", self._what, seconds, f": {', '.join(parts)}" if parts else "")


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escape_json(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def without_values(holder: Any) -> str:
    """Return the `repr` of a NamedTuple, Struct or dataclass that holds content of objects: the names of its fields."""
    kind = type(holder)
    names = getattr(kind, "_fields", None) or getattr(kind, "__struct_fields__", None) or kind.__dataclass_fields__
    return f"<{kind.__name__}: {', '.join(names)}>"
