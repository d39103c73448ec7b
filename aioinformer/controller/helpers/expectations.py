"""`Expectations`: creations and deletions of a controller that its caches do not show yet."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from aioinformer.controller.helpers.objects import is_being_deleted
from aioinformer.controller.inputs.mapping import Owns
from aioinformer.controller.request import RetryAfter
from aioinformer.errors import AioinformerError, ApiError, ApiNotFound, OptionError, WriteOutcomeUnknown
from aioinformer.logs import get_logger
from aioinformer.resources.keys import metadata_field, metadata_of, object_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.controller.inputs.loops import LoopDetector
    from aioinformer.controller.inputs.mapping import Enqueue
    from aioinformer.controller.request import Cause, Request
    from aioinformer.handlers.registration import HandlerRegistration
    from aioinformer.informer.shared_informer import SharedIndexInformer
    from aioinformer.resources.keys import ObjectName
    from aioinformer.resources.resource import Resource

T = TypeVar("T")

_log = get_logger("aioinformer.controller")


class _Expected(msgspec.Struct):
    """What is expected for one key; objects are named by resource and key."""

    until: float
    in_flight: int = 0  # creations without an answer
    lost: int = 0  # creations whose answer was lost
    created: set[str] = msgspec.field(default_factory=set)
    deleted: set[str] = msgspec.field(default_factory=set)
    seen: set[str] = msgspec.field(default_factory=set)  # shown, and named by no answer yet

    @property
    def is_fulfilled(self) -> bool:
        return not (self.in_flight or self.created or self.deleted) and self.lost <= len(self.seen)


class Expectations:
    """The creations and deletions of a controller that its caches do not show yet, by the key of the owner.

    A controller that counts objects must not count before its caches have its last writes. For answered writes, the
    writes of `request.client` ensure that already. What they cannot know is a create with `generateName` whose answer
    was lost, and which the server processes late: a key with expectations then waits for one more object that no answer
    has named, or until the expectations expire.

        expectations = Expectations()

        @manager.controller(REPLICAS, owns=[expectations.owns(core_v1.PODS)])
        async def replicas(request):
            expectations.check(request)
            if len(request.owned(core_v1.PODS)) < 3:
                await expectations.create(request, core_v1.PODS, pod_for(request.object))

    Args:
        timeout: seconds after the last write after which the expectations of a key expire, and the caches count.
        clock: returns seconds; by default, the clock of the event loop.

    Raises:
        OptionError: the timeout is not positive.
    """

    def __init__(self, *, timeout: float = 300.0, clock: Callable[[], float] | None = None) -> None:
        if not 0 < timeout < float("inf"):
            raise OptionError(f"Expectations: timeout must be a positive number of seconds, not {timeout!r}")
        self._timeout = timeout
        self._clock = clock or (lambda: asyncio.get_running_loop().time())
        self._expected: dict[ObjectName, _Expected] = {}

    def owns(self, resource: Resource[T], **options: Any) -> Owns[T]:
        """Return the input of the controller whose objects are expected: an `Owns` with these arguments."""
        return _Observed(self, resource, **options)

    def check(self, request: Request[Any]) -> None:
        """Raise `RetryAfter` while the caches lack a write of the key. Call it first in each run.

        The input runs the key again when it shows the write. What was expected for an object that is gone is forgotten.

        Raises:
            RetryAfter: the caches lack a write. This is no failure, and is not counted as an attempt.
        """
        if request.object is None:
            self._expected.pop(request.key, None)
        elif left := self.left(request.key):
            raise RetryAfter(left, f"the caches do not show all objects that {request.key} has created and deleted")

    def left(self, key: ObjectName) -> float:
        """Return the seconds until the expectations of a key expire; 0 if none are left."""
        expected = self._expected.get(key)
        if expected is None:
            return 0.0
        left = expected.until - self._clock()
        if not expected.is_fulfilled and left > 0:
            return left
        if not expected.is_fulfilled:
            what = f"{len(expected.created) + expected.lost} creations and {len(expected.deleted)} deletions"
            _log.warning("%s: the caches did not show %s in %g s; go on with the caches", key, what, self._timeout)
        del self._expected[key]
        return 0.0

    async def create(self, request: Request[Any], resource: Resource[T], obj: Any) -> T:
        """Create an object, by default in the namespace of the owner, and expect it; see `ResourceClient.create`."""
        expected = self._of(request.key)
        expected.in_flight += 1
        namespace = request.namespace if resource.namespaced else ""
        try:
            created = await request.client.resource(resource).create(obj, namespace=namespace)
        except BaseException as error:
            expected.lost += not _proves_no_effect(error)
            raise
        finally:
            expected.in_flight -= 1
        name = _name(resource, object_name(created))
        if name in expected.seen:
            expected.seen.discard(name)
        else:
            expected.created.add(name)
        return created

    async def delete(self, request: Request[Any], resource: Resource[Any], obj: Any) -> None:
        """Delete an object by its uid, and expect that. If it is gone already, there is no error."""
        expected, name = self._of(request.key), _name(resource, object_name(obj))
        expected.deleted.add(name)
        uid = metadata_field(metadata_of(obj), "uid", "uid") or ""
        try:
            key = str(object_name(obj))
            await request.client.resource(resource).delete(key, uid=uid, propagation="Background")
        except BaseException as error:
            if _proves_no_effect(error):
                expected.deleted.discard(name)
            if not isinstance(error, ApiNotFound) or not error.name:
                raise

    def _observe(self, key: ObjectName, name: str, *, is_leaving: bool) -> None:
        """Note that the cache shows an object that this key owns, or that it is deleted or being deleted."""
        expected = self._expected.get(key)
        if expected is None:
            return
        if is_leaving:
            expected.deleted.discard(name)
        if name in expected.created:
            expected.created.discard(name)
        elif expected.in_flight or expected.lost:
            expected.seen.add(name)

    def _of(self, key: ObjectName) -> _Expected:
        until = self._clock() + self._timeout
        expected = self._expected.setdefault(key, _Expected(until))
        expected.until = until
        return expected


class _Observed(Owns[T]):
    """An `Owns` whose expectations see each change before the owner runs."""

    def __init__(self, expectations: Expectations, resource: Resource[T], **options: Any) -> None:
        super().__init__(resource, **options)
        self._expectations = expectations

    def attach(
        self,
        informer: SharedIndexInformer[Any],
        primary: SharedIndexInformer[Any],
        enqueue: Enqueue,
        *,
        loops: LoopDetector | None = None,
    ) -> HandlerRegistration[Any]:
        def observe(key: ObjectName, cause: Cause, priority: int) -> None:
            obj = None if cause.trigger == "deleted" else informer.get_indexer().get_by_key(cause.key)
            is_leaving = obj is None or is_being_deleted(obj)
            self._expectations._observe(key, _name(self.resource, cause.key), is_leaving=is_leaving)
            enqueue(key, cause, priority)

        return super().attach(informer, primary, observe, loops=loops)


def _name(resource: Resource[Any], key: object) -> str:
    return f"{resource.gvr} {key}"


def _proves_no_effect(error: BaseException) -> bool:
    """Return whether the server has certainly not processed the write that failed with this error."""
    if isinstance(error, ApiError):
        return error.status < 500
    return isinstance(error, AioinformerError) and not isinstance(error, WriteOutcomeUnknown)
