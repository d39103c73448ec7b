"""The cache of an informer: what can be read from it, and what can be waited for in it.

Reading is a plain call that never waits. Waiting ends when the cache shows what was waited for, and is raised an error
once it never will: nobody waits for an informer that has stopped.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from aioinformer.cache.compressor import Compressor
from aioinformer.cache.indices import Indexers, field_paths
from aioinformer.cache.lister import ClusterLister, Lister
from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.storage import Storage
from aioinformer.cache.store import NAMESPACE_INDEX, Indexer
from aioinformer.cache.waiters import KeyWaiters, VersionWaiters
from aioinformer.concurrency import Latch, Slicer
from aioinformer.errors import InformerStopped, UsageError
from aioinformer.functions import plain_function
from aioinformer.handlers.stalls import Stalls
from aioinformer.informer.health import Undecodable
from aioinformer.resources.keys import meta_namespace_index_func
from aioinformer.resources.versions import version_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aioinformer.cache.objects.codec import BodyDecoder, Transform
    from aioinformer.resources.resource import Resource

T = TypeVar("T")


class InformerCache(Generic[T]):
    """An indexed copy of a collection, for readers and those who wait. What fills it is a `SharedIndexInformer`.

    Args:
        resource: what is in it.
        name: for people.
        slice_seconds: how long indexing may hold the event loop at a time.

        indexers, decoder, transform, storage, fields, max_undecodable: as for `SharedIndexInformer`.

    Attributes:
        start_requested: whether the informer runs, has run, or will run in a moment.
        start_hint: how to start it, for the error of a lister that is read before that.
    """

    start_hint = "enter `async with informer`, or await informer.run()"

    def __init__(
        self,
        resource: Resource[T],
        name: str,
        slice_seconds: float,
        *,
        indexers: Indexers[T] | None,
        decoder: BodyDecoder[T] | None,
        transform: Transform[T] | None,
        storage: str,
        fields: Iterable[str],
        max_undecodable: float | None,
    ) -> None:
        self.resource = resource
        self.name = name or f"informer of {resource.group_resource}"
        self._stalls = Stalls(self.name)
        self._compressor = Compressor() if storage == Storage.COMPRESSED else None
        self._objects: ObjectType[T] = ObjectType(
            resource,
            decoder,
            transform,
            storage=storage,
            fields=[*fields, *field_paths(indexers or {})],
            compression=self._compressor.tier if self._compressor is not None else None,
            timed=self._stalls.timed,
        )
        self._indexer: Indexer[T] = Indexer(
            to_view=self._objects.to_view, record_of=self._objects.record_of, timed=self._stalls.timed
        )
        self._indexer.add_indexers({NAMESPACE_INDEX: meta_namespace_index_func, **(indexers or {})})
        self._undecodable = Undecodable(self._indexer.store, max_undecodable, self._readability_changed)
        self._slice_seconds = slice_seconds
        self.start_requested = False
        self._synced = Latch()
        self._versions = VersionWaiters()
        self._keys: KeyWaiters[T] = KeyWaiters(self._versions)
        self._started = False
        self._stopped = False

    # Reading.

    def get_indexer(self) -> Indexer[T]:
        """The cache with its indices, for reading. The same one at any time, also after the stop."""
        return self._indexer

    def get_store(self) -> Indexer[T]:
        """The cache, for reading."""
        return self._indexer

    def lister(self) -> Lister[T]:
        """Reads the cache with label selectors and by namespace; for cluster-scoped resources, a `ClusterLister`."""
        if not self.resource.namespaced:
            return cast("Lister[T]", ClusterLister(self._indexer, self.resource, self))
        return Lister(self._indexer, self.resource, self)

    def undecodable(self) -> dict[str, str]:
        """Return the objects whose last version cannot be decoded, as far as that is known: key -> why.

        Of these objects the cache shows an earlier version, or nothing. Objects whose name cannot be read are one
        entry, under the key "". A body that is decoded when it is first read counts from its first failure.
        """
        return self._undecodable.reasons()

    def check_readable(self) -> None:
        """Do nothing if the informer runs, has run, or will run in a moment.

        Raises:
            UsageError: it was never asked to start, so that its cache is empty and stays so.
        """
        if not (self.start_requested or self._started or self._stopped):
            raise UsageError(f"the {self.name} was never started: {self.start_hint}")

    def check_absent(self, key: str) -> None:
        """Do nothing if an object that the cache does not hold does not exist, as far as that is known.

        Raises:
            DecodeError: it exists, and cannot be decoded.
        """
        self._undecodable.check(key)

    def is_ready(self) -> bool:
        """Whether the informer runs, has filled its cache, and so many objects can be decoded that it can be relied on.

        False while the collection is not empty and none of its objects can be decoded, until one has been; and while
        the share of objects that cannot be decoded is larger than `max_undecodable`, if that is given.
        """
        return self._started and not self._stopped and bool(self._synced) and self._undecodable.acceptable()

    def has_synced(self) -> bool:
        """Whether the cache has been filled from the first list; handlers may not have been told yet."""
        return bool(self._synced)

    def is_stopped(self) -> bool:
        """Whether the informer has stopped, for good."""
        return self._stopped

    @property
    def last_sync_resource_version(self) -> str:
        """The version up to which everything is in the cache; "" before the first list."""
        return self._indexer.last_store_sync_resource_version()

    # Configuration.

    def set_transform(self, transform: Transform[T]) -> None:
        """Lets a function see each object before anybody else does; what it returns is cached.

        Raises:
            UsageError: the informer was started.
        """
        self._before_start("the transform")
        self._objects.set_transform(transform)

    def add_indexers(self, indexers: Indexers[T]) -> None:
        """Adds index functions by name, now or while the informer runs; what is cached is indexed before this returns.

        That holds the event loop for as long as the functions take for everything in the cache. Once there is much of
        it, await `add_indexers_in_slices` instead.

        Raises:
            InformerStopped: the informer has stopped.
            UsageError: a name is taken; nothing is changed then.
        """
        self._before_indexers(indexers)
        self._indexer.add_indexers(indexers)
        self._check_indices()

    async def add_indexers_in_slices(self, indexers: Indexers[T]) -> None:
        """The same as `add_indexers`, while the event loop goes on: the indices can be asked once this returns.

        If it is cancelled, nothing is added.

        Raises:
            InformerStopped: the informer has stopped.
            UsageError: a name is taken; nothing is changed then.
        """
        self._before_indexers(indexers)
        slicer = Slicer(self._slice_seconds)
        with closing(self._indexer.store.adding_indexers(indexers)) as steps:
            for _ in steps:
                await slicer.pause()
        self._check_indices()

    def _before_indexers(self, indexers: Indexers[T]) -> None:
        if self._stopped:
            raise InformerStopped(f"indexers were not added to {self.name} because it has stopped already")
        if not self._started:
            self._objects.declare(field_paths(indexers))

    def _before_start(self, what: str) -> None:
        if self._started:
            raise UsageError(f"{self.name} was started already: set {what} before that")

    # Waiting.

    async def wait_for_sync(self) -> None:
        """Returns once `has_synced()`.

        Raises:
            InformerStopped: the informer stopped before that.
            Exception: what the informer crashed with.
        """
        await self._synced.wait()

    async def wait_for_resource_version(
        self,
        resource_version: str,
        timeout: float | None = 30.0,  # noqa: ASYNC109 - an outage is not to hold up a controller for ever
    ) -> None:
        """Return once the cache contains everything up to a version: of your own write, for one.

        The versions of Kubernetes' own servers are numbers, and any later one ends the wait. Those of other servers may
        be any text, which has no order: then the wait ends once the cache has seen exactly this version, now or among
        the last 1000.

        Args:
            resource_version: as in the metadata of what the server answered to a write of this resource.
            timeout: in seconds, None for no limit.

        Raises:
            UsageError: this is no version.
            TimeoutError: the cache did not come to it in time; the message has the version that it is at.
            InformerStopped: the informer stopped before that.
        """
        if not resource_version or type(resource_version) is not str:
            raise UsageError(f"resource_version must be what the server called it, a string, not {resource_version!r}")
        opaque = version_number(resource_version) < 0
        if opaque and any(record.resource_version == resource_version for record in self._indexer.store.items()):
            return
        deadline = asyncio.timeout(timeout)
        try:
            async with deadline:
                await self._versions.wait(resource_version)
        except TimeoutError:
            if not deadline.expired():
                raise
            hint = "; it is no number, and only seeing exactly this version ends the wait" if opaque else ""
            raise TimeoutError(
                f"{self.name}: resource version {resource_version!r} was not reached within {timeout} s, the cache is "
                f"at {self._versions.version!r}{hint}"
            ) from None

    @overload
    async def wait_for(
        self,
        key: str,
        predicate: None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> T: ...

    @overload
    async def wait_for(
        self,
        key: str,
        predicate: Callable[[T | None], Any],
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> T | None: ...

    async def wait_for(
        self,
        key: str,
        predicate: Callable[[T | None], Any] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - what most callers would otherwise write around it
    ) -> T | None:
        """Returns an object once something is true of it; at once if it is already.

        Args:
            key: `namespace/name`, or `name`.
            predicate: object, or None while it is absent -> whether that is what is waited for. By default, that it
                exists.
            timeout: in seconds, None for no limit.

        Raises:
            TimeoutError: it did not come true in time.
            InformerStopped: the informer stopped before that.
            Exception: what the predicate raised.
        """
        wanted = plain_function(predicate, "predicate") or _exists
        obj = self._indexer.get_by_key(key)
        if wanted(obj):
            return obj
        deadline = asyncio.timeout(timeout)
        try:
            async with deadline:
                return await self._keys.wait(key, wanted)
        except TimeoutError:
            if not deadline.expired():
                raise
            missed = "was not there" if predicate is None else f"did not satisfy {_name(predicate)}"
            raise TimeoutError(f"{self.name}: {key} {missed} within {timeout} s") from None

    # What the informer does.

    def _check_indices(self) -> None:
        """Index functions were called."""

    def _readability_changed(self) -> None:
        """The first object cannot be read, or the last of these was replaced; called in any thread."""

    def _end(self, failure: BaseException) -> None:
        """Nothing more will come: who waits is raised this."""
        self._stopped = True
        self._synced.fail(failure)
        self._versions.fail(failure)
        self._keys.fail(failure)


def _exists(obj: object) -> bool:
    return obj is not None


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__name__)
