"""The cache of an informer, for reads and waits.

Reads are plain calls that never wait. Waits return once the condition holds, and raise if the informer stops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast, overload

from aioinformer.cache.indices import Indexers, field_paths
from aioinformer.cache.lister import ClusterLister, Lister
from aioinformer.cache.objects.codec import BodyDecoder, ObjectType, Transform
from aioinformer.cache.objects.storage import Storage
from aioinformer.cache.store import NAMESPACE_INDEX, Indexer
from aioinformer.cache.waiters import Deadlines, KeyWaiters, ShownWrite, VersionWaiters, Write, check_resource, write_of
from aioinformer.concurrency import Latch, Slicer
from aioinformer.errors import DecodeError, InformerStopped, UsageError
from aioinformer.functions import plain_function
from aioinformer.handlers.repeated import RepeatedErrors
from aioinformer.handlers.stalls import Stalls
from aioinformer.informer.health import Undecodable
from aioinformer.informer.options import RunOptions
from aioinformer.informer.sources import Sources
from aioinformer.logs import get_logger
from aioinformer.resources.keys import meta_namespace_index_func
from aioinformer.resources.resource import Resource
from aioinformer.resources.versions import covers, version_number

if TYPE_CHECKING:
    from aioinformer.cache.compressor import Compressor

T = TypeVar("T")

_log = get_logger("aioinformer.cache")

_UNSET: Any = object()


class InformerCache(Generic[T]):
    """An indexed copy of a collection, for reads and waits. `SharedIndexInformer` fills it.

    Args:
        resource: of the objects.
        name: for humans.
        options: how the informer runs.

        indexers, decoder, transform, storage, fields: as for `SharedIndexInformer`.

    Attributes:
        start_requested: whether the informer runs, has run, or is about to run.
        start_hint: how to start it, for the error of a lister that is read before the start.
    """

    _sources: Sources[T]

    start_hint = "enter `async with informer`, or await informer.run()"

    def __init__(
        self,
        resource: Resource[T],
        name: str,
        options: RunOptions,
        *,
        indexers: Indexers[T] | None,
        decoder: BodyDecoder[T] | None,
        transform: Transform[T] | None,
        storage: str,
        fields: Iterable[str],
    ) -> None:
        self.resource = resource
        self.name = name or f"informer of {resource.group_resource}"
        self._stalls = Stalls(self.name, errors=RepeatedErrors(_log))
        self._compressor = _compressor() if storage == Storage.COMPRESSED else None
        self._objects: ObjectType[T] = ObjectType(
            resource,
            decoder,
            transform,
            storage=storage,
            fields=[*fields, *field_paths(indexers or {})],
            compression=self._compressor.tier if self._compressor is not None else None,
            timed=self._stalls.timed,
            log_error=self._stalls.errors.report,
        )
        self._indexer: Indexer[T] = Indexer(
            to_view=self._objects.to_view,
            record_of=self._objects.record_of,
            timed=self._stalls.timed,
            log_error=self._stalls.errors.report,
        )
        self._indexer.add_indexers({NAMESPACE_INDEX: meta_namespace_index_func, **(indexers or {})})
        self._undecodable = Undecodable(self._indexer.store, options.max_undecodable, self._readability_changed)
        self._options = options
        self.start_requested = False
        self._synced = Latch()
        self._versions = VersionWaiters()
        self._keys: KeyWaiters[T] = KeyWaiters(self._versions)
        self._deadlines = Deadlines()
        self._started = False
        self._stopped = False

    # Reading.

    def get_indexer(self) -> Indexer[T]:
        """Return the cache with its indices, for reading. It is always the same one, also after the stop."""
        return self._indexer

    def get_store(self) -> Indexer[T]:
        """Return the cache, for reading."""
        return self._indexer

    def lister(self) -> Lister[T]:
        """Return a lister, for reads by namespace and label selector; a `ClusterLister` if the scope is the cluster."""
        if not self.resource.namespaced:
            return cast("Lister[T]", ClusterLister(self._indexer, self.resource, self))
        return Lister(self._indexer, self.resource, self)

    def build_decoders(self) -> None:
        """Build the decoders of the objects now instead of at the first read of one, which would block its reader.

        A kind with many fields, such as pods, takes 13 ms. May be repeated.
        """
        self._objects.build_decoders()

    def undecodable(self) -> dict[str, str]:
        """Return the objects whose last version is known to be undecodable: key -> why.

        Of these objects, the cache shows an earlier version or none. All objects without a readable name are one entry,
        under the key "". A body is decoded on its first read, and is included from the first failure.
        """
        return self._undecodable.reasons()

    @property
    def undecodable_handlers(self) -> list[Callable[[str, str, str], None]]:
        """Functions that are called with the key of each object that is skipped, why, and its version.

        They are called with "" and "" when a version of it can be decoded, or the object is gone.
        """
        return self._undecodable.handlers

    def check_readable(self) -> None:
        """Check that the informer runs, has run, or is about to run.

        Raises:
            UsageError: it was never started, so its cache is empty.
        """
        if not (self.start_requested or self._started or self._stopped):
            raise UsageError(f"the {self.name} was never started: {self.start_hint}")

    def check_absent(self, key: str) -> None:
        """Check that an object which is not in the cache is not known to exist.

        Raises:
            DecodeError: the object exists, and cannot be decoded.
        """
        self._undecodable.check(key)

    def check_fresh(self, within: float) -> None:
        """Check that the cache follows the server; `ObservedInformer` knows."""
        raise NotImplementedError

    def is_ready(self) -> bool:
        """Return whether the informer runs, has synced, and enough objects can be decoded.

        False if the collection has objects and none of them has ever been decoded, and while the share of undecodable
        objects is larger than `max_undecodable`, if given.
        """
        return self._started and not self._stopped and bool(self._synced) and self._undecodable.is_acceptable()

    def has_synced(self) -> bool:
        """Return whether the cache contains the first list. It may not have been delivered to handlers yet."""
        return bool(self._synced)

    def is_stopped(self) -> bool:
        """Return whether the informer has stopped."""
        return self._stopped

    @property
    def storage(self) -> Storage:
        """The storage tier of the objects."""
        return self._objects.storage

    @property
    def last_sync_resource_version(self) -> str:
        """The version up to which the cache is complete; "" before the first list."""
        return self._indexer.last_store_sync_resource_version()

    # Configuration.

    def set_transform(self, transform: Transform[T]) -> None:
        """Set the function that is called with each object before it is cached. Its result is cached.

        Raises:
            UsageError: the informer was started.
        """
        self._before_start("the transform")
        self._objects.set_transform(transform)

    def add_indexers(self, indexers: Indexers[T]) -> None:
        """Add index functions by name, before or while the informer runs. Cached objects are indexed before the return.

        This blocks the event loop while the functions are called for all cached objects. For large caches, await
        `add_indexers_in_slices` instead.

        Raises:
            InformerStopped: the informer has stopped.
            UsageError: a name is taken. No indexer was added.
        """
        self._before_indexers(indexers)
        self._indexer.add_indexers(indexers)
        self._check_indices()

    async def add_indexers_in_slices(self, indexers: Indexers[T]) -> None:
        """Do the same as `add_indexers`, in slices. The indices can be read after the return.

        If this is cancelled, no indexer is added.

        Raises:
            InformerStopped: the informer has stopped.
            UsageError: a name is taken. No indexer was added.
        """
        self._before_indexers(indexers)
        slicer = Slicer()
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
        """Wait until the cache has synced.

        Raises:
            InformerStopped: the informer stopped before that.
            Exception: the informer crashed with this.
        """
        await self._synced.wait()

    async def wait_for_resource_version(self, resource_version: str, timeout: float | None = 30.0) -> None:
        """Wait until the cache contains everything up to a version, for example of your own write.

        The versions of Kubernetes' own servers are numbers, and any later version ends the wait. Versions of other
        servers may be any text, without an order. Then the wait ends when this version is one of the last 1000 that the
        cache has received.

        Args:
            resource_version: from the metadata in the server's response to a write of this resource.
            timeout: in seconds, None for no limit.

        Raises:
            UsageError: the version is not a non-empty string.
            TimeoutError: the cache did not reach the version in time. The message has the version of the cache.
            InformerStopped: the informer stopped before that.
        """
        if not resource_version or type(resource_version) is not str:
            raise UsageError(
                f"resource_version must be the server's resourceVersion, a string, not {resource_version!r}"
            )
        opaque = version_number(resource_version) < 0
        if opaque and any(record.resource_version == resource_version for record in self._indexer.store.items()):
            return
        async with self._deadlines.limit(
            timeout,
            lambda: (
                f"{self.name}: resource version {resource_version!r} was not reached within {timeout} s, the cache is "
                f"at {self._versions.version!r}{_hint(resource_version)}"
            ),
        ):
            await self._versions.wait(resource_version)

    @overload
    async def wait_for(self, key: str, predicate: None = None, timeout: float | None = None) -> T: ...

    @overload
    async def wait_for(
        self, key: str, predicate: Callable[[T | None], Any], timeout: float | None = None
    ) -> T | None: ...

    @overload
    async def wait_for(self, written: Any, /, *, gone: bool = False, timeout: float | None = 30.0) -> T | None: ...

    async def wait_for(
        self,
        key: Any,
        predicate: Callable[[T | None], Any] | None = None,
        timeout: float | None = _UNSET,
        *,
        gone: bool = False,
    ) -> T | None:
        """Wait until an object satisfies a condition, or until the cache shows a write. Return the cached object.

        With a key, return immediately if the condition holds already. What the cache lacks does not exist only once
        the cache has synced; before that, no object is judged to be absent.

        With an object that the server has returned for a write, or for a live read, wait until the cache shows this
        state of the object or a later one. A version that another request has returned never counts as a version of the
        cache: the wait ends with an event, a list or a bookmark of the informer itself. It ends immediately if the
        informer does not watch such objects, because of its namespace or selectors, and has none in its cache. Of a
        deletion, pass what the server has returned: the wait ends when the cache shows the deletion mark, or does not
        have the object any more.

        Args:
            key: `namespace/name`, or `name`; or the object that a write has returned.
            predicate: object, or None if it does not exist -> whether the wait ends. By default, the wait ends when the
                object exists. Before the cache has synced, it is not called with None. Only with a key.
            timeout: in seconds, None for no limit. By default, there is none with a key, and 30 s with an object.
            gone: wait until the cache does not have the object with this uid any more. Only with an object.

        Returns:
            The cached object. With an object, None if the cache does not have it: it is outside of the informer's
            selection, or was deleted meanwhile.

        Raises:
            TimeoutError: the condition did not hold in time.
            InformerStopped: the informer stopped before that.
            DecodeError: the object cannot be decoded in the version of the write; or, with a key, the condition holds
                for an object that does not exist, but this one exists and cannot be decoded.
            UsageError: the object has no version, or the arguments do not fit together.
            Exception: the predicate raised this.
        """
        if not isinstance(key, str):
            if predicate is not None:
                raise UsageError("wait_for: pass a predicate with a key, not with an object")
            return await self._wait_for_write(key, 30.0 if timeout is _UNSET else timeout, gone)
        if gone:
            raise UsageError("wait_for: gone=True needs the object, since another one may have the same key")
        limit = None if timeout is _UNSET else timeout
        condition = plain_function(predicate, "predicate") or _exists

        def holds(obj: T | None) -> Any:
            return (obj is not None or self._sources.has_listed(key)) and condition(obj)

        def describe() -> str:
            missed = "did not exist" if predicate is None else f"did not satisfy {_name(predicate)}"
            return f"{self.name}: {key} {missed} within {limit} s{'' if self._sources.has_listed(key) else _NOT_LISTED}"

        obj = self._indexer.get_by_key(key)
        if not holds(obj):
            async with self._deadlines.limit(limit, describe):
                obj = await self._keys.wait(key, holds)
        if obj is None:
            self.check_absent(key)
        return obj

    async def _wait_for_write(self, written: Any, timeout: float | None, gone: bool) -> T | None:
        check_resource(written, self.resource)
        write = write_of(written, self._key_of_uid)

        def describe() -> str:
            record = self._indexer.store.item(write.key)
            if record is None:
                cached = "no such object"
            else:
                cached = f"version {record.resource_version!r} of it"
            what = "deletion" if gone else f"version {write.version!r}"
            return (
                f"{self.name}: the {what} of {write.key} was not received within {timeout} s; the cache has {cached}, "
                f"and is at {self._versions.version!r}{_hint(write.version)}"
            )

        async with self._deadlines.limit(timeout, describe):
            if not write.version:  # only the cache says which object has the uid
                await self._synced.wait()
                write = write_of(written, self._key_of_uid)
            await self.wait_until_shown(self.expect(write, written if write.version else None, gone=gone))
        if write.is_of(self._indexer.store.item(write.key)):
            return self._indexer.get_by_key(write.key)
        return None

    # For controllers, which wait for many writes.

    def expect(self, write: Write, written: Any = None, *, gone: bool = False) -> ShownWrite:
        """Return what `shows` and `wait_until_shown` take: a write, and what proves that the cache has it.

        Args:
            write: the write.
            written: the object, for the question of whether the informer watches it; None if it is not known.
            gone: the cache shows the write when it does not have the object any more.
        """
        outside = written is not None and not self.watches(written)
        return ShownWrite(write, self._indexer.store.item, self._sources.has_reached, gone=gone, outside=outside)

    def watches(self, obj: Any) -> bool:
        """Return whether the namespace and the selectors of the informer include an object in this state."""
        return not self._sources.outside(obj)

    def shows(self, shown: ShownWrite) -> bool:
        """Return whether the cache shows a write now, and its object can be decoded."""
        if not shown():
            return False
        try:
            self._check_decoded(shown.write)
        except DecodeError:
            return False
        return True

    async def wait_until_shown(self, shown: ShownWrite) -> None:
        """Return once the cache shows a write.

        Raises:
            InformerStopped: the informer stopped before that.
            DecodeError: the object cannot be decoded in the version of the write.
        """
        await self._keys.wait_for_write(shown)
        self._check_decoded(shown.write)

    def _check_decoded(self, write: Write) -> None:
        record = self._indexer.store.item(write.key)
        if record is None or not write.is_of(record) or not covers(record.resource_version, write.version):
            self._undecodable.check(write.key)

    def _key_of_uid(self, uid: str) -> str:
        return next((record.key for record in self._indexer.store.items() if record.uid == uid), "")

    # Called by the informer.

    def _check_indices(self) -> None:
        """Check whether index functions raised. It is called after they were called."""

    def _readability_changed(self) -> None:
        """Update the state after the first failed read, or when the last such object was replaced; in any thread."""

    def _end(self, failure: BaseException) -> None:
        """Stop the informer: current and future waits raise `failure`."""
        self._stopped = True
        self._synced.fail(failure)
        self._versions.fail(failure)
        self._keys.fail(failure)


_NOT_LISTED: Final = "; the cache has not synced, so it does not show which objects do not exist"


def _hint(version: str) -> str:
    if version_number(version) < 0:
        return "; it is not a number, so only this version itself ends the wait"
    return ""


def _exists(obj: object) -> bool:
    return obj is not None


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__name__)


def _compressor() -> Compressor:
    from aioinformer.cache.compressor import Compressor  # loads anyio, which the other tiers do not need

    return Compressor()
