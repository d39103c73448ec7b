"""Where a JSON value ends, known for certain: by its strings and brackets."""

from __future__ import annotations

import re

_TOKEN = re.compile(rb'["{}\[\]]')
_STRING_TOKEN = re.compile(rb'["\\]')


class ItemScanner:
    """Finds the end of one JSON value in a growing buffer, looking at every byte once."""

    def __init__(self, start: int) -> None:
        self._position = start
        self._depth = 0
        self._in_string = False

    def shift(self, by: int) -> None:
        """The first `by` bytes of the buffer are gone."""
        self._position -= by

    def end(self, buffer: bytes | bytearray) -> int:
        """The offset behind the value, or -1 if it is not complete yet."""
        position, depth, in_string = self._position, self._depth, self._in_string
        while True:
            token = (_STRING_TOKEN if in_string else _TOKEN).search(buffer, position)
            if token is None:
                self._position, self._depth, self._in_string = len(buffer), depth, in_string
                return -1
            position = token.end()
            character = buffer[position - 1]
            if in_string:
                if character == 0x22:
                    in_string = False
                elif position < len(buffer):
                    position += 1  # whatever is escaped is no end
                else:
                    self._position, self._depth, self._in_string = position - 1, depth, True
                    return -1
            elif character == 0x22:
                in_string = True
            elif character in b"{[":
                depth += 1
            else:
                depth -= 1
                if depth <= 0:
                    return position
