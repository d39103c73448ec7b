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
from collections.abc import Callable, Iterable
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from aioinformer.concurrency import Latch, TaskGroup
from aioinformer.errors import InformerStopped, UsageError
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.informer.sources import NOT_STARTED, Sources, excluded_by
from aioinformer.informer.sync import SyncResult, all_synced
from aioinformer.logs import get_logger
from aioinformer.reflector.listwatch import ListerWatcher
from aioinformer.reflector.state import InformerState, Phase
from aioinformer.resources.keys import object_name, split_meta_namespace_key
from aioinformer.resources.scopes import check_namespace
from aioinformer.resources.versions import covers, version_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.cache.waiters import Write
    from aioinformer.informer.process_loop import Source
    from aioinformer.reflector.reflector import Reflector

T = TypeVar("T")

_log = get_logger("aioinformer.factory")


class _Member:
    """One namespace of the informer; `all_synced` accepts it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.source: Source | None = None
        self.task: asyncio.Task[None] | None = None
        self.version = ""
        self.synced = Latch()

    def has_synced(self) -> bool:
        return bool(self.synced)

    async def wait_for_sync(self) -> None:
        await self.synced.wait()


class _Namespaces(Sources[T]):
    """The collections of some namespaces."""

    def __init__(self, lister_watcher_for: Callable[[str], ListerWatcher[T]], namespaces: Iterable[str]) -> None:
        self.lister_watcher = lister_watcher_for("")
        self.members = {each: _Member(each) for each in _checked(namespaces)}
        #: The ending tasks of removed namespaces, which may be added again meanwhile.
        self.leaving: dict[str, set[asyncio.Task[None]]] = {}
        self._lister_watcher_for = lister_watcher_for
        self._tasks: asyncio.TaskGroup | None = None

    async def replace(self, wanted: Mapping[str, None]) -> list[_Member]:
        """Replace the set of namespaces, wait until removed ones are gone, and return the members that are new."""
        new = {namespace: _Member(namespace) for namespace in wanted if namespace not in self.members}
        if self._tasks is not None:
            lister_watchers = {each: self._lister_watcher_for(each) for each in new}
        else:
            lister_watchers = {}
        leaving = [self._remove(namespace) for namespace in self.members.keys() - wanted.keys()]
        self.members |= new
        self._advance()
        if self._tasks is not None:
            for namespace, lister_watcher in lister_watchers.items():
                self._start(new[namespace], lister_watcher, self._tasks)
        if tasks := {task for task in leaving if task is not None}:
            await asyncio.wait(tasks)
        return list(new.values())

    async def follow(self) -> None:
        async with TaskGroup() as tasks:
            for namespace, member in self.members.items():
                self._start(member, self._lister_watcher_for(namespace), tasks)
            self._tasks = tasks
            self._advance()
            if self.feed.pipeline.handlers.periods.check:
                tasks.create_task(self._resync(), name=f"{self.feed.name}: resync")
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self._tasks = None

    @property
    def state(self) -> InformerState:
        if self._tasks is None:
            return NOT_STARTED
        states = {namespace: each.state for namespace, each in sorted(self.reflectors().items())}
        if not states:
            return InformerState(Phase.WATCHING, "", 0.0)
        namespace = min(states, key=lambda each: (states[each].healthy, states[each].stale_since or inf))
        state = states[namespace]
        if state.reason:
            return replace(state, reason=f"namespace {namespace}: {state.reason}")
        return state

    def reflectors(self) -> dict[str, Reflector]:
        members = self.members.copy()
        return {namespace: each.source.controller.reflector for namespace, each in members.items() if each.source}

    def lister_watchers(self) -> list[ListerWatcher[T]]:
        return [each.source.lister_watcher for each in self.members.values() if each.source]

    def has_synced(self) -> bool:
        return self._tasks is not None and all(member.synced for member in self.members.values())

    def has_listed(self, key: str) -> bool:
        member = self.members.get(split_meta_namespace_key(key).namespace)
        return member is None or (member.source is not None and member.source.controller.has_listed)

    def outside(self, written: Any) -> str:
        member = self.members.get(object_name(written).namespace)
        if member is None:
            return f"it is not in one of the namespaces {', '.join(sorted(self.members)) or '(none)'}"
        if member.source is None:
            return ""
        return excluded_by(member.source.lister_watcher, written)

    def has_reached(self, write: Write) -> bool:
        member = self.members.get(split_meta_namespace_key(write.key).namespace)
        if member is None or member.source is None:
            return False
        # The version of the cache may be that of other namespaces: this one may have been added since.
        return (
            bool(member.version) and covers(member.version, write.version) and member.source.has_order(write.version)
        ) or (version_number(write.version) < 0 and self.feed.versions.includes(write.version))

    def end(self, failure: BaseException) -> None:
        super().end(failure)
        for member in self.members.values():
            member.synced.fail(failure)

    def _start(self, member: _Member, lister_watcher: ListerWatcher[T], tasks: asyncio.TaskGroup) -> None:
        def processed(version: str) -> None:
            member.version = version
            if source.queue.has_synced():
                member.synced.set()
            self._advance()

        source = self.feed.new_source(lister_watcher, processed, member.name)
        member.source = source
        member.task = tasks.create_task(self._run_member(member, source), name=source.controller.reflector.name)

    async def _run_member(self, member: _Member, source: Source) -> None:
        if leaving := self.leaving.get(member.name):
            await asyncio.wait(set(leaving))
        try:
            await source.controller.run()
        finally:
            if self.members.get(member.name) is not member:
                await self.feed.pipeline.forget(source.known.all_keys())

    def _remove(self, namespace: str) -> asyncio.Task[None] | None:
        member = self.members.pop(namespace)
        if member.source is not None:
            self.feed.undecodable.remove_quarantine(member.source.controller.reflector.quarantine)
        member.synced.fail(InformerStopped(f"namespace {namespace} was removed before it had synced"))
        if member.task is not None:
            self.leaving.setdefault(namespace, set()).add(member.task)
            member.task.add_done_callback(partial(self._left, namespace))
            member.task.cancel()
        return member.task

    def _left(self, namespace: str, task: asyncio.Task[None]) -> None:
        leaving = self.leaving[namespace]
        leaving.discard(task)
        if not leaving:
            del self.leaving[namespace]

    async def _resync(self) -> None:
        handlers = self.feed.pipeline.handlers
        while True:
            await asyncio.sleep(handlers.periods.check)
            if handlers.should_resync():
                for member in list(self.members.values()):
                    try:
                        if member.source is not None:
                            await member.source.queue.resync()
                    except Exception:
                        _log.exception("%s: the resync failed", self.feed.name)

    def _advance(self) -> None:
        versions = [member.version for member in self.members.values()]
        self.feed.processed(min(versions, key=version_number) if versions and all(versions) else "")


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
        self._namespaces = _Namespaces(lister_watcher_for, namespaces)
        super().__init__(self._namespaces, resync_period, **options)
        if not self.resource.namespaced:
            raise UsageError(f"{self.resource.group_resource} is cluster-scoped: use a SharedIndexInformer")

    @property
    def namespaces(self) -> frozenset[str]:
        """The current namespaces."""
        return frozenset(self._namespaces.members)

    async def add_namespace(self, namespace: str) -> None:
        """Add a namespace unless it is there, and wait until its objects are in the cache.

        Cancelling the wait keeps the namespace.

        Raises:
            InformerStopped: the informer has stopped, or stopped before that.
            UsageError: the name is not a valid namespace.
            Exception: raised by `lister_watcher_for`; nothing is changed then.
        """
        await self.set_namespaces({*self._namespaces.members, namespace})
        if self._started and (member := self._namespaces.members.get(namespace)) is not None:
            await member.synced.wait()  # another task may have added it just now

    async def remove_namespace(self, namespace: str) -> None:
        """Remove a namespace, and wait until its objects are removed from the cache and their deletes enqueued.

        Cancelling the wait does not restore the namespace.

        Raises:
            InformerStopped: the informer has stopped.
        """
        await self.set_namespaces(self._namespaces.members.keys() - {namespace})
        if leaving := self._namespaces.leaving.get(namespace):
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
        fresh = await self._namespaces.replace(wanted)
        if self._started:
            for member in fresh:
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
            {f"{gvr}?namespace={each}": member for each, member in self._namespaces.members.items()}, timeout=timeout
        )


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
