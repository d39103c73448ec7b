"""What feeds the cache of an informer: the interface, and its implementation for one collection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from aioinformer.concurrency import Latch
from aioinformer.reflector.state import InformerState, Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cache.waiters import VersionWaiters, Write
    from aioinformer.informer.health import Undecodable
    from aioinformer.informer.pipeline import Pipeline
    from aioinformer.informer.process_loop import Source
    from aioinformer.reflector.listwatch import ListerWatcher
    from aioinformer.reflector.reflector import Reflector

T = TypeVar("T")

NOT_STARTED: Final = InformerState(Phase.NEW, "", 0.0)


class PartOfStore(msgspec.Struct):
    """The part of a store that belongs to one of several sources."""

    all_keys: Callable[[], list[str]]
    item: Callable[[str], Any]


class Feed(msgspec.Struct):
    """What an informer offers to its sources.

    Attributes:
        name: of the informer.
        versions: those that the cache has reached.
        undecodable: the objects that cannot be decoded.
        pipeline: deletes what is no longer followed, and knows when a resync is due.
        new_source: lister-watcher, function, namespace -> a source, which calls the function after each batch with the
            version that it has reached, or "". A source with a namespace has its own part of the cache and its own
            quarantine, and does not resync by itself.
        processed: is called after each batch with the version up to which the cache is complete; "" if it is unknown.
    """

    name: str
    versions: VersionWaiters
    undecodable: Undecodable
    pipeline: Pipeline[Any]
    new_source: Callable[[ListerWatcher[Any], Callable[[str], None], str], Source]
    processed: Callable[[str], None]


class Sources(ABC, Generic[T]):
    """What feeds the cache of one informer.

    Attributes:
        lister_watcher: describes the scope of the informer.
        feed: what the informer offers. The informer sets it, and `syncing`, when it is created.
        syncing: is set when the cache shows the sources; None once it does.
    """

    lister_watcher: ListerWatcher[T]
    feed: Feed
    syncing: Latch | None

    @abstractmethod
    async def follow(self) -> None:
        """Fill the cache and keep it fresh, until cancelled. If it returns, it is called again."""

    @property
    @abstractmethod
    def state(self) -> InformerState:
        """The state of the reflector; of several, that of the one that has not been healthy for the longest time."""

    @abstractmethod
    def reflectors(self) -> dict[str, Reflector]:
        """Return the reflectors by namespace; by "" if there is one for all. Empty before the start."""

    @abstractmethod
    def lister_watchers(self) -> list[ListerWatcher[T]]:
        """Return what is listed and watched: one collection, or one for each namespace."""

    @abstractmethod
    def has_synced(self) -> bool:
        """Return whether the first list of each collection has been processed."""

    @abstractmethod
    def has_listed(self, key: str) -> bool:
        """Return whether the cache shows the first list of the collection with this key: what it lacks is absent."""

    @abstractmethod
    def outside(self, written: Any) -> str:
        """Return why an object in this state is not watched; "" if it may be."""

    @abstractmethod
    def has_reached(self, write: Write) -> bool:
        """Return whether the part of the cache with this object is complete up to a version."""

    def end(self, failure: BaseException) -> None:
        """Fail the waits for the sources: the informer has stopped."""
        if self.syncing is not None:
            self.syncing.fail(failure)


class OneCollection(Sources[T]):
    """One collection, which may be replaced by another one.

    Args:
        lister_watcher: lists and watches it.
    """

    def __init__(self, lister_watcher: ListerWatcher[T]) -> None:
        self.lister_watcher = lister_watcher
        self.source: Source | None = None

    async def follow(self) -> None:
        source = self.feed.new_source(self.lister_watcher, self.feed.processed, "")
        self.source = source
        await source.controller.run()  # returns when the collection is replaced

    def replace(self, lister_watcher: ListerWatcher[T]) -> None:
        """Follow another lister-watcher. Queued changes of the previous one are dropped."""
        self.lister_watcher = lister_watcher
        if self.source is not None:
            self.source.controller.stop()

    def select(self, lister_watcher: ListerWatcher[T]) -> Latch:
        """Do the same as `replace`, and return what is set when the cache shows the other collection."""
        syncing = Latch() if self.syncing is None else self.syncing
        self.syncing = syncing
        self.replace(lister_watcher)
        return syncing

    @property
    def state(self) -> InformerState:
        return NOT_STARTED if self.source is None else self.source.controller.reflector.state

    def reflectors(self) -> dict[str, Reflector]:
        return {} if self.source is None else {"": self.source.controller.reflector}

    def lister_watchers(self) -> list[ListerWatcher[T]]:
        return [self.lister_watcher]

    def has_synced(self) -> bool:
        source = self.source
        return source is not None and source.lister_watcher is self.lister_watcher and source.queue.has_synced()

    def has_listed(self, key: str) -> bool:
        source = self.source
        return source is not None and source.lister_watcher is self.lister_watcher and source.controller.has_listed

    def outside(self, written: Any) -> str:
        return excluded_by(self.lister_watcher, written)

    def has_reached(self, write: Write) -> bool:
        # Until the cache shows another selection, its version is that of the previous one.
        if self.syncing is not None or self.source is None:
            return False
        return self.feed.versions.includes(write.version) and self.source.has_order(write.version)


def excluded_by(lister_watcher: ListerWatcher[Any], written: Any) -> str:
    """Return why a lister-watcher does not watch an object in this state; "" if it may."""
    if (excludes := getattr(lister_watcher, "excludes", None)) is None:
        return ""
    from aioinformer.cache.objects.changes import as_whole

    item = as_whole(written)
    reason: str = excludes(written, whole=False) if item is None else excludes(item)
    return reason
