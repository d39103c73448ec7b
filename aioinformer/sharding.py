"""Shards: a collection divided by the hash of what never changes of an object, its uid or its namespace.

An object is in a shard if the 64-bit FNV-1a hash of that field lies in one of the shard's ranges (SHD-01). The hash is
that of the API server, so that server and client agree. As the field never changes, no object ever moves (SHD-04): who
takes another shard makes another informer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from aioinformer.errors import OptionError, SelectorError

UID: Final = "object.metadata.uid"
NAMESPACE: Final = "object.metadata.namespace"

#: One more than the largest hash.
HASHES: Final = 1 << 64

_OFFSET: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3

_RANGE: Final = re.compile(
    r"shardRange\(\s*(object\.metadata\.(?:uid|namespace))\s*,\s*'0x([0-9a-fA-F]{1,17})'\s*,\s*'0x([0-9a-fA-F]{1,17})'\s*\)"
)


def shard_hash(value: str) -> int:
    """The hash that says in which shard an object with this uid, or namespace, is."""
    result = _OFFSET
    for byte in value.encode():
        result = (result ^ byte) * _PRIME % HASHES
    return result


@dataclass(frozen=True, slots=True)
class ShardRange:
    """A part of the hashes of a field.

    Attributes:
        start: the first hash.
        end: the one behind the last, up to 2**64.
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
    """Some ranges: the objects that are in any of them.

    Attributes:
        ranges: at least one.
    """

    ranges: tuple[ShardRange, ...]

    def __post_init__(self) -> None:
        if not self.ranges:
            raise OptionError("a shard selector must have at least one range; leave it out to select everything")

    def matches(self, uid: str, namespace: str) -> bool:
        """Whether an object is selected.

        Args:
            uid: of the object.
            namespace: of the object, "" if it has none.
        """
        hashes: dict[str, int] = {}
        for part in self.ranges:
            if part.field not in hashes:
                hashes[part.field] = shard_hash(uid if part.field == UID else namespace)
            if part.start <= hashes[part.field] < part.end:
                return True
        return False

    def __str__(self) -> str:
        return " || ".join(map(str, self.ranges))


def shard_selectors(count: int, field: str = UID) -> tuple[ShardSelector, ...]:
    """So many shards of equal size, which together are everything.

    Args:
        count: how many.
        field: what is hashed: the uid spreads objects evenly, the namespace keeps those of one together.

    Raises:
        OptionError: there cannot be so many, or by this field.
    """
    if not 1 <= count <= HASHES:
        raise OptionError(f"count of shards must be at least 1, not {count!r}")
    bounds = [HASHES * number // count for number in range(count + 1)]
    return tuple(ShardSelector((ShardRange(start, end, field),)) for start, end in pairwise(bounds))


def parse_shard_selector(text: str) -> ShardSelector:
    """A selector as the API writes it: ranges joined by `||`.

    Raises:
        SelectorError: it is none.
    """
    ranges = []
    for part in text.split("||"):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise SelectorError(
                f"{part.strip()!r} is no range of a shard selector; write shardRange({UID}, '0x…', '0x…')"
            )
        try:
            ranges.append(ShardRange(int(match[2], 16), int(match[3], 16), match[1]))
        except OptionError as error:
            raise SelectorError(f"{part.strip()!r}: {error}") from None
    return ShardSelector(tuple(ranges))
