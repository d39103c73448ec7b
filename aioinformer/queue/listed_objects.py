"""The objects of a list: by key, and in the order of the list.

A dict that is full moves all of its entries to a larger table at once. With 40,000 keys, this blocks the event loop for
several milliseconds. The objects are therefore divided among many small dicts, by the hashes of their keys. (The cache
is one dict. It grows only once, and is iterated over often, which takes several times as long over many dicts.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, MutableMapping
from itertools import chain
from typing import Any, Final, TypeVar

T = TypeVar("T")

#: Not a power of two: the keys of one part would then share the low bits of their hashes, which a dict uses.
_PARTS: Final = 61


class DividedDict(MutableMapping[str, T]):
    """A mapping without an order, which grows in small steps."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[dict[str, T]] = [{} for _ in range(_PARTS)]

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or the default."""
        return self._parts[hash(key) % _PARTS].get(key, default)

    def pop(self, key: str, *default: Any) -> Any:
        """Remove a key and return its value.

        Raises:
            KeyError: there is no such key, and no default.
        """
        return self._parts[hash(key) % _PARTS].pop(key, *default)

    def popitem(self) -> tuple[str, T]:
        """Remove any key and return it with its value.

        Raises:
            KeyError: the mapping is empty.
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
    """A `DividedDict` in the order of insertion. A key that is removed and added again keeps its first place."""

    __slots__ = ("_gaps", "_line")

    def __init__(self) -> None:
        super().__init__()
        #: The keys in their order. If there are gaps, it also contains removed keys, and some keys twice.
        self._line: deque[str] = deque()
        self._gaps = False

    def put(self, key: str, value: T) -> bool:
        """Add or replace a value. Return whether the key is new."""
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

    def close_gaps(self) -> Iterator[None]:
        """Drop the places of removed keys, in steps. The mapping must not be changed between the steps."""
        if not self._gaps:
            return
        line = deque[str]()
        seen = DividedDict[None]()
        for key in self._line:
            if key in self and key not in seen:
                seen[key] = None
                line.append(key)
            yield
        self._line = line
        self._gaps = False

    def detach(self) -> tuple[DividedDict[T], deque[str]]:
        """Return the objects, and the keys in their order, to a caller who owns both. The mapping is empty then."""
        for _ in self.close_gaps():
            pass
        objects = DividedDict[T]()
        line = self._line
        objects._parts, self._parts = self._parts, objects._parts
        self._line = deque()
        return objects, line

    def __setitem__(self, key: str, value: T) -> None:
        self.put(key, value)

    def __delitem__(self, key: str) -> None:
        self.pop(key)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(key for key in self._line if key in self) if self._gaps else self._line)
