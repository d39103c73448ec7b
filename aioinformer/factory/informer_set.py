"""`InformerSet`: the informers of one factory. They run in one task group, and stop together."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from aioinformer.concurrency import ENDING, Owner, TaskGroup
from aioinformer.errors import UsageError, collapsed
from aioinformer.factory.memory import MemoryLimit, memory_of
from aioinformer.informer.options import Making, merge_indexers
from aioinformer.informer.outages import Outages
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.informer.snapshots import FactorySnapshot, factory_snapshot

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from aioinformer.factory.memory import InformerMemory
    from aioinformer.metrics.names import InformerName
    from aioinformer.resources.scopes import InformerKey

I = TypeVar("I", bound=SharedIndexInformer[Any])  # noqa: E741


class InformerSet(Generic[I]):
    """Owns informers while it runs. Different tasks may start and stop it.

    Args:
        name: for tasks.
        start_hint: how users start the informers, for errors.
        on_crash: what follows the crash of an informer. "raise": it ends the set, and cancels the block of `enter`.
            "log": it stays in the set, and the others go on. "drop": it is removed, and the others go on.
        memory_limit: above which a warning is logged, in bytes; None for no limit.

    Attributes:
        by_key: the text of an `InformerKey` -> its informer; without internal ones.
        stopped: whether the stop has begun, after which no informer starts.
    """

    def __init__(
        self,
        name: str,
        start_hint: str,
        on_crash: Literal["raise", "log", "drop"] = "raise",
        memory_limit: int | None = None,
    ) -> None:
        self._limit = None if memory_limit is None else MemoryLimit(memory_limit)
        self.by_key: dict[str, I] = {}
        self.stopped = False
        self._name = name
        self._start_hint = start_hint
        self._on_crash = on_crash
        self._makings: dict[str, Making] = {}
        #: Internal informers that serve this set; users do not request them.
        self._others: list[SharedIndexInformer[Any]] = []
        self._started: dict[SharedIndexInformer[Any], asyncio.Task[None]] = {}
        self._owner = Owner()
        self._tasks: asyncio.TaskGroup | None = None
        self._outages = Outages(name, lambda: len(self.informers()), self._after_crash)

    # Contents.

    def find(self, key: InformerKey, options: Mapping[str, Any]) -> I | None:
        """Return the informer of a key, after adding the requested indices; None if there is none.

        Args:
            options: from `named_options`: the requested configuration.

        Raises:
            UsageError: the informer has other options, or another index of the same name. Nothing is changed then.
            InformerStopped: it has stopped, and does not have a requested index.
        """
        informer = self.by_key.get(str(key))
        if informer is None:
            return None
        differences = self._makings[str(key)].differences(options)
        if (mine := informer.resource.model) != (requested := key.resource.model):
            differences.append(f"model of the Resource is {mine!r}, not {requested!r}")
        if differences:
            raise UsageError(
                f"{key} already has an informer with other options: {'; '.join(differences)}. "
                "Pass the same options, or omit them; or use another factory"
            )
        if new := merge_indexers(informer.get_indexer(), options.get("indexers") or {}):
            informer.add_indexers(new)
        return informer

    def add(self, key: InformerKey, informer: I, making: Making) -> None:
        """Add an informer. Call `start_informers` to start it."""
        self._adopt(informer)
        self.by_key[str(key)] = informer
        self._makings[str(key)] = making

    def add_other(self, informer: SharedIndexInformer[Any]) -> None:
        """Add an internal informer that serves the set; users do not request it."""
        self._adopt(informer)
        self._others.append(informer)

    async def remove(self, informer: I) -> None:
        """Remove an informer, stop it, and wait for its end. A later one may have the same key at once."""
        task = self._drop(informer)
        if task is None:
            informer.retire()
        else:
            task.cancel()
            await asyncio.wait({task})

    def _drop(self, informer: I) -> asyncio.Task[None] | None:
        for key in [key for key, each in self.by_key.items() if each is informer]:
            del self.by_key[key], self._makings[key]
        informer.release_identity()
        return self._started.pop(informer, None)

    def informers(self) -> list[SharedIndexInformer[Any]]:
        """Return all informers."""
        return [*self.by_key.values(), *self._others]

    def _adopt(self, informer: SharedIndexInformer[Any]) -> None:
        informer.start_hint = self._start_hint

    # Life.

    @property
    def running(self) -> bool:
        """Whether the set was started, and has not stopped."""
        return self._owner.running

    def check(self) -> None:
        """Raise the exception that an informer has crashed with, if any.

        Raises:
            Exception: that exception.
        """
        self._owner.check()

    def start(self) -> None:
        """Start the set, or the informers that were added since."""
        if not self._owner.running:
            self._owner.start(self._run, self._name)
        self.start_informers()

    async def enter(self) -> None:
        """Start the set, or the informers that were added since; return when the set is running."""
        if not self._owner.running:
            self._expect_start()
            await self._owner.enter(self._run, self._name)
        else:
            self.start_informers()
            await self._owner.begin_block()

    def start_informers(self) -> None:
        """Start the informers that are not running yet, if the set is running."""
        if self._owner.running:
            self._expect_start()
        if self._tasks is None:
            return
        for informer in self.informers():
            if informer not in self._started:
                informer.outages = self._outages
                self._started[informer] = self._tasks.create_task(self._run_informer(informer), name=informer.name)

    async def _run_informer(self, informer: Any) -> None:
        try:
            await informer.run()
        except BaseException as error:
            if self._on_crash == "raise" or isinstance(error, ENDING):
                raise
            if self._on_crash == "drop":
                self._drop(informer)

    def _after_crash(self) -> str:
        if self._on_crash == "drop":
            return "the controllers that use it are restarted"
        if self._on_crash == "log":
            return f"the other informers of the {self._name} go on"
        cancels = self._owner.cancel_block()
        return f"the {self._name} stops, and {'its block is cancelled' if cancels else 'shutdown() raises the error'}"

    async def leave(self, kind: type[BaseException] | None, stop: Callable[[], Awaitable[None]]) -> None:
        """Stop at the end of a block that `enter` has begun; see `Owner.leave`."""
        await self._owner.leave(kind, stop)

    async def stop(self) -> None:
        """Stop all informers and wait for them.

        Raises:
            Exception: an informer had crashed with it.
        """
        self.stopped = True
        try:
            await self._owner.stop()
        finally:
            self._retire()

    def is_ready(self) -> bool:
        """Return whether every informer is ready."""
        return self._owner.running and not self.unready()

    def unready(self) -> dict[str, str]:
        """Return the informers that are not ready, with their states: "stopped: crashed: KeyError"."""
        named: dict[str, SharedIndexInformer[Any]] = {**self.by_key, **{each.name: each for each in self._others}}
        return {key: str(each.state) for key, each in named.items() if not each.is_ready()}

    def _expect_start(self) -> None:
        for informer in self.informers():
            informer.start_requested = True

    def snapshot(self, name: InformerName | None) -> FactorySnapshot:
        """Return the state of all informers. `name` is that of the owner, for metrics."""
        snapshots = {key: informer.snapshot() for key, informer in self.by_key.copy().items()}
        label = name.name if name is not None else ""
        return factory_snapshot(label, snapshots, running=self.running, ready=self.is_ready())

    async def memory(self) -> dict[str, InformerMemory]:
        """Return what the cache of each informer takes."""
        known = [(key, informer, self._makings[key].storage) for key, informer in self.by_key.items()]
        return {key: await memory_of(informer, storage) for key, informer, storage in known}

    def describe(self, owner: object, name: InformerName | None) -> str:
        """Return the `repr` of the owner."""
        informers = list(self.by_key.values())
        life = "running" if self.running else "not started"
        if self.stopped:
            life = "stopped"
        synced = sum(informer.has_synced() for informer in informers)
        unhealthy = [f"{each.name}: {each.state}" for each in informers if self.running and not each.state.healthy]
        named = f" {name.name}" if name is not None else ""
        if unhealthy:
            failing = f", {len(unhealthy)} not healthy ({'; '.join(unhealthy[:3])})"
        else:
            failing = ""
        return f"<{type(owner).__name__}{named}, {life}, {len(informers)} informers, {synced} synced{failing}>"

    async def _run(self) -> None:
        try:
            async with TaskGroup() as tasks:
                self._tasks = tasks
                self.start_informers()
                if self._limit is not None:
                    tasks.create_task(self._limit.watch(self.memory), name=f"memory of the {self._name}")
                try:
                    await asyncio.get_running_loop().create_future()
                finally:
                    self._tasks = None  # start nothing while the informers stop
        except BaseExceptionGroup as group:
            error = collapsed(group)
            raise error from error.__cause__
        finally:
            self._retire()

    def _retire(self) -> None:
        # Informers whose task was cancelled before its first step have to be stopped here.
        for informer in self.informers():
            informer.retire()
