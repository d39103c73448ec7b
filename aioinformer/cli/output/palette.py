"""The terminal: its width, colours for events, times and log levels if it supports them, and the time of day."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import IO, Any

_STYLES = {
    "add": "green",
    "update": "yellow",
    "delete": "red",
    "resync": "bright_black",
    "synced": "bold cyan",
    "store": "cyan",
    "time": "bright_black",
    "INFO": "cyan",
    "WARNING": "yellow",
    "ERROR": "bold red",
}


def wants_colour(stream: IO[Any] | None) -> bool:
    """Return whether the stream is a terminal that shows colours, and NO_COLOR (https://no-color.org) is not set."""
    return (
        stream is not None
        and stream.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "dumb") != "dumb"
    )


class Palette:
    """Colours words by their meaning."""

    def __init__(self, colour: bool) -> None:
        self._codes: dict[str, tuple[str, str]] = {}
        if colour:
            from rich.color import ColorSystem
            from rich.style import Style

            for meaning, style in _STYLES.items():
                before, _, after = Style.parse(style).render("|", color_system=ColorSystem.STANDARD).partition("|")
                self._codes[meaning] = (before, after)

    def paint(self, meaning: str, text: str) -> str:
        """Return the text in the colour for this meaning."""
        before, after = self._codes.get(meaning, ("", ""))
        return f"{before}{text}{after}"


def terminal_width() -> int:
    """Return the width of the terminal; 0 if stdout is none."""
    if sys.stdout is not None and sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return 0


def time_of_day() -> str:
    """Return the local time of day, to the millisecond."""
    now = time.time()
    return f"{time.strftime('%H:%M:%S', time.localtime(now))}.{int(now * 1000) % 1000:03d}"
