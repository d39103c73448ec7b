"""What the caches of a factory take: objects, bytes and indices, and a warning at a limit."""

from __future__ import annotations

import asyncio
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Final

import msgspec

from aioinformer.cache.objects.record import Record
from aioinformer.cache.objects.storage import DictRecord, Storage, only_metadata
from aioinformer.concurrency import Slicer, is_cancelled
from aioinformer.errors import OptionError
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aioinformer.informer.shared_informer import SharedIndexInformer

_log = get_logger("aioinformer.factory")
#: Seconds between two measurements for the limit.
PERIOD: Final = 60.0
#: A further warning follows when the caches have grown by this factor.
_GROWTH: Final = 1.1
#: Of how many objects the metadata are measured, and from how many it is worth naming.
_SAMPLE: Final = 100
#: Tiers that store a body which readers decode, and remember.
_DECODED_LATER: Final = (Storage.BYTES, Storage.STRIPPED, Storage.COMPRESSED)


class InformerMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What the cache of an informer takes. Bodies that readers keep, and what is shared with others, are not counted.

    Attributes:
        resource: group, version and plural, such as "apps/v1/deployments".
        storage: the tier.
        objects: how many.
        bytes: of the stored objects, with their metadata.
        index_bytes: of the indices.
        unread: of how many objects nothing has decoded the stored version; None if that is not known, as for your own
            classes, and for tiers that store no body or decode each object on arrival.
        metadata_bytes: what the objects would take with `storage="metadata"`, by a sample of 100; None if they have it.
    """

    resource: str
    storage: str
    objects: int
    bytes: int
    index_bytes: int
    unread: int | None
    metadata_bytes: int | None

    def __str__(self) -> str:
        text = f"{self.resource}: {self.objects:,} objects, {_megabytes(self.bytes + self.index_bytes)}"
        if self.unread is not None and self.objects:
            text += f", {self.unread * 100 // self.objects} % never read"
        if self.metadata_bytes is None or self.metadata_bytes * 2 > self.bytes:
            return text
        return f"{text}; storage='metadata' would take {_megabytes(self.metadata_bytes + self.index_bytes)}"


async def memory_of(informer: SharedIndexInformer[Any], storage: str) -> InformerMemory:
    """Measure the cache of an informer in slices, so that the event loop is not blocked."""
    slicer = Slicer()
    store = informer.get_indexer().store
    items = [item for item in store.items() if isinstance(item, Record)]
    size = 0
    unread = 0
    index_size = 0
    bare = 0
    for record in items:
        size += _size(record)
        unread += record.body is None
        await slicer.pause()
    for index in tuple(store.every_index):
        for part in index.parts():
            index_size += getsizeof(part)
            await slicer.pause()
    sample = items[:: max(1, len(items) // _SAMPLE)] if storage != Storage.METADATA else []
    for record in sample:
        try:
            bare += _size(only_metadata(record))
        except (msgspec.DecodeError, UnicodeDecodeError):
            bare += _size(record)
        await slicer.pause()
    return InformerMemory(
        resource=informer.resource.gvr,
        storage=storage,
        objects=len(items),
        bytes=size,
        index_bytes=index_size,
        unread=unread if storage in _DECODED_LATER and informer.resource.decoder is None else None,
        metadata_bytes=bare * len(items) // len(sample) if sample else None,
    )


def _size(record: Record) -> int:
    # The labels are a slice of the bytes, whose size Python cannot tell: some 50 bytes.
    found = [record, record.raw, record.key, record.name, record.uid, record.resource_version, record.fields]
    found += [record.recall()] if isinstance(record, DictRecord) else []
    for each in found:  # it grows
        if isinstance(each, (dict, list, tuple)):
            found += each.values() if isinstance(each, dict) else each
    return sum(map(getsizeof, found))


class MemoryLimit:
    """Warns when the caches take more than a limit in bytes, and again when they have grown by a tenth.

    Raises:
        OptionError: the limit is no number of bytes.
    """

    def __init__(self, limit: int) -> None:
        if type(limit) is not int or limit < 1:
            raise OptionError(f"memory_limit must be a number of bytes, 1 or more, or None for no limit, not {limit!r}")
        self._limit = limit
        self._warned = 0.0

    async def watch(self, measure: Callable[[], Awaitable[dict[str, InformerMemory]]]) -> None:
        """Measure the caches each minute, and log a warning if they take too much.

        A measurement that fails, for want of memory for example, must not end the informers. The first one in a row is
        logged.
        """
        failed = False
        while True:
            await asyncio.sleep(PERIOD)
            try:
                self.check(list((await measure()).values()))
                failed = False
            except Exception as error:
                if is_cancelled():
                    raise asyncio.CancelledError from error  # which `error` has replaced
                if not failed:
                    _log.exception("the caches could not be measured; the next attempt follows in %g s", PERIOD)
                failed = True

    def check(self, found: list[InformerMemory]) -> None:
        """Log a warning if these caches take too much."""
        total = sum(each.bytes + each.index_bytes for each in found)
        if total <= self._limit:
            self._warned = 0.0
        elif total > self._warned * _GROWTH:
            self._warned = total
            most = "; ".join(map(str, sorted(found, key=lambda each: -each.bytes)[:3]))
            limit = _megabytes(self._limit)
            _log.warning("the caches take %s, more than memory_limit (%s): %s", _megabytes(total), limit, most)


def _megabytes(count: float) -> str:
    return f"{count / 1e6:,.{0 if count >= 1e7 else 1}f} MB"
