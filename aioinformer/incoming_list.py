"""What a list, in pages or as a stream, has brought so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.errors import DecodeError
from aioinformer.listed_objects import ListedObjects
from aioinformer.objects import KeptRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from aioinformer.objects import Record
    from aioinformer.quarantine import Quarantine


class IncomingList:
    """Gathers the objects of one list. An object that does not decode must not look deleted: the cached one stays.

    One that does not even show its name may be any that the list does not name: all of those stay.

    Args:
        quarantine: where objects are noted that do not decode.
        tell: takes a line for the log.
    """

    def __init__(self, quarantine: Quarantine, tell: Callable[[str], None]) -> None:
        self._quarantine = quarantine
        self._tell = tell
        self._records: ListedObjects[Record] = ListedObjects()

    def __bool__(self) -> bool:
        return bool(self._records)

    def begin(self) -> None:
        """A list begins: what it brings is all that counts."""
        self._records = ListedObjects()
        self._quarantine.begin()

    def take(self, item: Record | DecodeError) -> bool:
        """Notes an object, or what stands in its place; whether the list had not shown it before."""
        if isinstance(item, DecodeError):
            self._records.setdefault(item.key, KeptRecord.of(item.key))
            return self.skip(item)
        new = self._records.put(item.key, item)
        if self._quarantine.remembers:
            self._quarantine.release(item.key)
        return new

    def take_all(self, items: Collection[Record | DecodeError]) -> bool:
        """As `take`, for many; whether the list had not shown all of them before."""
        if self._quarantine.remembers or any(issubclass(kind, DecodeError) for kind in set(map(type, items))):
            news = [self.take(item) for item in items]  # all of them, whatever the first is
            return any(news)
        put, new = self._records.put, False
        for item in items:
            new = put(item.key, item) or new  # type: ignore[arg-type] # of whose types none is an error
        return new

    def drop(self, key: str) -> None:
        """An object was deleted while the list was on its way."""
        self._records.pop(key, None)
        self._quarantine.release(key, gone=True)

    def skip(self, error: DecodeError) -> bool:
        """Notes an object that does not decode; whether that is news."""
        new = self._quarantine.add(error)
        if new:
            reason = str(error).removeprefix(f"{error.key}: ")
            self._tell(f"{error.key or 'an object without a readable name'} is skipped: {reason}")
        return new

    def end(self) -> ListedObjects[Record]:
        """The list is complete: its objects by key. Not a copy, which would hold the loop if there are many."""
        records, self._records = self._records, ListedObjects()
        self._quarantine.end(records)
        return records
