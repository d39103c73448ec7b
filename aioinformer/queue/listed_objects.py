"""The objects of a list: by key, and in the order of the list.

A dict that is full moves into a larger table, all at once: with 40,000 keys, every one of which is looked at again, in
memory that is new to the process, that takes several milliseconds, in which nobody else has a turn. So these are in
many small dicts, by the hashes of their keys. (The cache itself is one dict. It grows once, and is walked often, which
takes several times as long where neighbours in the dict are none in memory.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, MutableMapping
from itertools import chain
from typing import Any, TypeVar

T = TypeVar("T")

#: No power of two: in a part, keys would have in common what a dict finds their places by.
_PARTS = 61


class DividedDict(MutableMapping[str, T]):
    """A mapping in no order, which grows in small steps."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[dict[str, T]] = [{} for _ in range(_PARTS)]

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key."""
        return self._parts[hash(key) % _PARTS].get(key, default)

    def pop(self, key: str, *default: Any) -> Any:
        """Takes a key out; returns its value.

        Raises:
            KeyError: it is not there, and there is no default.
        """
        return self._parts[hash(key) % _PARTS].pop(key, *default)

    def popitem(self) -> tuple[str, T]:
        """Takes any key out, and returns it with its value.

        Raises:
            KeyError: there is none.
        """
        return next(filter(None, self._parts), self._parts[0]).popitem()

    def __getitem__(self, key: str) -> T:
        return self._parts[hash(key) % _PARTS][key]

    def __setitem__(self, key: str, value: T) -> None:
        self._parts[hash(key) % _PARTS][key] = value

    def __delitem__(self, key: str) -> None:
        del self._parts[hash(key) % _PARTS][key]

    def __contains__(self, key: object) -> bool:
        return key in self._parts[hash(key) % _PARTS]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._parts)

    def __len__(self) -> int:
        return sum(map(len, self._parts))


class ListedObjects(DividedDict[T]):
    """The same, in the order in which keys came. One that comes again after it was taken out has its first place."""

    __slots__ = ("_gaps", "_line")

    def __init__(self) -> None:
        super().__init__()
        #: The keys in their order; if there are gaps, keys that were taken out are among them, or twice.
        self._line: deque[str] = deque()
        self._gaps = False

    def put(self, key: str, value: T) -> bool:
        """Adds or replaces; returns whether the key is new."""
        part = self._parts[hash(key) % _PARTS]
        before = len(part)
        part[key] = value
        if len(part) == before:
            return False
        self._line.append(key)
        return True

    def pop(self, key: str, *default: Any) -> Any:
        self._gaps = self._gaps or key in self
        return super().pop(key, *default)

    def popitem(self) -> tuple[str, T]:
        self._gaps = True
        return super().popitem()

    def closing_gaps(self) -> Iterator[None]:
        """Forgets the places of keys that were taken out, in steps. Nothing else may change it meanwhile."""
        if not self._gaps:
            return
        line, seen = deque[str](), DividedDict[None]()
        for key in self._line:
            if key in self and key not in seen:
                seen[key] = None
                line.append(key)
            yield
        self._line, self._gaps = line, False

    def apart(self) -> tuple[DividedDict[T], deque[str]]:
        """The objects, and the keys in their order, as two things: both are the caller's, and nothing is left here."""
        for _ in self.closing_gaps():
            pass
        objects, line = DividedDict[T](), self._line
        objects._parts, self._parts = self._parts, objects._parts
        self._line = deque()
        return objects, line

    def __setitem__(self, key: str, value: T) -> None:
        self.put(key, value)

    def __delitem__(self, key: str) -> None:
        self.pop(key)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(key for key in self._line if key in self) if self._gaps else self._line)
