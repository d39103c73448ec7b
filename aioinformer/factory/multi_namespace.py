"""`MultiNamespaceInformer`: one informer of several namespaces, which can be added and removed while it runs.

If you may read only some namespaces, each of them needs its own list and watch. This informer gives them one cache, one
set of handlers, and one state:

- Each namespace has its own reflector, queue and process loop, which do not wait for each other.
- They fill one cache with one lister. Each handler gets one sequence of notifications, as from any informer.
- The objects of a removed namespace are delivered as deletes, with their last known states.
- The version of the cache is the least of the namespaces' versions: it contains all changes up to there.
"""

from __future__ import annotations

import asyncio
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from aioinformer.cache.store import NAMESPACE_INDEX
from aioinformer.concurrency import Latch, TaskGroup
from aioinformer.errors import EXHAUSTION, InformerStopped, UsageError
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.informer.sync import SyncResult, all_synced
from aioinformer.logs import get_logger
from aioinformer.reflector.state import InformerState, Phase
from aioinformer.resources.keys import object_name, split_meta_namespace_key
from aioinformer.resources.scopes import check_namespace
from aioinformer.resources.versions import covers, version_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aioinformer.cache.store import ThreadSafeStore
    from aioinformer.cache.waiters import Write
    from aioinformer.informer.process_loop import Source
    from aioinformer.reflector.listwatch import ListerWatcher
    from aioinformer.reflector.protocol.changes import Quarantine
    from aioinformer.reflector.reflector import Reflector

T = TypeVar("T")

_log = get_logger("aioinformer.factory")


class _StoreOfNamespace:
    """The part of the store that belongs to one namespace."""

    def __init__(self, store: ThreadSafeStore[Any], namespace: str) -> None:
        self._store = store
        self._namespace = namespace

    def all_keys(self) -> list[str]:
        return self._store.indexed_keys(NAMESPACE_INDEX, self._namespace)

    def item(self, key: str) -> Any:
        return self._store.item(key)


class _Member:
    """One namespace of the informer; `all_synced` accepts it."""

    def __init__(self, name: str, quarantine: Quarantine) -> None:
        self.name = name
        self.source: Source | None = None
        self.quarantine = quarantine
        self.task: asyncio.Task[None] | None = None
        self.version = ""
        self.synced = Latch()

    @property
    def state(self) -> InformerState:
        return self.source.controller.reflector.state if self.source else InformerState(Phase.NEW, "", 0.0)

    def has_synced(self) -> bool:
        return bool(self.synced)

    async def wait_for_sync(self) -> None:
        await self.synced.wait()


