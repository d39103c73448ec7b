"""Objects of one kind resemble each other: compressed with a dictionary of the first, they need a tenth of the room.

The dictionary is trained in a thread when enough objects have been seen; until then they are kept as they are. When
newer objects compress worse than those did, the dictionary has aged, and another one is trained. Each record knows the
dictionary it was packed with, which lives as long as any of them.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.cache.objects.record import NO_LABELS, Record
from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

#: So many objects make a dictionary.
SAMPLES = 400
DICTIONARY_SIZE = 64 * 1024
#: A dictionary has aged when objects need so much more room than those it was first used for.
AGED = 1.5
_LEVEL = 3
#: The share is looked at after so many objects.
_WINDOW = 1000


class Codec:
    """Packs and unpacks with one dictionary; may be used from any thread.

    Args:
        samples: what the dictionary is made of; without it, there is none.
    """

    def __init__(self, samples: list[bytes]) -> None:
        zstandard = _zstandard()
        dictionary = zstandard.train_dictionary(DICTIONARY_SIZE, samples)
        dictionary.precompute_compress(level=_LEVEL)
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL, dict_data=dictionary, write_content_size=True)
        self._decompressor = zstandard.ZstdDecompressor(dict_data=dictionary)
        self._lock = threading.RLock()  # the library's contexts are not to be used by two threads at once

    def pack(self, data: bytes) -> bytes:
        """The data, compressed."""
        with self._lock:
            packed: bytes = self._compressor.compress(data)
        # The library hands out a buffer as large as the data could have become; the copy is as large as it is.
        return bytes(memoryview(packed))

    def unpack(self, data: bytes) -> bytes:
        """What `pack` was given."""
        with self._lock:
            unpacked: bytes = self._decompressor.decompress(data)
        return unpacked


class PackedRecord(Record, gc=False, eq=False, kw_only=True):
    """A record whose object is kept compressed.

    Attributes:
        codec: unpacks it.
    """

    codec: Codec

    @property
    def json(self) -> bytes:
        return self.codec.unpack(self.raw)


class Compression:
    """The tier: packs records as soon as there is a dictionary.

    Args:
        wanted: called when `samples` are complete: a codec should be made of them and given to `adopt`.

    Attributes:
        samples: what the next dictionary is to be made of.
    """

    def __init__(self, wanted: Callable[[], None]) -> None:
        _zstandard()
        self._wanted = wanted
        self._codec: Codec | None = None
        self.samples: list[bytes] = []
        self._collecting = True
        self._packed = self._unpacked = self._count = 0
        self._first_share = 0.0

    @property
    def ready(self) -> bool:
        """Whether there is a dictionary."""
        return self._codec is not None

    def __call__(self, record: Record) -> Record:
        """The record, packed if that is possible yet."""
        if self._collecting:
            self._collect(record.json)
        if self._codec is None:
            return record
        packed = self.packed(record)
        self._watch_age(len(record.json), len(packed.raw))
        return packed

    def packed(self, record: Record) -> Record:
        """The record, packed with the dictionary of today."""
        assert self._codec is not None
        return PackedRecord(
            record.key,
            record.namespace,
            record.name,
            record.uid,
            record.resource_version,
            record.labels if record.labels is NO_LABELS else msgspec.Raw(bytes(record.labels)),
            self._codec.pack(record.json),
            record.fields,
            codec=self._codec,
        )

    def adopt(self, codec: Codec) -> None:
        """A dictionary was trained: it is used from now on."""
        self._codec = codec
        self.samples = []
        self._packed = self._unpacked = self._count = 0
        self._first_share = 0.0

    def _collect(self, data: bytes) -> None:
        self.samples.append(data)
        if len(self.samples) >= SAMPLES:
            self._collecting = False
            self._wanted()

    def _watch_age(self, unpacked: int, packed: int) -> None:
        self._unpacked += unpacked
        self._packed += packed
        self._count += 1
        if self._count < _WINDOW:
            return
        share = self._packed / max(1, self._unpacked)
        self._packed = self._unpacked = self._count = 0
        if not self._first_share:
            self._first_share = share
        elif share > AGED * self._first_share and not self.samples:
            self._collecting = True


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError:
        raise UsageError('storage="compressed" needs zstandard: pip install "aioinformer[compression]"') from None
    return zstandard
