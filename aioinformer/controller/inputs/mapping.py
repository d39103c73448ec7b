"""The objects that make a controller run: its own (`Primary`), the ones these own (`Owns`), and others (`Watch`)."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from aioinformer.cache.objects.fields import parse_path
from aioinformer.controller.inputs.change import PARTIAL_TIERS, Change, is_replaced
from aioinformer.controller.inputs.content import json_of, split, value_at
from aioinformer.controller.inputs.keys import key_of, keys_in
from aioinformer.controller.inputs.owners import OWNER_INDEX, owned_by, owner_references, owner_uids
from aioinformer.controller.inputs.predicates import Predicate, content_changed, object_changed, predicate
from aioinformer.controller.request import LOW_PRIORITY, NORMAL_PRIORITY, Cause
from aioinformer.errors import USER_ERRORS, UsageError
from aioinformer.functions import function_name, plain_function
from aioinformer.informer.options import merge_indexers, named_options
from aioinformer.logs import get_logger
from aioinformer.resources.keys import DeletedFinalStateUnknown, ObjectName, split_meta_namespace_key
from aioinformer.resources.resource import Resource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from aioinformer.cache.indices import Indexers
    from aioinformer.handlers.registration import HandlerRegistration
    from aioinformer.informer.shared_informer import SharedIndexInformer

    #: Called with the key to run, why, and the priority.
    Enqueue: TypeAlias = "Callable[[ObjectName, Cause, int], None]"
    #: (key of the changed object, its states) -> the keys to run
    Mapping_: TypeAlias = "Callable[[ObjectName, list[Any]], Iterable[ObjectName]]"

T = TypeVar("T")

_log = get_logger("aioinformer.controller")


class SeesChanges(Protocol):
    """Compares the states of objects that keep changing; `LoopDetector` does."""

    def saw(self, key: ObjectName, resource: Resource[Any], changed: ObjectName, old: Any, new: Any) -> None:
        """Note that an update of an object made a key run."""
        ...


class Input(Generic[T]):
    """Objects of one resource whose changes make a controller run: a declaration, which `attach` puts into effect.

    Args:
        resource: of the objects.
        when: which adds and updates count; a `Predicate`, or a function of a `Change`.
        options: of the informer.

    Attributes:
        resource: of the objects.
        when: which adds and updates count.
        options: of the informer, as the user passed them; see `InformerOptions`.
        errors: how often a function of the user failed for an object, in all controllers that have this input.

    Raises:
        UsageError: an argument is invalid.
    """

    def __init__(
        self, resource: Resource[T], when: Predicate | Callable[[Change], Any], options: dict[str, Any]
    ) -> None:
        name = type(self).__name__
        if not isinstance(resource, Resource):
            raise UsageError(f"{name}: expected a Resource, not {resource!r}")
        named_options(options, f"{name}({resource.plural})")
        self.resource = resource
        self.when = predicate(when)
        self.options = options
        self.errors = 0

    def indexers(self) -> Indexers[Any]:
        """Return the indices that the informer of the resource needs."""
        return {}

    def primary_indexers(self) -> Indexers[Any]:
        """Return the indices that the informer of the primary needs."""
        return {}

    def attach(
        self,
        informer: SharedIndexInformer[Any],
        primary: SharedIndexInformer[Any],
        enqueue: Enqueue,
        *,
        loops: SeesChanges | None = None,
    ) -> HandlerRegistration[Any]:
        """Register a handler that enqueues the keys for each change. Missing indices are added to the informers.

        To add an index to an informer that has many objects, await `add_indexers_in_slices` before.

        Args:
            informer: of the resource.
            primary: the informer of the controller's own resource.
            enqueue: called with each key; must not raise.
            loops: gets the states of updated objects.

        Raises:
            InformerStopped: an informer has stopped.
            UsageError: an index of the same name is another one.
        """
        for each, indexers in ((informer, self.indexers()), (primary, self.primary_indexers())):
            if missing := merge_indexers(each.get_indexer(), indexers):
                each.add_indexers(missing)
        whole = informer.storage not in PARTIAL_TIERS
        handler = _Handler(self, self._mapping(informer, primary), enqueue, loops, whole=whole)
        return informer.add_event_handler(handler, self._resync_period())

    def _mapping(self, informer: SharedIndexInformer[Any], primary: SharedIndexInformer[Any]) -> Mapping_:
        raise NotImplementedError

    def _resync_period(self) -> float | None:
        """Return the period of resyncs: none, unless the user has asked for them."""
        return None if "resync_period" in self.options else 0.0

    def failed(self, what: str, key: object, error: BaseException) -> None:
        """Count an error of a user's function. Log the first one, and then the 10th, the 100th and so on."""
        self.errors += 1
        if str(self.errors).rstrip("0") == "1":
            count = f" ({self.errors} errors so far)" if self.errors > 1 else ""
            _log.error("%s: %s for %s%s", self, what, key, count, exc_info=error)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.resource.group_resource})"


