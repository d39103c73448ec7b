"""What the server makes up for new objects: uids, and the ends of generated names."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

# No vowels and nothing that looks like another sign: the API's alphabet for generated names.
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_PREFIX = 63 - 5


class Naming:
    """Makes names by chance.

    Args:
        rng: for all of them.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def uid(self) -> str:
        """A new uid."""
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))

    def generated(self, prefix: str) -> str:
        """A name that begins with as much of a prefix as there is room for."""
        return prefix[:_LONGEST_PREFIX] + "".join(self._rng.choices(_SUFFIX_ALPHABET, k=5))
