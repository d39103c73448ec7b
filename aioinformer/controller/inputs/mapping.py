"""The objects that make a controller run: its own (`Primary`), the ones these own (`Owns`), and others (`Watch`).

A state of an object whose keys cannot be found, because a function of the user raises, is mapped again after 1, 2, 4 s
and so on, for about a minute. Then the change counts as lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar, Unpack

import msgspec

from aioinformer.cache.indices import Indexers
from aioinformer.cache.objects.storage import Storage
from aioinformer.controller.inputs.content import only_condition_changed
from aioinformer.controller.inputs.keys import key_of, keys_in, uid_of
from aioinformer.controller.inputs.loops import LoopDetector
from aioinformer.controller.inputs.owners import OWNER_INDEX, owner_references, owner_uids
from aioinformer.controller.inputs.predicates import (
    Change,
    ChangeTrigger,
    Predicate,
    content_changed,
    object_changed,
    predicate,
)
from aioinformer.controller.inputs.references import ReferenceIndex, References, synchronous
from aioinformer.errors import USER_ERRORS, UsageError
from aioinformer.exports import lazy_type
from aioinformer.functions import function_name
from aioinformer.handlers.registration import HandlerRegistration
from aioinformer.handlers.repeated import RepeatedErrors
from aioinformer.informer.options import InformerOptions, merge_indexers, named_options
from aioinformer.logs import get_logger
from aioinformer.resources.keys import DeletedFinalStateUnknown, ObjectName, split_meta_namespace_key
from aioinformer.resources.resource import Resource
from aioinformer.workqueue.requests.causes import LOW_PRIORITY, NORMAL_PRIORITY, Cause

if TYPE_CHECKING:
    from aioinformer.informer.shared_informer import SharedIndexInformer

    AnyInformer: TypeAlias = SharedIndexInformer[Any]
else:
    AnyInformer = lazy_type("aioinformer.informer.shared_informer", "SharedIndexInformer")

T = TypeVar("T")

#: Called with the key to run, why, and the priority.
Enqueue: TypeAlias = Callable[[ObjectName, Cause, int], None]
#: Decides which adds and updates count.
When: TypeAlias = Predicate | Callable[[Change], Any] | None

_log = get_logger("aioinformer.controller")

#: How often the keys of a change are looked for again.
_RETRIES: Final = 6
#: Of an object that changes while its keys cannot be found, the last few states are mapped again.
_STATES: Final = 3


class Input(Generic[T]):
    """Objects of one resource whose changes make a controller run: a declaration, which `attach` puts into effect.

    Attributes:
        resource: of the objects.
        when: which adds and updates count. Deletions, and objects that were created again, always count.
        options: of the informer; see `InformerOptions`.
        errors: how often a function of the user failed for an object, in all controllers that have this input.
        lost: for how many objects no keys were found in the end, so that a change of them made nothing run.
        lost_key: of the last one of these objects; "" for none.

    Raises:
        UsageError: an argument is invalid.
    """

    def __init__(self, resource: Resource[T], when: When, default: Predicate, options: Mapping[str, Any]) -> None:
        name = type(self).__name__
        if not isinstance(resource, Resource):
            raise UsageError(f"{name}: expected a Resource, not {resource!r}")
        named_options(options, f"{name}({resource.plural})")
        self.resource = resource
        self.when = default if when is None else predicate(when)
        self.options = dict(options)
        self.errors = 0
        self.lost = 0
        self.lost_key = ""
        self._repeated = RepeatedErrors(_log)

    def indexers(self) -> Indexers[Any]:
        """Return the indices that the informer of the resource needs."""
        return {}

    def primary_indexers(self) -> Indexers[Any]:
        """Return the indices that the informer of the primary needs."""
        return {}

    def attach(
        self,
        informer: AnyInformer,
        primary: AnyInformer,
        enqueue: Enqueue,
        *,
        loops: LoopDetector | None = None,
        on_gone: Callable[[ObjectName, str], object] | None = None,
        ignored_condition: str = "",
    ) -> HandlerRegistration[Any]:
        """Register a handler that enqueues the keys for each change. Missing indices are added to the informers.

        For an informer that has many objects already, await `add_indexers_in_slices` before.

        Args:
            informer: of the resource.
            primary: the informer of the controller's own resource.
            enqueue: called with each key; it must not raise.
            loops: gets the states of updated objects.
            on_gone: called with the key and the uid of a deleted object, before its keys are enqueued.
            ignored_condition: updates of this condition alone make nothing run; "" for none.

        Raises:
            InformerStopped: an informer has stopped.
            UsageError: another index has the name of a missing one.
        """
        for each, indexers in ((informer, self.indexers()), (primary, self.primary_indexers())):
            if missing := merge_indexers(each.get_indexer(), indexers):
                each.add_indexers(missing)
        whole = informer.storage not in (Storage.METADATA, Storage.PROJECTION)
        handler = _Handler(self, primary, enqueue, loops, whole, self.resource.group_resource, on_gone=on_gone)
        handler.ignored_condition = ignored_condition
        handler.registration = informer.add_event_handler(handler, self._resync_period())
        return handler.registration

    def keys(
        self, key: ObjectName, states: Iterable[Any], primary: AnyInformer, failing: list[Any]
    ) -> Iterable[ObjectName]:
        """Return the keys that run after a change of an object, each once; log and count errors of functions of users.

        Args:
            key: of the object.
            states: before and after the change; None if there is none.
            primary: the informer of the controller's own resource.
            failing: gets the states whose keys cannot be found.
        """
        found: dict[ObjectName, None] = {}
        for state in states:
            try:
                for each in self._keys_of(state, key, primary) if state is not None else ():
                    found[each] = None
            except USER_ERRORS as error:
                self.failed("its keys cannot be found", key, error)
                failing.append(state)
        return found

    def _keys_of(self, state: Any, key: ObjectName, primary: AnyInformer) -> Iterable[ObjectName]:
        raise NotImplementedError

    def calls_users(self) -> bool:
        """Return whether functions of the user, those of this input, are called for each change."""
        return self.when not in (content_changed, object_changed)

    def _resync_period(self) -> float | None:
        """Return the period of resyncs: none, unless the user has asked for them."""
        return None if "resync_period" in self.options else 0.0

    def failed(self, what: str, key: object, error: BaseException) -> None:
        """Count an error of a user's function, and log it: with a traceback once a minute, and else with the others."""
        self.errors += 1
        message = "%s: %s, %s; errors so far: %d"
        self._repeated.report(str(self), error, message, self, key, what, self.errors, key=str(key))

    def count_lost(self, key: ObjectName) -> None:
        """Count an object for whose change no keys were found in the end."""
        self.lost += 1
        self.lost_key = str(key)

    def described(self) -> str:
        """Return its kind, its resource, and the options that are texts: "Watch(pods, namespace='shop')"."""
        texts = (f"{name}={value!r}" for name, value in self.options.items() if isinstance(value, str))
        return f"{type(self).__name__}({', '.join((self.resource.group_resource, *texts))})"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.resource.group_resource})"


