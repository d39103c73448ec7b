"""Waits for a version of the cache, for a condition of one object, or for a write of one object; and their deadlines.

A change wakes only the waits that it may end.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from itertools import chain, islice
from math import inf
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import msgspec

from aioinformer.concurrency import Failure
from aioinformer.errors import USER_ERRORS, KeyFuncError, UsageError
from aioinformer.resources.keys import meta_namespace_key_func, metadata_field, metadata_of
from aioinformer.resources.versions import covers, version_number

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, KeysView

    from aioinformer.cache.objects.record import Record
    from aioinformer.resources.resource import Resource

T = TypeVar("T")


#: How many versions that are not numbers are remembered.
_REMEMBERED = 1000
#: How many waits end in one turn of the event loop because their time is over.
_ENDS_PER_TURN = 50


class VersionWaiters:
    """Waits for the version of the cache, which events, bookmarks and lists advance.

    Versions that are numbers have an order: a wait for a number ends with any later one. Other versions have no order:
    a wait ends once exactly this version has been seen. The last 1000 of them are remembered.

    Attributes:
        opaque: some version is not a number, so the versions of all objects must be recorded.
    """

    def __init__(self) -> None:
        self.version = ""
        self.opaque = False
        #: The waits for each version, in their order.
        self._waiters: dict[str, dict[asyncio.Future[None], None]] = {}
        #: A heap of the versions that are numbers. Versions whose waits have all ended stay until half of it are such.
        self._numbers: list[tuple[int, str]] = []
        self._seen: dict[str, None] = {}
        self._failure: Failure | None = None

    def reached(self, version: str) -> None:
        """Note that everything up to this version is in the cache."""
        self.version = version
        if not self._numbers and version.isdigit() and version.isascii() and len(version) < 32:
            return  # the most frequent case: `version_number` would say so, too
        if version_number(version) < 0:
            self.opaque = True
            self.saw(version)
            return
        numbers = self._numbers
        while numbers and covers(version, numbers[0][1]):
            for future in self._waiters.get(numbers[0][1], ()):
                _wake(future)
            # Only now: if waking failed, the next version repeats it. From now on, a wait that begins anew, since a
            # version alone is not its proof, does not join those that were woken.
            self._waiters.pop(heapq.heappop(numbers)[1], None)

    def saw(self, version: str) -> None:
        """Record a version without order, of an object or a collection that is in the cache."""
        self._seen.pop(version, None)
        self._seen[version] = None
        if len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]
        for future in self._waiters.get(version, ()):
            _wake(future)

    def check_waits(self) -> None:
        """Wake the waits for versions that the cache has: to wake them may have failed."""
        for version, futures in self._waiters.items():
            if self.includes(version):
                for future in futures:
                    _wake(future)

    def fail(self, error: BaseException) -> None:
        """Fail all waits: no further version will be reached."""
        self._failure = _fail(self._waiters, error)

    def includes(self, version: str) -> bool:
        """Return whether the cache has this version or a later one; if it is not a number, whether it was seen."""
        return version in self._seen or bool(self.version and covers(self.version, version))

    async def wait(self, version: str) -> None:
        """Return once the cache has this version or a later one; if it is not a number, once exactly it was seen."""
        if self.includes(version):
            return
        if self._failure is not None:
            raise self._failure.error
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self.waking(future, version):
            await future

    @contextmanager
    def waking(self, future: asyncio.Future[None], version: str) -> Iterator[None]:
        """Set a future once the cache has a version that it does not have yet, as `wait` does."""
        number = version_number(version)
        self.opaque = self.opaque or number < 0
        futures = self._waiters.setdefault(version, {})
        if not futures and number >= 0:
            heapq.heappush(self._numbers, (number, version))
        futures[future] = None
        try:
            yield
        finally:
            del futures[future]
            if not futures and self._waiters.get(version) is futures:
                del self._waiters[version]
                # Thousands of waits may end together, so a wait must not search the heap for its version.
                if len(self._numbers) > 2 * len(self._waiters):
                    self._numbers = [entry for entry in set(self._numbers) if entry[1] in self._waiters]
                    heapq.heapify(self._numbers)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _fail(waiters: Mapping[str, Iterable[asyncio.Future[Any]]], error: BaseException) -> Failure:
    for future in chain.from_iterable(waiters.values()):
        if not future.done():
            future.set_exception(error)
    return Failure(error)


class KeyWaiters(Generic[T]):
    """Waits for conditions of single objects. `versions` are the waits for versions of the same cache."""

    def __init__(self, versions: VersionWaiters | None = None) -> None:
        self.versions = versions or VersionWaiters()
        #: The predicates of the waits for each key.
        self._waiters: dict[str, dict[asyncio.Future[T | None], Callable[[T | None], Any]]] = {}
        self._failure: Failure | None = None

    def awaited(self) -> KeysView[str]:
        """Return a live view of the keys that have waits."""
        return self._waiters.keys()

    def changed(self, key: str, obj: T | None) -> None:
        """End the waits for a key whose condition holds for its new object, or for None after a deletion."""
        for future, predicate in list(self._waiters.get(key, {}).items()):
            if future.done():
                continue
            try:
                if predicate(obj):
                    future.set_result(obj)
            except StopIteration as error:  # which futures refuse, as coroutines do; an unguarded next() raises it
                failure = RuntimeError("the predicate raised StopIteration")
                failure.__cause__ = error
                future.set_exception(failure)
            except USER_ERRORS as error:
                future.set_exception(error)

    def fail(self, error: BaseException) -> None:
        """Fail all waits: no object will change."""
        self._failure = _fail(self._waiters, error)

    async def wait(self, key: str, predicate: Callable[[T | None], Any]) -> T | None:
        """Return the object of a key, or None if it is deleted, once the predicate holds for it."""
        if self._failure is not None:
            raise self._failure.error
        future: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        with self._checking(key, future, predicate):
            return await future

    @contextmanager
    def _checking(
        self, key: str, future: asyncio.Future[T | None], predicate: Callable[[T | None], Any]
    ) -> Iterator[None]:
        """Set a future once the predicate holds for the object of a key."""
        waiters = self._waiters.setdefault(key, {})
        waiters[future] = predicate
        try:
            yield
        finally:
            del waiters[future]
            if not waiters:
                del self._waiters[key]

    async def wait_for_write(self, shown: ShownWrite) -> None:
        """Return once the cache shows a write.

        The write is checked again when its object changes, and when the cache has its version.
        """
        while not shown():
            if self._failure is not None:
                raise self._failure.error
            future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            with (
                self._checking(shown.write.key, future, lambda _: shown()),
                self.versions.waking(future, shown.write.version or "0"),
            ):
                await future


class Deadlines:
    """Limits the time of waits.

    Thousands of waits may have the same deadline. Only a few of them end in each turn of the event loop.
    """

    def __init__(self) -> None:
        #: The waits whose time is over, in their order.
        self._due: dict[asyncio.Timeout, None] = {}

    @asynccontextmanager
    async def limit(self, seconds: float | None, describe: Callable[[], str]) -> AsyncIterator[None]:
        """Limit the time of a wait.

        Args:
            seconds: None for no limit.
            describe: returns what the error says.

        Raises:
            TimeoutError: the time is over.
        """
        deadline = asyncio.timeout(None)
        try:
            async with deadline:
                timer = None
                if seconds is not None and seconds < inf:
                    timer = asyncio.get_running_loop().call_later(seconds, self._add, deadline)
                try:
                    yield
                finally:
                    self._due.pop(deadline, None)
                    if timer is not None:
                        timer.cancel()
        except TimeoutError:
            if not deadline.expired():
                raise
            raise TimeoutError(describe()) from None

    def _add(self, deadline: asyncio.Timeout) -> None:
        if not self._due:
            asyncio.get_running_loop().call_soon(self._end_some)
        self._due[deadline] = None

    def _end_some(self) -> None:
        try:
            for deadline in list(islice(self._due, _ENDS_PER_TURN)):
                del self._due[deadline]
                deadline.reschedule(0.0)
        finally:
            if self._due:  # also after a failure: the others would never end
                asyncio.get_running_loop().call_soon(self._end_some)


class Write(NamedTuple):
    """A write, from the object that the server has returned.

    Attributes:
        key: of the object.
        uid: of the object, "" if it is not known; then its name identifies it.
        version: of the object after the write; "" if only its uid is known.
    """

    key: str
    uid: str
    version: str

    def is_of(self, record: Record | None) -> bool:
        """Return whether a record is a state of this object, and not of another one of the same name."""
        return record is not None and (not self.uid or record.uid == self.uid)


def write_of(written: Any, key_of_uid: Callable[[str], str]) -> Write:
    """Return the write that an object describes, or the Status of a complete deletion.

    Args:
        key_of_uid: returns the key of the cached object with a uid, "" for none.

    Raises:
        UsageError: it has no name, or neither a version nor a uid.
    """
    try:
        metadata = metadata_of(written)
        key = meta_namespace_key_func(written)
    except KeyFuncError:
        if isinstance(written, Mapping):
            details = written.get("details")
        else:
            details = getattr(written, "details", None)
        uid = details.get("uid") if isinstance(details, Mapping) else None
        if not uid:
            raise UsageError(
                f"written: expected an object as the server has returned it, not {type(written).__name__}"
            ) from None
        return Write(key_of_uid(uid), uid, "")
    uid = metadata_field(metadata, "uid", "uid") or ""
    version = metadata_field(metadata, "resource_version", "resourceVersion") or ""
    if not version:
        raise UsageError(f"written: {key} has no resourceVersion; pass the object that the server has returned")
    return Write(key, uid, version)


def check_resource(written: Any, resource: Resource[Any]) -> None:
    """Check that an object, or the Status of its deletion, is of a resource, as far as it says so.

    Raises:
        UsageError: it is of another resource.
    """
    get = written.get if isinstance(written, Mapping) else partial(getattr, written)
    own = getattr(written, "_resource", None)
    details = get("details", None)
    api_version = get("apiVersion", None) or getattr(written, "api_version", None)
    kind = get("kind", None)
    if own is not None:  # the JSON of metadata alone has another kind
        group = own.group
        kind = own.kind
    elif (kind == "Status" or get("metadata", None) is None) and isinstance(details, Mapping):
        group = details.get("group") or ""
        kind = details.get("kind")
    elif api_version and kind != "PartialObjectMetadata":
        group = str(api_version).rpartition("/")[0]
    else:
        return
    if kind and (group != resource.group or kind not in (resource.kind, resource.plural)):
        where = f"{kind}.{group}" if group else kind
        raise UsageError(f"written: {where} is not of {resource.gvr}; wait with an informer of its own resource")


class ShownWrite(msgspec.Struct, eq=False):
    """Whether a cache shows a write. It is called again after each change.

    The proof is the cached object itself, in this version or a later one; its removal from the cache; or the version of
    the whole cache, which only lists, events and bookmarks of its own watch advance.

    Attributes:
        item: returns the cached record of a key.
        reached: returns whether the whole cache has the version of the write.
        gone: wait until the object is not in the cache.
        outside: the object does not belong to the cache any more, or never did.
        was_cached: the cache has had the object since then.
    """

    write: Write
    item: Callable[[str], Record | None]
    reached: Callable[[Write], bool]
    gone: bool
    outside: bool
    was_cached: bool = False

    def __call__(self) -> bool:
        version = self.write.version
        record = self.item(self.write.key)
        if record is not None and self.write.is_of(record):
            self.was_cached = True
            if self.gone or not version:
                return False
            return covers(record.resource_version, version) or self.reached(self.write)
        return self.was_cached or self.outside or not version or self.reached(self.write)