class _Handler:
    """Turns the notifications of one informer into keys."""

    __slots__ = ("_enqueue", "_input", "_loops", "_map", "_name", "_when", "_whole")

    def __init__(
        self, declared: Input[Any], map: Mapping_, enqueue: Enqueue, loops: SeesChanges | None, *, whole: bool
    ) -> None:
        self._input = declared
        self._map = map
        self._enqueue = enqueue
        self._loops = loops
        self._when = declared.when
        self._whole = whole
        self._name = declared.resource.group_resource

    def on_add(self, obj: Any, is_in_initial_list: bool) -> None:
        """Enqueue the keys of a new object."""
        change = Change("initial" if is_in_initial_list else "added", None, obj, is_in_initial_list, self._whole)
        self._take(change, key_of(obj), [obj])

    def on_update(self, old: Any, new: Any) -> None:
        """Enqueue the keys of a changed object, or of a resync."""
        key = key_of(new)
        if old is new:
            self._take(Change("resync", old, new, False, self._whole), key, [new])
        elif is_replaced(old, new):
            self._pass_on(Change("deleted", old), key, [old])
            self._pass_on(Change("added", None, new), key, [new])
        else:
            self._take(Change("updated", old, new, False, self._whole), key, [old, new])

    def on_delete(self, obj: Any) -> None:
        """Enqueue the keys of a deleted object, or of a tombstone."""
        if isinstance(obj, DeletedFinalStateUnknown):
            key, obj = split_meta_namespace_key(obj.key), obj.obj
        else:
            key = key_of(obj)
        self._pass_on(Change("deleted", obj), key, [] if obj is None else [obj])

    def _take(self, change: Change, key: ObjectName, states: list[Any]) -> None:
        try:
            if not self._when(change):
                return
        except USER_ERRORS as error:
            self._input.failed(f"{self._when} raised, so the change passes,", key, error)
        self._pass_on(change, key, states)

    def _pass_on(self, change: Change, key: ObjectName, states: list[Any]) -> None:
        low = change.trigger in ("initial", "resync")
        cause = Cause(change.trigger, self._name, str(key))
        for found in self._map(key, states):
            if self._loops is not None and change.is_update:
                self._loops.saw(found, self._input.resource, key, change.old, change.new)
            self._enqueue(found, cause, LOW_PRIORITY if low else NORMAL_PRIORITY)


