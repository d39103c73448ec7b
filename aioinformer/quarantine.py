"""Which objects cannot be decoded in their last version, and what to say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aioinformer.errors import DecodeError


class Quarantine:
    """Remembers objects that were skipped, until a version of them decodes or a list shows that all is well.

    Attributes:
        total: how many were skipped so far, in all.
    """

    def __init__(self) -> None:
        self.total = 0
        self._keys: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._keys)

    def keys(self) -> list[str]:
        """The keys of objects whose last version does not decode."""
        return list(self._keys)

    def add(self, error: DecodeError) -> bool:
        """One more was skipped; True if it was not known to be broken before."""
        self.total += 1
        new = error.key not in self._keys
        self._keys.add(error.key)
        return new

    def release(self, key: str) -> bool:
        """This object decodes, or is gone; True if it had not before."""
        if key not in self._keys:
            return False
        self._keys.discard(key)
        return True

    def clear(self) -> None:
        """A list begins: what it brings is all that counts."""
        self._keys.clear()

    def __str__(self) -> str:
        named = sorted(key for key in self._keys if key)[:3]
        count = f"{len(self._keys)} object{'s' if len(self._keys) > 1 else ''} cannot be decoded"
        if named:
            count += f" ({', '.join(named)}{', …' if len(self._keys) > len(named) else ''})"
        return f"{count}; a list with one whose name cannot be read deletes nothing" if "" in self._keys else count
