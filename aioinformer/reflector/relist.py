"""The pages of one list: which one is next, and whether they get anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aioinformer.cache.objects.record import UndecodablePlaceholder
from aioinformer.errors import DecodeError
from aioinformer.queue.listed_objects import ListedObjects

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container

    from aioinformer.cache.objects.record import Record
    from aioinformer.reflector.options import ListOptions, ReflectorOptions


#: An object that decodes again is in the cache after so many batches at most: those under way, and the one with it.
_BATCHES: Final = 3


class Quarantine:
    """Remembers objects that were skipped, until a version of them decodes or a list shows that they are gone.

    The event loop writes it. Any thread may ask for reasons: each answer comes from one state.

    While a list is under way, the objects of the list before still count: what the new one brings takes their place
    when it is complete. An object that decodes again is on its way to the cache; until it is there, `reason` still
    knows it, so that it does not look deleted.

    Attributes:
        total: how many were skipped so far, in all.
        nameless: how many of those that count have no readable name; in a watch each version counts.
        leaving: objects that decode again: why they did not, and the number of batches until they are in the cache.
    """

    def __init__(self) -> None:
        self.total = self.nameless = self._listed_nameless = 0
        self._reasons: dict[str, str] = {}
        #: What the list under way brings, None between lists.
        self._listed: dict[str, str] | None = None
        self.leaving: dict[str, tuple[str, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._reasons)

    def __len__(self) -> int:
        return len(self._reasons) - ("" in self._reasons) + self.nameless

    @property
    def remembers(self) -> bool:
        """Whether `release` has something to do."""
        return bool(self._reasons or self._listed or self.leaving)

    def reasons(self) -> dict[str, str]:
        """Return a copy: key -> why the object does not decode. The key "" is that of objects without a name."""
        return self._reasons.copy()

    def reason(self, key: str) -> str | None:
        """Why an object is not in the cache in its last version; None if it is, or is gone."""
        reason = self._reasons.get(key)
        if reason is None and (leaving := self.leaving.get(key)) is not None:
            return leaving[0]
        return reason

    def add(self, error: DecodeError) -> bool:
        """Count one more that was skipped. Return whether it was not known to be broken before."""
        self.total += 1
        key, reason = error.key, str(error).removeprefix(f"{error.key}: ")
        known = self._reasons if self._listed is None else self._listed
        new = key not in known
        if not key:
            self._count_nameless()
        known[key] = self._reasons[key] = reason
        return new

    def _count_nameless(self) -> None:
        if self._listed is None:
            self.nameless += 1
        else:
            self._listed_nameless += 1
            self.nameless = max(self.nameless, self._listed_nameless)

    def release(self, key: str, *, gone: bool = False) -> bool:
        """Note that an object decodes, or is gone. Return whether it did not decode before."""
        if self._listed is not None:
            return self._listed.pop(key, None) is not None
        reason = self._reasons.get(key)
        if gone:
            self.leaving.pop(key, None)
        elif reason is not None:
            self.leaving[key] = reason, _BATCHES
        return self._reasons.pop(key, None) is not None

    def begin(self) -> None:
        """Note that a list begins."""
        self._listed, self._listed_nameless = {}, 0

    def end(self, names: Container[str]) -> None:
        """Note that the list is complete: what it brought is all that counts.

        Args:
            names: the keys of the objects in it.
        """
        listed = self._listed or {}
        self.leaving = {key: left for key, left in self.leaving.items() if key in names}
        for key, reason in self._reasons.items():
            if key and key not in listed and key in names:
                self.leaving[key] = reason, _BATCHES
        self._reasons, self._listed, self.nameless = listed, None, self._listed_nameless

    def clear(self) -> None:
        """Forget all: the collection is not followed any more."""
        self._reasons, self._listed, self.leaving, self.nameless = {}, None, {}, 0

    def settle(self) -> None:
        """Note that a batch is in the cache. To be called while `leaving`."""
        for key, (reason, batches) in list(self.leaving.items()):
            if batches > 1:
                self.leaving[key] = reason, batches - 1
            else:
                del self.leaving[key]

    def __str__(self) -> str:
        return summary(self._reasons, len(self))


def summary(keys: Collection[str], number: int) -> str:
    """Count the objects that do not decode, and name the first: "2 objects cannot be decoded (ns/a, ns/b)".

    Args:
        keys: of the objects; "" for all without a readable name.
        number: how many there are.
    """
    named = sorted(key for key in keys if key)[:3]
    count = f"{number} object{'s' if number > 1 else ''} cannot be decoded"
    if named:
        count += f" ({', '.join(named)}{', …' if number > len(named) else ''})"
    return f"{count}; a list with one whose name cannot be read deletes nothing" if "" in keys else count


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
            self._records.setdefault(item.key, UndecodablePlaceholder.of(item.key))
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


class Paging:
    """Asks for page after page.

    Args:
        options: how to list.
        incoming: takes what the pages bring.
    """

    def __init__(self, options: ReflectorOptions, incoming: IncomingList) -> None:
        self._options = options
        self._incoming = incoming
        self._token = ""
        self._paged = True
        #: Whether the page under way has brought anything, and anything that the pages before it had not.
        self._items = self._news = False

    @property
    def between_pages(self) -> bool:
        """Whether a page has come and another is to follow."""
        return bool(self._token)

    def begin(self, *, paged: bool = True) -> None:
        """A list begins, in pages or in one body."""
        self._token = ""
        self._paged = paged

    def request(self, version: str | None) -> ListOptions:
        """The request for the page that is due.

        Args:
            version: that is held already, "" if none is; None if none may be named.
        """
        if self._token:
            return self._options.next_page(self._token)
        return self._options.first_page(version, paged=self._paged)

    def ahead(self, token: str) -> ListOptions | None:
        """The request for the page after the one under way, which names this token; None if it goes in circles."""
        return self._options.next_page(token) if token != self._token else None

    def page_begins(self) -> None:
        """A page is on its way."""
        self._items = self._news = False

    def take(self, items: Collection[Record | DecodeError]) -> bool:
        """Takes in what the page brings; returns whether the list had not brought all of it before."""
        progress = self._incoming.take_all(items)
        self._items = self._items or bool(items)
        self._news = self._news or progress or any(isinstance(item, DecodeError) for item in items)
        return progress

    def is_empty(self) -> bool:
        """Whether the page has brought nothing."""
        return not self._items

    def is_circular(self, token: str) -> bool:
        """Whether the page, which names this token for the next one, shows that the server goes in circles."""
        return token == self._token or (self._items and not self._news)

    def turn(self, token: str) -> None:
        """The page is complete, and this is the next one's token."""
        self._token = token
