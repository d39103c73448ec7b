"""One informer over several namespaces, which may come and go while it runs.

Who may read some namespaces and not all needs a list and a watch for each. Here they share one cache, one set of
handlers, and one state:

- Each namespace has a reflector, a queue and a process loop of its own, and they do not wait for each other.
- They fill one cache, with one lister; handlers are told in one line, as by any informer.
- A namespace that is removed is told as deletions, with the last known states: nobody looks there any more.
- The version of the cache is the least of the namespaces' versions: up to there, everything of all of them is in it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from aioinformer.cache.objects.storage import Storage
from aioinformer.cache.store import NAMESPACE_INDEX
from aioinformer.concurrency import Latch
from aioinformer.errors import EXHAUSTION, InformerStopped, UsageError
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.informer.sync import SyncResult, all_synced
from aioinformer.logs import get_logger
from aioinformer.reflector.listwatch import ListWatch
from aioinformer.reflector.state import InformerState, Phase
from aioinformer.resources.scopes import check_namespace
from aioinformer.resources.versions import version_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aioinformer.cache.store import ThreadSafeStore
    from aioinformer.informer.controller import Source
    from aioinformer.reflector.listwatch import ListerWatcher
    from aioinformer.reflector.protocol.changes import Quarantine
    from aioinformer.reflector.reflector import Reflector

T = TypeVar("T")

_log = get_logger("aioinformer.factory")


class _KnownInNamespace:
    """What the cache has of one namespace."""

    def __init__(self, store: ThreadSafeStore[Any], namespace: str) -> None:
        self._store = store
        self._namespace = namespace

    def all_keys(self) -> list[str]:
        return self._store.indexed_keys(NAMESPACE_INDEX, self._namespace)

    def item(self, key: str) -> Any:
        return self._store.item(key)


class _Member:
    """One namespace."""

    def __init__(self, quarantine: Quarantine) -> None:
        self.source: Source | None = None
        self.quarantine = quarantine
        self.task: asyncio.Task[None] | None = None
        self.version = ""
        self.synced = Latch()

    @property
    def state(self) -> InformerState:
        return self.source.controller.reflector.state if self.source else InformerState(Phase.NEW, "", 0.0)


@dataclass(frozen=True, slots=True)
class _Syncing:
    """One namespace, for those who wait for several."""

    name: str
    member: _Member

    def has_synced(self) -> bool:
        return bool(self.member.synced)

    async def wait_for_sync(self) -> None:
        await self.member.synced.wait()


class MultiNamespaceInformer(SharedIndexInformer[T]):
    """A `SharedIndexInformer` of some namespaces.

    Args:
        lister_watcher_for: namespace -> what to list and watch there: `lambda namespace: ListWatch(transport, PODS,
            namespace)`. Also asked once for "", to know the resource.
        namespaces: to begin with; may be empty.
        resync_period: as for `SharedIndexInformer`.
        options: as for `SharedIndexInformer`. With `queue="in_order"` the order is that of each namespace, and a relist
            of one reaches readers in one piece.

    Raises:
        UsageError: the resource has no namespaces, or an option makes no sense.
    """

    _tasks: asyncio.TaskGroup | None = None  # metrics may ask while this is being made

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
        self._only_metadata = options.get("storage") == Storage.METADATA
        self._lister_watcher_for = lister_watcher_for
        self._members: dict[str, _Member] = {each: self._member() for each in _checked(namespaces)}
        #: What ends in a namespace that was removed; it may be added again meanwhile.
        self._leaving: dict[str, set[asyncio.Task[None]]] = {}

    @property
    def namespaces(self) -> frozenset[str]:
        """The namespaces that are looked at."""
        return frozenset(self._members)

    async def add_namespace(self, namespace: str) -> None:
        """Looks at one namespace more; returns once its objects are in the cache. Nothing happens if it is there.

        A wait that is cancelled leaves the namespace added.

        Raises:
            InformerStopped: the informer has stopped, or stopped before that.
            UsageError: this is no namespace.
        """
        await self.set_namespaces({*self._members, namespace})
        if self._started and (member := self._members.get(namespace)) is not None:
            await member.synced.wait()  # somebody else may have added it just now

    async def remove_namespace(self, namespace: str) -> None:
        """Looks at one namespace less; returns once its objects are gone from the cache, and handlers will be told.

        A wait that is cancelled leaves the namespace removed.

        Raises:
            InformerStopped: the informer has stopped.
        """
        await self.set_namespaces(self._members.keys() - {namespace})
        if leaving := self._leaving.get(namespace):
            await asyncio.wait(set(leaving))  # somebody else may have removed it just now

    async def set_namespaces(self, namespaces: Iterable[str]) -> None:
        """Looks at these namespaces from now on: the removed ones end first, then the new ones are waited for.

        Raises:
            InformerStopped: the informer has stopped, or stopped before that.
            UsageError: one is no namespace; nothing is changed then.
            Exception: what `lister_watcher_for` raised; nothing is changed then, either.
        """
        wanted = _checked(namespaces)
        if self._stopped:
            raise InformerStopped(f"namespaces were not changed because {self.name} has stopped already")
        new = [namespace for namespace in wanted if namespace not in self._members]
        lister_watchers = {each: self._lister_watcher_for(each) for each in new} if self._tasks is not None else {}
        fresh = {namespace: self._member() for namespace in new}
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
        timeout: float | None = None,  # noqa: ASYNC109 - a time-out is an answer here, not an exception
    ) -> SyncResult:
        """Waits until the objects of every namespace that is looked at now are in the cache.

        Args:
            timeout: in seconds, None for no limit.

        Returns:
            Whether all are, and whether those of each are: a mapping with keys like "v1/pods?namespace=shop".

        Raises:
            InformerStopped: the informer stopped, or a namespace was removed, before that.
            Exception: what the informer crashed with.
        """
        gvr = self.resource.gvr
        return await all_synced(
            {f"{gvr}?namespace={each}": _Syncing(each, member) for each, member in self._members.items()},
            timeout=timeout,
        )

    # What a single informer asks its one reflector.

    @property
    def initial_resource_version(self) -> str:
        """ "": the namespaces were listed at different versions."""
        return ""

    def _reflector_state(self) -> InformerState:
        """That of the first namespace that is not healthy; the reason names it."""
        if self._tasks is None:
            return super()._reflector_state()
        states = {namespace: member.state for namespace, member in sorted(self._members.items())}
        if not states:
            return InformerState(Phase.WATCHING, "", 0.0)
        namespace = min(states, key=lambda each: states[each].healthy)
        state = states[namespace]
        return replace(state, reason=f"namespace {namespace}: {state.reason}") if state.reason else state

    def reflectors(self) -> dict[str, Reflector]:
        """What lists and watches, by namespace."""
        members = list(self._members.items())
        return {namespace: each.source.controller.reflector for namespace, each in members if each.source}

    # Life.

    async def _follow(self) -> None:
        async with asyncio.TaskGroup() as tasks:
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

    def _end(self, failure: BaseException) -> None:
        super()._end(failure)
        for member in self._members.values():
            member.synced.fail(failure)

    def _start(self, namespace: str, lister_watcher: ListerWatcher[T], tasks: asyncio.TaskGroup) -> None:
        member = self._members[namespace]
        known = _KnownInNamespace(self._indexer.store, namespace)
        if self._only_metadata and isinstance(lister_watcher, ListWatch):
            lister_watcher = lister_watcher.only_metadata()

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
            known=known,
            resync_period=0.0,
            quarantine=member.quarantine,
        )
        member.task = tasks.create_task(self._look_at(namespace, member), name=f"{self.name} in {namespace}")

    async def _look_at(self, namespace: str, member: _Member) -> None:
        assert member.source is not None
        if leaving := self._leaving.get(namespace):
            await asyncio.wait(set(leaving))
        try:
            await member.source.controller.run()
        finally:
            if self._members.get(namespace) is not member:
                await self._pipeline.forget(self._indexer.store.indexed_keys(NAMESPACE_INDEX, namespace))

    def _member(self) -> _Member:
        return _Member(self._undecodable.quarantine())

    def _remove(self, namespace: str) -> asyncio.Task[None] | None:
        member = self._members.pop(namespace)
        self._undecodable.dismiss(member.quarantine)
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
            self._filled()


def _checked(namespaces: Iterable[str]) -> dict[str, None]:
    """The namespaces in their order, each once."""
    if isinstance(namespaces, str):
        raise UsageError(f"namespaces must be a list of names, not a string: [{namespaces!r}]")
    wanted = dict.fromkeys(namespaces)
    for namespace in wanted:
        check_namespace(namespace, "namespaces")
        if not namespace:
            raise UsageError("namespaces must be named one by one; for all of them, use a SharedIndexInformer")
    return wanted
