"""Shards: ranges of the hash of a uid or namespace, and selectors of objects, in the syntax of the API."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from aioinformer.errors import OptionError, SelectorError

UID: Final = "object.metadata.uid"
NAMESPACE: Final = "object.metadata.namespace"

#: The number of hashes.
HASHES: Final = 1 << 64

_OFFSET: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_MASK: Final = HASHES - 1

_RANGE: Final = re.compile(
    r"shardRange\(\s*(object\.metadata\.(?:uid|namespace))\s*,\s*'0x([0-9a-fA-F]{1,17})'\s*,\s*'0x([0-9a-fA-F]{1,17})'\s*\)"
)


def shard_hash(value: str) -> int:
    """Return the hash of a uid or namespace, which determines the shard of an object."""
    result = _OFFSET
    for byte in value.encode():
        result = (result ^ byte) * _PRIME & _MASK
    return result


@dataclass(frozen=True, slots=True)
class ShardRange:
    """A range of hashes of a field.

    Attributes:
        start: the first hash.
        end: the hash after the last one, up to 2**64.
        field: "object.metadata.uid" or "object.metadata.namespace".
    """

    start: int
    end: int
    field: str = UID

    def __post_init__(self) -> None:
        if self.field not in (UID, NAMESPACE):
            raise OptionError(f"field of a shard must be {UID!r} or {NAMESPACE!r}, not {self.field!r}")
        if not 0 <= self.start < self.end <= HASHES:
            raise OptionError(f"a shard must be 0 <= start < end <= 2**64, not {self.start:#x} and {self.end:#x}")

    def __str__(self) -> str:
        return f"shardRange({self.field}, '{self.start:#018x}', '{self.end:#018x}')"


@dataclass(frozen=True, slots=True)
class ShardSelector:
    """Selects the objects whose hashes are in any of several ranges.

    Attributes:
        ranges: at least one.
    """

    ranges: tuple[ShardRange, ...]

    def __post_init__(self) -> None:
        if not self.ranges:
            raise OptionError("a shard selector must have at least one range; leave it out to select everything")

    def matches(self, uid: str, namespace: str) -> bool:
        """Return whether an object is selected.

        Args:
            uid: of the object.
            namespace: of the object, "" if it has none.
        """
        field = ""
        for part in self.ranges:
            if part.field != field:
                field = part.field
                found = shard_hash(uid if field == UID else namespace)
            if part.start <= found < part.end:
                return True
        return False

    def __str__(self) -> str:
        return " || ".join(map(str, self.ranges))


def shard_selectors(count: int, field: str = UID) -> tuple[ShardSelector, ...]:
    """Return selectors of shards of equal size. Each object belongs to exactly one of them.

    Args:
        count: the number of shards.
        field: the hashed field. The uid spreads objects evenly; the namespace keeps a namespace in one shard.

    Raises:
        OptionError: the number or the field is invalid.
    """
    if not 1 <= count <= HASHES:
        raise OptionError(f"count of shards must be at least 1, not {count!r}")
    bounds = [HASHES * number // count for number in range(count + 1)]
    return tuple(ShardSelector((ShardRange(start, end, field),)) for start, end in pairwise(bounds))


def parse_shard_selector(text: str) -> ShardSelector:
    """Parse a selector in the API's syntax: ranges joined by `||`.

    Raises:
        SelectorError: the text is not a selector.
    """
    ranges = []
    for part in text.split("||"):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise SelectorError(
                f"{part.strip()!r} is not a range of a shard selector; write shardRange({UID}, '0x…', '0x…')"
            )
        try:
            ranges.append(ShardRange(int(match[2], 16), int(match[3], 16), match[1]))
        except OptionError as error:
            raise SelectorError(f"{part.strip()!r}: {error}") from None
    return ShardSelector(tuple(ranges))