class MultiNamespaceInformer(SharedIndexInformer[T]):
    """A `SharedIndexInformer` of some namespaces.

    Args:
        lister_watcher_for: namespace -> lister-watcher: `lambda namespace: ListWatch(transport, PODS, namespace)`. Also
            called once with "", to learn the resource.
        namespaces: the initial namespaces; may be empty.
        resync_period: as for `SharedIndexInformer`.
        options: as for `SharedIndexInformer`. With `RunOptions(queue="in_order")`, the order holds within each
            namespace, and a relist of one namespace becomes visible at once.

    Raises:
        UsageError: the resource is cluster-scoped, or an option is invalid.
    """

    _tasks: asyncio.TaskGroup | None = None  # a class attribute, since metrics may be read during construction

    def __init__(
        self,
        lister_watcher_for: Callable[[str], ListerWatcher[T]],
        namespaces: Iterable[str],
        resync_period: float = 0.0,
        **options: Any,
    ) -> None:
        if not callable(lister_watcher_for):
            raise UsageError(
                "lister_watcher_for: expected a function, lambda namespace: ListWatch(transport, resource, namespace), "
                f"not {type(lister_watcher_for).__name__}"
            )
        super().__init__(lister_watcher_for(""), resync_period, **options)
        if not self.resource.namespaced:
            raise UsageError(f"{self.resource.group_resource} is cluster-scoped: use a SharedIndexInformer")
        self._lister_watcher_for = lister_watcher_for
        self._members: dict[str, _Member] = {each: self._member(each) for each in _checked(namespaces)}
        #: The ending tasks of removed namespaces, which may be added again meanwhile.
        self._leaving: dict[str, set[asyncio.Task[None]]] = {}

    @property
    def namespaces(self) -> frozenset[str]:
        """The current namespaces."""
        return frozenset(self._members)

    async def add_namespace(self, namespace: str) -> None:
        """Add a namespace unless it is there, and wait until its objects are in the cache.

        Cancelling the wait keeps the namespace.

        Raises:
            InformerStopped: the informer has stopped, or stopped before that.
            UsageError: the name is not a valid namespace.
        """
        await self.set_namespaces({*self._members, namespace})
        if self._started and (member := self._members.get(namespace)) is not None:
            await member.synced.wait()  # another task may have added it just now

    async def remove_namespace(self, namespace: str) -> None:
        """Remove a namespace, and wait until its objects are removed from the cache and their deletes enqueued.

        Cancelling the wait does not restore the namespace.

        Raises:
            InformerStopped: the informer has stopped.
        """
        await self.set_namespaces(self._members.keys() - {namespace})
        if leaving := self._leaving.get(namespace):
            await asyncio.wait(set(leaving))  # another task may have removed it just now

    async def set_namespaces(self, namespaces: Iterable[str]) -> None:
        """Replace the set of namespaces; wait until removed ones are gone, and new ones are in the cache.

        Raises:
            InformerStopped: the informer has stopped, or stopped before that.
            UsageError: a name is not a valid namespace; nothing is changed then.
            Exception: raised by `lister_watcher_for`; nothing is changed then.
        """
        wanted = _checked(namespaces)
        if self._stopped:
            raise InformerStopped(f"namespaces were not changed because {self.name} has stopped already")
        new = [namespace for namespace in wanted if namespace not in self._members]
        lister_watchers = {each: self._lister_watcher_for(each) for each in new} if self._tasks is not None else {}
        fresh = {namespace: self._member(namespace) for namespace in new}
        leaving = [self._remove(namespace) for namespace in self._members.keys() - wanted.keys()]
        self._members |= fresh
        self._advance()
        if self._tasks is not None:
            for namespace, lister_watcher in lister_watchers.items():
                self._start(namespace, lister_watcher, self._tasks)
        if tasks := {task for task in leaving if task is not None}:
            await asyncio.wait(tasks)
        if self._started:
            for member in fresh.values():
                await member.synced.wait()

    async def wait_for_cache_sync(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - a timeout is a result here, not an exception
    ) -> SyncResult:
        """Wait until the objects of all current namespaces are in the cache.

        Args:
            timeout: in seconds, None for no limit.

        Returns:
            Whether each namespace has synced, by keys like "v1/pods?namespace=shop". True if all have.

        Raises:
            InformerStopped: the informer stopped, or a namespace was removed, before that.
            Exception: the informer crashed with it.
        """
        gvr = self.resource.gvr
        return await all_synced(
            {f"{gvr}?namespace={each}": member for each, member in self._members.items()}, timeout=timeout
        )

    # State, which other informers read from their only reflector.

    @property
    def initial_resource_version(self) -> str:
        """ "": the namespaces were listed at different versions."""
        return ""

    def _reflector_state(self) -> InformerState:
        """Return the state of the namespace that has not been healthy for the longest time; the reason names it."""
        if self._tasks is None:
            return super()._reflector_state()
        states = {namespace: member.state for namespace, member in sorted(self._members.items())}
        if not states:
            return InformerState(Phase.WATCHING, "", 0.0)
        namespace = min(states, key=lambda each: (states[each].healthy, states[each].stale_since or inf))
        state = states[namespace]
        return replace(state, reason=f"namespace {namespace}: {state.reason}") if state.reason else state

    def reflectors(self) -> dict[str, Reflector]:
        """Return the reflectors by namespace."""
        members = list(self._members.items())
        return {namespace: each.source.controller.reflector for namespace, each in members if each.source}

    def lister_watchers(self) -> list[ListerWatcher[T]]:
        """Return what the informer lists and watches in the namespaces. Before the start, there is none."""
        return [each.source.lister_watcher for each in self._members.values() if each.source]

    # Life.

    async def _follow(self) -> None:
        async with TaskGroup() as tasks:
            self._tasks = tasks
            for namespace in self._members:
                self._start(namespace, self._lister_watcher_for(namespace), tasks)
            self._advance()
            if self._pipeline.handlers.periods.check:
                tasks.create_task(self._resync(), name=f"{self.name}: resync")
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self._tasks = None

    def _outside(self, written: Any) -> str:
        namespace = object_name(written).namespace
        member = self._members.get(namespace)
        if member is None:
            return f"it is not in one of the namespaces {', '.join(sorted(self._members)) or '(none)'}"
        return "" if member.source is None else self._excluded_by(member.source.lister_watcher, written)

    def _has_reached(self, write: Write) -> bool:
        member = self._members.get(split_meta_namespace_key(write.key).namespace)
        if member is None or member.source is None:
            return False
        # The version of the cache may be that of other namespaces: this one may have been added since.
        return (
            bool(member.version) and covers(member.version, write.version) and member.source.has_order(write.version)
        ) or (version_number(write.version) < 0 and self._versions.includes(write.version))

    def _end(self, failure: BaseException) -> None:
        super()._end(failure)
        for member in self._members.values():
            member.synced.fail(failure)

    def _start(self, namespace: str, lister_watcher: ListerWatcher[T], tasks: asyncio.TaskGroup) -> None:
        member = self._members[namespace]

        def processed(version: str) -> None:
            member.version = version
            if source.queue.has_synced():
                member.synced.set()
            self._check_indices()
            self._advance()

        source = member.source = self._new_source(
            lister_watcher,
            processed,
            name=f"{self.name} in {namespace}",
            known=_StoreOfNamespace(self._store, namespace),
            resync_period=0.0,
            quarantine=member.quarantine,
        )
        member.task = tasks.create_task(self._run_member(member, source), name=f"{self.name} in {namespace}")

    async def _run_member(self, member: _Member, source: Source) -> None:
        namespace = member.name
        if leaving := self._leaving.get(namespace):
            await asyncio.wait(set(leaving))
        try:
            await source.controller.run()
        finally:
            if self._members.get(namespace) is not member:
                await self._pipeline.forget(self._store.indexed_keys(NAMESPACE_INDEX, namespace))

    def _member(self, namespace: str) -> _Member:
        return _Member(namespace, self._undecodable.add_quarantine())

    def _remove(self, namespace: str) -> asyncio.Task[None] | None:
        member = self._members.pop(namespace)
        self._undecodable.remove_quarantine(member.quarantine)
        member.synced.fail(InformerStopped(f"namespace {namespace} was removed before it had synced"))
        if member.task is not None:
            self._leaving.setdefault(namespace, set()).add(member.task)
            member.task.add_done_callback(partial(self._left, namespace))
            member.task.cancel()
        return member.task

    def _left(self, namespace: str, task: asyncio.Task[None]) -> None:
        leaving = self._leaving[namespace]
        leaving.discard(task)
        if not leaving:
            del self._leaving[namespace]

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(self._pipeline.handlers.periods.check)
            if self._pipeline.handlers.should_resync():
                for member in list(self._members.values()):
                    try:
                        if member.source is not None:
                            await member.source.queue.resync()
                    except EXHAUSTION:
                        _log.exception("%s: the resync failed", self.name)

    def _advance(self) -> None:
        versions = [member.version for member in self._members.values()]
        if versions and all(versions):
            least = min(versions, key=version_number)
            self._reached(least)
        if self._tasks is not None and not self._synced and all(member.synced for member in self._members.values()):
            self._set_synced()


def _checked(namespaces: Iterable[str]) -> dict[str, None]:
    """Return the namespaces in their order, without repetitions."""
    if isinstance(namespaces, str):
        raise UsageError(f"namespaces must be a list of names, not a string: [{namespaces!r}]")
    wanted = dict.fromkeys(namespaces)
    for namespace in wanted:
        check_namespace(namespace, "namespaces")
        if not namespace:
            raise UsageError("namespaces must be named one by one; for all of them, use a SharedIndexInformer")
    return wanted