class _Handler(msgspec.Struct):
    """Turns the notifications of one informer into keys."""

    input: Input[Any]
    primary: AnyInformer
    enqueue: Enqueue
    loops: LoopDetector | None
    whole: bool
    changed: str  # what causes name
    registration: HandlerRegistration[Any] | None = None
    #: The states whose keys cannot be found, and the timer of the next attempt.
    retries: dict[ObjectName, tuple[list[Any], asyncio.TimerHandle]] = {}
    failing: list[Any] = []
    on_gone: Callable[[ObjectName, str], object] | None = None
    ignored_condition: str = ""

    def on_add(self, obj: Any, is_in_initial_list: bool) -> None:
        trigger: ChangeTrigger = "initial" if is_in_initial_list else "added"
        key = key_of(obj)
        self._take(key, Change(trigger, None, obj, is_in_initial_list, self.whole))

    def on_update(self, old: Any, new: Any) -> None:
        key = key_of(new)
        if old is new:
            self._take(key, Change("resync", old, new, False, self.whole))
            return
        if uid_of(old) == uid_of(new):
            if self.ignored_condition and self._is_ignored(old, new):
                return
            self._take(key, Change("updated", old, new, False, self.whole))
        else:  # one object was deleted, and another one created under its name
            self._pass_on(key, Change("deleted", old))
            self._pass_on(key, Change("added", None, new))

    def _is_ignored(self, old: Any, new: Any) -> bool:
        try:
            return only_condition_changed(old, new, self.ignored_condition)
        except USER_ERRORS:
            return False  # it counts, as any change of an object that cannot be decoded

    def on_delete(self, obj: Any) -> None:
        tombstone = isinstance(obj, DeletedFinalStateUnknown)
        key = split_meta_namespace_key(obj.key) if tombstone else key_of(obj)
        last = obj.obj if tombstone else obj
        self._pass_on(key, Change("deleted", last))

    def _take(self, key: ObjectName, change: Change) -> None:
        try:
            if not self.input.when(change):
                return
        except USER_ERRORS as error:
            self.input.failed(f"{self.input.when} raised, so the change counts", key, error)
        self._pass_on(key, change)

    def _pass_on(self, key: ObjectName, change: Change, states: list[Any] | None = None, attempt: int = 0) -> None:
        if self.on_gone is not None and change.trigger == "deleted":
            self.on_gone(key, uid_of(change.old))
        if self.retries:
            states = self._with_earlier(key, states or [change.old, change.new])
        cause = Cause(change.trigger, self.changed, str(key))
        priority = LOW_PRIORITY if change.trigger in ("initial", "resync") else NORMAL_PRIORITY
        for found in self.input.keys(key, states or (change.old, change.new), self.primary, self.failing):
            if self.loops is not None and self.loops.followed:
                self.loops.saw(found, self.input.resource, key, change)
            self.enqueue(found, cause, priority)
        if self.failing:
            self._retry(key, change, attempt)

    def _with_earlier(self, key: ObjectName, states: list[Any]) -> list[Any]:
        """Return the states to map, with the earlier ones of the object whose keys could not be found."""
        if (known := self.retries.pop(key, None)) is None:
            return states
        earlier, timer = known
        timer.cancel()
        return [*earlier, *states]

    def _retry(self, key: ObjectName, change: Change, attempt: int) -> None:
        """Map the failing states again after a delay."""
        failing = self.failing[-_STATES:]
        if len(self.failing) > _STATES:
            self.input.count_lost(key)
        self.failing.clear()
        registration = self.registration
        assert registration is not None, "notifications are delivered after `attach` has returned"
        registration.count_error()
        if attempt == _RETRIES:
            self.input.count_lost(key)
            return

        def again() -> None:
            del self.retries[key]
            if not registration.has_ended():
                self._pass_on(key, change, failing, attempt + 1)

        self.retries[key] = failing, asyncio.get_running_loop().call_later(2.0**attempt, again)


