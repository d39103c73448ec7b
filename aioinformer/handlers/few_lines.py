"""Log lines that many handlers of one informer cause at the same time: the first ones, and how many more there are."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import logging

#: The lines of so many handlers are logged within `_WHILE` seconds after the first one.
_HANDLERS: Final = 3
_WHILE: Final = 10.0


class FewLines:
    """Logs what happens to handlers. A hundred of them may fall behind at the same time, and for the same reason."""

    __slots__ = ("_kinds", "_log")

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        #: By kind: the listeners in the order of their lines, and what ends the period.
        self._kinds: dict[str, tuple[dict[str, None], asyncio.TimerHandle]] = {}

    def warning(self, what: str, message: str, name: str, *arguments: object) -> None:
        """Log that a handler does something, or count it if three others of its informer have just done so.

        Args:
            what: for the line with the number, such as "fall behind".
            message: of the line; the name is its first argument.
            name: of the listener.
        """
        if (kind := self._kinds.get(what)) is None:
            kind = self._kinds[what] = {}, asyncio.get_running_loop().call_later(_WHILE, self._end, what)
        names, _ = kind
        names[name] = None
        if name in islice(names, _HANDLERS):
            self._log.warning(message, name, *arguments)

    def close(self) -> None:
        """Log what was counted. Nothing is left on the loop."""
        for what, (_, timer) in list(self._kinds.items()):
            timer.cancel()
            self._end(what)

    def _end(self, what: str) -> None:
        names, _ = self._kinds.pop(what)
        if len(names) > _HANDLERS:
            message = "beside %s, %d more handlers of its informer %s; the snapshot has each of them"
            self._log.warning(message, next(iter(names)), len(names) - 1, what)
