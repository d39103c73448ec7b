"""The compressed storage tier: objects of one kind resemble each other, so a shared dictionary shrinks them to a tenth.

The dictionary is trained in a thread (by `Compressor`) once there are enough objects; until then they are stored
uncompressed. When newer objects compress worse than the first ones, the dictionary has aged, and another is trained.
Each record refers to the dictionary it was packed with.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from aioinformer.cache.objects.record import Record
from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

#: The number of objects from which a dictionary is trained.
SAMPLES = 400
DICTIONARY_SIZE = 64 * 1024
#: A dictionary has aged when objects take this many times the space of the first ones that it packed.
AGED = 1.5
_LEVEL = 3
#: Compare the compression ratio after this many objects.
_WINDOW = 1000


class Codec:
    """Packs and unpacks objects with one dictionary. Any thread may use it."""

    def __init__(self, samples: list[bytes]) -> None:
        zstandard = _zstandard()
        dictionary = zstandard.train_dictionary(DICTIONARY_SIZE, samples)
        dictionary.precompute_compress(level=_LEVEL)
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL, dict_data=dictionary, write_content_size=True)
        self._decompressor = zstandard.ZstdDecompressor(dict_data=dictionary)
        self._lock = threading.RLock()  # the library's contexts do not support concurrent calls

    def pack(self, data: bytes) -> bytes:
        """Compress data."""
        with self._lock:
            packed: bytes = self._compressor.compress(data)
        # The library returns a buffer of the largest possible size; the copy has the actual size.
        return bytes(memoryview(packed))

    def unpack(self, data: bytes) -> bytes:
        """Decompress data that `pack` has returned."""
        with self._lock:
            unpacked: bytes = self._decompressor.decompress(data)
        return unpacked


class PackedRecord(Record, gc=False, eq=False, kw_only=True):
    """A record that stores its object compressed, and the codec that unpacks it."""

    codec: Codec

    @property
    def json(self) -> bytes:
        return self.codec.unpack(self.raw)


class Compression:
    """The tier: packs records once there is a dictionary, and collects samples for the next one.

    Args:
        on_samples: called when `samples` is complete; pass a codec that is trained on them to `adopt`.

    Attributes:
        samples: objects for the next dictionary.
    """

    def __init__(self, on_samples: Callable[[], None]) -> None:
        _zstandard()
        self._on_samples = on_samples
        self._codec: Codec | None = None
        self.samples: list[bytes] = []
        self._collecting = True
        self._packed = 0
        self._unpacked = 0
        self._count = 0
        self._first_ratio = 0.0

    @property
    def ready(self) -> bool:
        """Whether there is a dictionary."""
        return self._codec is not None

    def __call__(self, record: Record) -> Record:
        """Return the record packed, or itself while there is no dictionary."""
        if self._collecting:
            self._collect(record.json)
        if self._codec is None:
            return record
        packed = self.packed(record)
        self._watch_age(len(record.json), len(packed.raw))
        return packed

    def packed(self, record: Record) -> Record:
        """Return the record, packed with the current dictionary."""
        assert self._codec is not None
        return record.with_raw(self._codec.pack(record.json), PackedRecord, codec=self._codec)

    def adopt(self, codec: Codec) -> None:
        """Use a codec with a new dictionary from now on."""
        self._codec = codec
        self.samples = []
        self._packed = 0
        self._unpacked = 0
        self._count = 0
        self._first_ratio = 0.0

    def _collect(self, data: bytes) -> None:
        self.samples.append(data)
        if len(self.samples) >= SAMPLES:
            self._collecting = False
            self._on_samples()

    def _watch_age(self, unpacked: int, packed: int) -> None:
        self._unpacked += unpacked
        self._packed += packed
        self._count += 1
        if self._count < _WINDOW:
            return
        ratio = self._packed / max(1, self._unpacked)
        self._packed = 0
        self._unpacked = 0
        self._count = 0
        if not self._first_ratio:
            self._first_ratio = ratio
        elif ratio > AGED * self._first_ratio and not self.samples:
            self._collecting = True


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError:
        raise UsageError('storage="compressed" needs zstandard: pip install "aioinformer[compression]"') from None
    return zstandard
