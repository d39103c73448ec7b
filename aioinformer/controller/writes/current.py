"""`CurrentCaches`: wait until caches have the present state of the server, including writes of other processes.

The metadata of a collection is listed once, consistently and page by page, and compared with the cache. What the cache
lacks is awaited.

The version of such a list alone does not help: it counts all writes to the server, and the watch of a collection
without changes reports it only with the next bookmark, up to a minute later. But if the cache reaches this version
meanwhile, the rest of the list is not read.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from aioinformer.backoff import Backoff, BackoffOptions
from aioinformer.cache.waiters import Write
from aioinformer.concurrency import Slicer, is_ending
from aioinformer.errors import AioinformerError, DecodeError
from aioinformer.logs import get_logger
from aioinformer.reflector.listwatch import ListWatch
from aioinformer.reflector.options import ListOptions, ReflectorOptions
from aioinformer.reflector.pager import read_page
from aioinformer.reflector.protocol.messages import PageEnded
from aioinformer.reflector.watch_events import RecordDecoder
from aioinformer.resources.versions import version_number

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from aioinformer.cache.objects.record import Record
    from aioinformer.cache.waiters import ShownWrite
    from aioinformer.informer.shared_informer import SharedIndexInformer
    from aioinformer.reflector.listwatch import ListerWatcher

_log = get_logger("aioinformer.controller")

_BACKOFF: Final = BackoffOptions(initial=0.5, cap=30.0)
#: Seconds until the server is read again. What a cache lacks may never arrive, such as after a restore from a backup.
#: They double each time.
_PATIENCE: Final = 5.0
_MOST_PATIENCE: Final = 80.0
_READING: Final = ReflectorOptions()


class StaleInput(AioinformerError):
    """The cache of an input does not have in time what the server has."""


class _Progress:
    """Of one informer: up to when its cache is current, and why it is not.

    Attributes:
        current_at: the cache has all that the server had at this time.
        problem: of the last attempt; "" for none.
        lock: held by the controller that reads the server.
    """

    def __init__(self) -> None:
        self.current_at = float("-inf")
        self.problem = ""
        self.lock = asyncio.Lock()


class CurrentCaches:
    """Waits until caches are current. The controllers of a manager share it, so that each informer is compared once.

    Args:
        random: returns numbers in [0, 1), for the delays after failures.
    """

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._known: WeakKeyDictionary[SharedIndexInformer[Any], _Progress] = WeakKeyDictionary()

    def is_current(self, informer: SharedIndexInformer[Any], since: float) -> bool:
        """Return whether a cache is known to have all that the server had at a time."""
        return self._read(informer).current_at >= since

    def problem(self, informer: SharedIndexInformer[Any]) -> str:
        """Return why the last attempt for an informer has failed; "" if it has not."""
        return self._read(informer).problem

    async def wait(self, informer: SharedIndexInformer[Any], since: float, subject: str) -> None:
        """Return once a cache has all that the server had at a time. Failures are retried with backoff until cancelled.

        Args:
            informer: must have synced.
            since: by the clock of the event loop.
            subject: the beginning of log lines about failures.
        """
        progress = self._progress(informer)
        backoff = Backoff(_BACKOFF, random=self._random)
        patience = _PATIENCE
        clock = asyncio.get_running_loop().time
        task = asyncio.current_task()
        async with progress.lock:
            progress.problem = ""  # of an earlier term
            while progress.current_at < since:
                began = clock()
                try:
                    await _catch_up(informer, patience)
                    progress.current_at = began
                    progress.problem = ""
                except (Exception, asyncio.CancelledError) as error:  # a transport of the user may raise anything
                    if is_ending(error, task):
                        raise
                    unknown = None if isinstance(error, AioinformerError) else error
                    progress.problem = str(error) if unknown is None else repr(error)
                    delay = 0.0 if isinstance(error, StaleInput) else backoff.next(clock())
                    when = f" in {delay:.1f} s" if delay else ""
                    line = "%s: the %s may lack writes: %s; comparing it with the server again%s"
                    _log.warning(line, subject, informer.name, progress.problem, when, exc_info=unknown)
                    if isinstance(error, StaleInput):
                        patience = min(2 * patience, _MOST_PATIENCE)
                    else:
                        await asyncio.sleep(delay)

    def _progress(self, informer: SharedIndexInformer[Any]) -> _Progress:
        return self._known.setdefault(informer, _Progress())

    def _read(self, informer: SharedIndexInformer[Any]) -> _Progress:
        """Return the same for a reader, which may be another thread, and changes nothing."""
        return self._known.get(informer) or _Progress()


async def _catch_up(informer: SharedIndexInformer[Any], patience: float) -> None:
    """Compare a cache with what the server has now, and wait until the cache has it.

    Raises:
        StaleInput: the cache does not have it within `patience` seconds after the list.
        Exception: the server cannot be read.
    """
    slicer = Slicer()
    lacking: list[ShownWrite] = []
    cached: list[Record] = list(informer.get_indexer().store.items())
    listed: set[str] = set()
    for lister_watcher in informer.lister_watchers():
        async with aclosing(_pages(lister_watcher)) as pages:
            async for version, items in pages:
                if version and informer.shows(informer.expect(Write("", "", version))):  # the cache has reached it
                    return
                known = len(listed)
                for item in items:
                    listed.add(item.key)
                    if not isinstance(item, DecodeError) and (missing := _lacks(informer, item)) is not None:
                        lacking.append(missing)
                    await slicer.pause()
                if items and len(listed) == known:
                    raise DecodeError("the server repeats the same page of the list")
    for record in cached if "" not in listed else ():  # an object without a readable name may be any of them
        if record.key not in listed:  # it was deleted, or has left the selection, since it was cached before the list
            lacking.append(informer.expect(Write(record.key, record.uid, ""), gone=True))
        await slicer.pause()
    await _until_shown(informer, lacking, patience)


def _lacks(informer: SharedIndexInformer[Any], item: Record) -> ShownWrite | None:
    """Return what proves that a cache has a listed object; None if it has it."""
    cached = informer.get_indexer().store.item(item.key)
    if cached is not None and (cached.uid, cached.resource_version) == (item.uid, item.resource_version):
        return None
    shown = informer.expect(Write(item.key, item.uid, item.resource_version))
    return None if informer.shows(shown) else shown


async def _until_shown(informer: SharedIndexInformer[Any], lacking: list[ShownWrite], patience: float) -> None:
    limit = asyncio.timeout(patience)
    try:
        async with limit:
            for shown in lacking:
                with suppress(DecodeError):  # the cache has received it
                    await informer.wait_until_shown(shown)
    except TimeoutError:
        if not limit.expired():
            raise
    unreadable = _never_shown(informer)
    left = [shown.write.key for shown in lacking if not shown() and not unreadable & {shown.write.key, ""}]
    if not left:
        return
    what = f"{left[0]} and {len(left) - 1} more" if len(left) > 1 else "".join(left)
    at = informer.last_sync_resource_version
    raise StaleInput(f"it is at version {at}, and lacks changes of {what} after {patience:g} s")


def _never_shown(informer: SharedIndexInformer[Any]) -> set[str]:
    """Return the keys of undecodable objects, if versions have no order: then nothing shows that they were received."""
    reflectors = informer.reflectors().values()
    ordered = all(each.is_ordered and version_number(each.last_sync_resource_version) >= 0 for each in reflectors)
    return set() if ordered else set(informer.undecodable())


async def _pages(lister_watcher: ListerWatcher[Any]) -> AsyncGenerator[tuple[str, list[Record | DecodeError]]]:
    """Yield the version of a consistent list, and the metadata of the objects of each page."""
    if isinstance(lister_watcher, ListWatch):
        lister_watcher = lister_watcher.only_metadata()
    decoder = RecordDecoder()
    options: ListOptions | None = ListOptions(limit=_READING.page_size)
    while options is not None:
        items: list[Record | DecodeError] = []
        version = ""
        token = ""
        async with aclosing(read_page(lister_watcher, options, decoder, _READING)) as answers:
            async for answer in answers:
                if isinstance(answer, PageEnded):
                    version = answer.resource_version
                    token = answer.continue_token
                else:
                    items += answer.items
        yield version, items
        options = ListOptions(limit=_READING.page_size, continue_token=token) if token else None
