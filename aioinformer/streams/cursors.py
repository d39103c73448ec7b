"""Cursors: the text by which a reader goes on where another one has ended.

A cursor has, for each resource of a stream, the log, the position in it, and which of the requested namespaces the
reader could see. It is signed with a secret of the process, together with what it is bound to: the user, the selection
and the views. A cursor of another process, user or stream is no cursor, and neither is any other text.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import blake2b
from struct import Struct
from typing import Final, NamedTuple

from aioinformer.streams.log import Position

#: Epoch, position, and the visible namespaces as bits.
_PLACE: Final = Struct(">8sQQQI")
_SIGNATURE: Final = 16
#: So many namespaces can be requested one by one, at most: a bit for each.
NAMESPACES: Final = 32


class Place(NamedTuple):
    """Where a reader is in one log.

    Attributes:
        epoch: of the log.
        position: in it.
        visible: which of the requested namespaces the reader sees, as bits in their sorted order.
    """

    epoch: bytes
    position: Position
    visible: int = 0


def binding_of(secret: bytes, *parts: str) -> bytes:
    """Return the key that signs the cursors of readers with these properties, such as the user and the selection."""
    text = b"".join(b"%d:%b" % (len(part), part) for part in (each.encode() for each in parts))
    return blake2b(text, key=secret, digest_size=32).digest()


def write_cursor(binding: bytes, places: Sequence[Place]) -> str:
    """Return the cursor of a reader."""
    payload = b"".join([_PLACE.pack(each.epoch, *each.position, each.visible) for each in places])
    return urlsafe_b64encode(payload + _signature(binding, payload)).rstrip(b"=").decode()


def read_cursor(binding: bytes, text: str, count: int) -> list[Place] | None:
    """Return the places in a cursor; None if it is not a cursor of this process with this binding.

    Args:
        binding: of the reader.
        text: the cursor, from anywhere.
        count: the number of resources.
    """
    size = _PLACE.size * count + _SIGNATURE
    if len(text) != (4 * size + 2) // 3:
        return None
    try:
        data = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except ValueError:
        return None
    payload = data[:-_SIGNATURE]
    if len(data) != size or not hmac.compare_digest(data[-_SIGNATURE:], _signature(binding, payload)):
        return None
    return [
        Place(epoch, Position(sequence, base, until), visible)
        for epoch, sequence, base, until, visible in _PLACE.iter_unpack(payload)
    ]


def _signature(binding: bytes, payload: bytes) -> bytes:
    return blake2b(payload, key=binding, digest_size=_SIGNATURE).digest()  # a third of the time of HMAC-SHA256