class Primary(Input[T]):
    """The objects that a controller reconciles: each makes its own key run.

    Args:
        resource: of the objects.
        when: which adds and updates count: a `Predicate`, or a function of a `Change`; by default `content_changed`.
        options: of the informer; see `InformerOptions`. Without a `resync_period`, resyncs do not count.

    Raises:
        UsageError: an argument is invalid.
    """

    def __init__(self, resource: Resource[T], *, when: When = None, **options: Unpack[InformerOptions[Any]]) -> None:
        super().__init__(resource, when, content_changed, options)

    def keys(
        self, key: ObjectName, states: Iterable[Any], primary: AnyInformer, failing: list[Any]
    ) -> Iterable[ObjectName]:
        """Return the key itself."""
        return (key,)


class Owns(Input[T]):
    """Objects that the primary's objects own: a change makes their owners run, those before and after the change.

    An owner reference counts if its group and kind are those of the primary, in any version. If the cache of the
    primary has another object under the name of the owner (with another uid), the reference does not count. If it has
    none, it does: the informers do not wait for each other.

    Args:
        resource: of the owned objects.
        controller_only: only the owner that is the controller counts.
        when: which adds and updates count: a `Predicate`, or a function of a `Change`; by default `object_changed`.
        options: of the informer; see `InformerOptions`. Without a `resync_period`, resyncs do not count.

    Raises:
        UsageError: an argument is invalid.
    """

    def __init__(
        self,
        resource: Resource[T],
        *,
        controller_only: bool = True,
        when: When = None,
        **options: Unpack[InformerOptions[Any]],
    ) -> None:
        super().__init__(resource, when, object_changed, options)
        self.controller_only = controller_only

    def indexers(self) -> Indexers[Any]:
        """Return the index of the objects by the uids of their owners."""
        return {OWNER_INDEX: owner_uids}

    def owned(self, informer: AnyInformer, uid: str) -> list[T]:
        """Return the cached objects that an owner with this uid owns, in the order of their keys."""
        indexer = informer.get_indexer()
        keys = indexer.index_keys(OWNER_INDEX, uid)
        if not self.controller_only:
            keys = sorted({*keys, *indexer.index_keys(OWNER_INDEX, f"other:{uid}")})
        return [obj for key in keys if (obj := indexer.get_by_key(key)) is not None]

    def owners(self, state: Any, key: ObjectName, primary: AnyInformer) -> Iterator[ObjectName]:
        """Yield the keys of the owners of an object. `key` is its own, and `primary` the informer of the owners."""
        wanted = primary.resource
        for reference in owner_references(state):
            group = reference.api_version.rpartition("/")[0]
            if reference.kind != wanted.kind or group != wanted.group:
                continue
            if (self.controller_only and not reference.controller) or (wanted.namespaced and not key.namespace):
                continue  # owners of cluster-scoped objects are cluster-scoped
            owner = ObjectName(key.namespace if wanted.namespaced else "", reference.name)
            cached = primary.get_indexer().store.item(str(owner))
            if cached is None or cached.uid in ("", reference.uid):
                yield owner

    _keys_of = owners


