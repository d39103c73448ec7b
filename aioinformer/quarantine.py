"""Which objects cannot be decoded in their last version, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Container

    from aioinformer.errors import DecodeError

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