class Primary(Input[T]):
    """The objects that a controller reconciles: each makes its own key run.

    Args:
        resource: of the objects.
        when: which adds and updates count; by default, updates of the content.
        resync_period: how often all objects run again, in seconds; 0 for never.
        options: of the informer; see `InformerOptions`.
    """

    def __init__(
        self,
        resource: Resource[T],
        *,
        when: Predicate | Callable[[Change], Any] | None = None,
        resync_period: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__(resource, content_changed if when is None else when, options)
        self.resync_period = resync_period

    def _mapping(self, informer: SharedIndexInformer[Any], primary: SharedIndexInformer[Any]) -> Mapping_:
        return lambda key, states: (key,)

    def _resync_period(self) -> float:
        return self.resync_period


class Owns(Input[T]):
    """Objects that the primary's objects own: a change makes their owners run, before and after the change.

    An owner reference counts if its group and kind are those of the primary, in any version. If the cache of the
    primary has another object under the name of the owner (with another uid), the reference does not count. If it has
    none, it does: the informers do not wait for each other.

    Args:
        resource: of the owned objects.
        controller_only: only the owner that is the controller counts.
        when: which adds and updates count; by default, updates that differ in more than `resourceVersion` and managed
            fields. Deletions always count.
        options: of the informer; see `InformerOptions`. Without a `resync_period`, resyncs do not count.
    """

    def __init__(
        self,
        resource: Resource[T],
        *,
        controller_only: bool = True,
        when: Predicate | Callable[[Change], Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(resource, object_changed if when is None else when, options)
        self.controller_only = controller_only

    def indexers(self) -> Indexers[Any]:
        """Return the index of the objects by the uids of their owners."""
        return {OWNER_INDEX: owner_uids}

    def owned(self, informer: SharedIndexInformer[T], uid: str) -> list[T]:
        """Return the cached objects that an owner with this uid owns, in the order of their keys."""
        return owned_by(informer, uid, controller_only=self.controller_only)

    def _mapping(self, informer: SharedIndexInformer[Any], primary: SharedIndexInformer[Any]) -> Mapping_:
        def owners(key: ObjectName, states: list[Any]) -> Iterable[ObjectName]:
            found: dict[ObjectName, None] = {}
            for state in states:
                try:
                    found |= dict.fromkeys(self._owners(state, key.namespace, primary))
                except USER_ERRORS as error:
                    self.failed("its owners cannot be read", key, error)
            return found

        return owners

    def _owners(self, obj: Any, namespace: str, primary: SharedIndexInformer[Any]) -> Iterator[ObjectName]:
        wanted = primary.resource
        if wanted.namespaced and not namespace:
            return  # an owner of a cluster-scoped object is cluster-scoped
        for reference in owner_references(obj):
            if (self.controller_only and not reference.controller) or not reference.name:
                continue
            if reference.kind != wanted.kind or reference.group != wanted.group:
                continue
            owner = ObjectName(namespace if wanted.namespaced else "", reference.name)
            cached = primary.get_indexer().store.item(str(owner))
            if cached is None or not cached.uid or cached.uid == reference.uid:
                yield owner


class References:
    """Maps objects to the primary's objects that name them, by an index that is maintained with the primary's cache.

    Args:
        by: the path of a field of the primary, such as "spec.secretName"; or a function of a primary object. The value
            is the name of an object in the namespace of the primary, or "namespace/name"; several; or None or "".

    Raises:
        UsageError: the path does not parse, or the function is a coroutine function.
    """

    def __init__(self, by: str | Callable[[Any], Any]) -> None:
        if isinstance(by, str):
            parse_path(by)
        else:
            _check_function(by, "References")
        self.by = by

    def __repr__(self) -> str:
        return f"References({self.by!r})" if isinstance(self.by, str) else f"References({function_name(self.by)})"


class _ReferenceIndex(msgspec.Struct, frozen=True):
    """The index function of references: the keys of the objects that a primary object names.

    Attributes:
        by: as for `References`.
        resource: of the objects.
    """

    by: Any
    resource: Resource[Any]

    @property
    def name(self) -> str:
        by = self.by if isinstance(self.by, str) else f"{function_name(self.by)} {id(self.by):#x}"
        return f"references to {self.resource.gvr} by {by}"

    def __call__(self, primary: Any) -> list[str]:
        if isinstance(self.by, str):
            source = f"field {self.by}"
            value = _decoded_at(primary, self.by)
        else:
            source = function_name(self.by)
            value = self.by(primary)
        if isinstance(value, str) or value is None:
            value = [value]
        named = [each for each in value if each is not None and each != ""]
        return list(map(str, keys_in(named, self.resource, key_of(primary).namespace, source)))


def _decoded_at(obj: Any, path: str) -> Any:
    found = value_at(split(json_of(obj)), parse_path(path))
    return None if found is None else msgspec.json.decode(found)


class Watch(Input[T]):
    """Objects of any kind: a function or an index says which keys run when one of them changes.

    Args:
        resource: of the objects.
        to: a function that returns the keys of the primary for an object: texts ("namespace/name", or a name in the
            namespace of the object), `ObjectName`s or objects; one, several, or None. It is called with the states
            before and after an update. Or `References`, for primary objects that name the object.
        when: which adds and updates count; by default, updates that differ in more than `resourceVersion` and managed
            fields. Deletions always count.
        options: of the informer; see `InformerOptions`. Without a `resync_period`, resyncs do not count.

    Raises:
        UsageError: an argument is invalid; `to` is a coroutine function.
    """

    def __init__(
        self,
        resource: Resource[T],
        *,
        to: Callable[[T], Any] | References,
        when: Predicate | Callable[[Change], Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(resource, object_changed if when is None else when, options)
        if not isinstance(to, References):
            _check_function(to, f"Watch({resource.plural}): to")
        self.to = to

    def primary_indexers(self) -> Indexers[Any]:
        """Return the index of the primary's objects by the keys of the objects that they name."""
        if not isinstance(self.to, References):
            return {}
        index = _ReferenceIndex(self.to.by, self.resource)
        return {index.name: index}

    def _mapping(self, informer: SharedIndexInformer[Any], primary: SharedIndexInformer[Any]) -> Mapping_:
        to = self.to
        if isinstance(to, References):
            (name,) = self.primary_indexers()
            indexer = primary.get_indexer()
            return lambda key, states: map(split_meta_namespace_key, indexer.index_keys(name, str(key)))
        source, resource, map_to = function_name(to), primary.resource, to

        def mapped(key: ObjectName, states: list[Any]) -> Iterable[ObjectName]:
            found: dict[ObjectName, None] = {}
            for state in states:
                try:
                    for each in keys_in(map_to(state), resource, key.namespace, source):
                        found[each] = None
                except USER_ERRORS as error:
                    self.failed(f"{source} failed", key, error)
            return found

        return mapped


def _check_function(function: Any, what: str) -> None:
    plain_function(function, what)
    if inspect.isasyncgenfunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        raise UsageError(f"{what}: expected a plain function, not an asynchronous one: its result would not be awaited")