class Watch(Input[T]):
    """Objects of any kind: a function or an index says which keys run when one of them changes.

    Args:
        resource: of the objects.
        to: a function that returns the keys of the primary for an object: texts ("namespace/name", or a name in the
            namespace of the object), `ObjectName`s or objects; one, several, or None. It is called with the states
            before and after an update. Or `References`, for primary objects that name the object.
        when: which adds and updates count: a `Predicate`, or a function of a `Change`; by default `object_changed`.
        options: of the informer; see `InformerOptions`. Without a `resync_period`, resyncs do not count.

    Raises:
        UsageError: an argument is invalid; `to` is a coroutine function.
    """

    def __init__(
        self,
        resource: Resource[T],
        *,
        to: Callable[[T], Any] | References,
        when: When = None,
        **options: Unpack[InformerOptions[Any]],
    ) -> None:
        super().__init__(resource, when, object_changed, options)
        self._index = ReferenceIndex(to.by, resource) if isinstance(to, References) else None
        self._to: Any = to if self._index is not None else synchronous(to, f"Watch({resource.plural}): to")
        self._source = self._index.name if self._index is not None else function_name(to)

    def primary_indexers(self) -> Indexers[Any]:
        """Return the index of the primary's objects by the keys of the objects that they name."""
        return {} if self._index is None else {self._source: self._index}

    def keys(
        self, key: ObjectName, states: Iterable[Any], primary: AnyInformer, failing: list[Any]
    ) -> Iterable[ObjectName]:
        """Return the keys from the index or the function."""
        if self._index is None:
            return super().keys(key, states, primary, failing)
        return map(split_meta_namespace_key, primary.get_indexer().index_keys(self._source, str(key)))

    def _keys_of(self, state: Any, key: ObjectName, primary: AnyInformer) -> Iterable[ObjectName]:
        return keys_in(self._to(state), primary.resource, key.namespace, self._source)

    def calls_users(self) -> bool:
        """Return whether functions of the user, those of this input, are called for each change."""
        return self._index is None or super().calls_users()
