"""Informers that live together: they run in one task group, and end together."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aioinformer.identity import InformerName
from aioinformer.outages import Outages
from aioinformer.owner import Owner, collapsed
from aioinformer.snapshots import FactorySnapshot, factory_snapshot
from aioinformer.waiting import wait_for_cache_sync

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.shared_informer import SharedIndexInformer


class InformerSet:
    """Owns informers while it runs. It may be entered and left by different tasks.

    Args:
        name: for tasks.

    Attributes:
        by_gvr: all of them, by the `gvr` of their resource. Who adds one says when to start it.
        stopped: whether the stop was asked for: no informer is started any more.
    """

    def __init__(self, name: str) -> None:
        self.by_gvr: dict[str, SharedIndexInformer[Any]] = {}
        self.stopped = False
        self._name = name
        self._started: set[str] = set()
        self._owner = Owner()
        self._tasks: asyncio.TaskGroup | None = None
        self._outages = Outages(name, lambda: len(self.by_gvr))

    @property
    def running(self) -> bool:
        """Whether it was started, and has not ended."""
        return self._owner.running

    def check(self) -> None:
        """Raises what an informer crashed with.

        Raises:
            Exception: that.
        """
        self._owner.check()

    def start(self) -> None:
        """Starts the set, or what was added to it since."""
        if not self._owner.running:
            self._owner.start(self._run, self._name)
        else:
            self.start_informers()

    async def enter(self) -> None:
        """The same; returns when it has begun."""
        if not self._owner.running:
            await self._owner.enter(self._run, self._name)
        else:
            self.start_informers()

    def start_informers(self) -> None:
        """Starts the informers that do not run yet, if the set runs; before that, nothing happens."""
        if self._tasks is None:
            return
        for gvr, informer in self.by_gvr.items():
            if gvr not in self._started:
                self._started.add(gvr)
                informer.outages = self._outages
                self._tasks.create_task(informer.run(), name=informer.name)

    async def stop(self) -> None:
        """Ends all informers, and waits for that.

        Raises:
            Exception: what an informer had crashed with.
        """
        self.stopped = True
        try:
            await self._owner.stop()
        finally:
            self._retire()

    def is_ready(self) -> bool:
        """Whether every informer runs and has filled its cache."""
        return self._owner.running and all(
            informer.has_synced() and not informer.is_stopped() for informer in self.by_gvr.values()
        )

    def snapshot(self, name: str) -> FactorySnapshot:
        """What all informers are doing.

        Args:
            name: of the owner, for metrics.
        """
        snapshots = {key: informer.snapshot() for key, informer in list(self.by_gvr.items())}
        return factory_snapshot(name, snapshots, running=self.running, ready=self.is_ready())

    def describe(self, owner: object, name: object) -> str:
        """The `repr` of the owner."""
        informers = list(self.by_gvr.values())
        life = "stopped" if self.stopped else "running" if self.running else "not started"
        synced = sum(informer.has_synced() for informer in informers)
        unhealthy = [f"{each.name}: {each.state}" for each in informers if self.running and not each.state.healthy]
        named = f" {name.name}" if isinstance(name, InformerName) else ""
        failing = f", {len(unhealthy)} not healthy ({'; '.join(unhealthy[:3])})" if unhealthy else ""
        return f"<{type(owner).__name__}{named}, {life}, {len(informers)} informers, {synced} synced{failing}>"

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                self.start_informers()
                try:
                    await asyncio.get_running_loop().create_future()
                finally:
                    self._tasks = None  # while the others end, nothing is started any more
        except BaseExceptionGroup as group:
            error = collapsed(group)
            raise error from error.__cause__
        finally:
            self._retire()

    def _retire(self) -> None:
        # A task that is cancelled before its first step never takes it.
        for informer in self.by_gvr.values():
            informer.retire()


async def synced_in_time(
    informers: Mapping[str, SharedIndexInformer[Any]],
    timeout: float | None,  # noqa: ASYNC109 - a time-out is an answer here, not an exception
) -> dict[str, bool]:
    """Waits until all have filled their caches, or the time is over; which of them have.

    Raises:
        InformerStopped: one stopped before that.
        Exception: what an informer crashed with.
    """
    informers = dict(informers)
    await wait_for_cache_sync(*informers.values(), timeout=timeout)
    return {gvr: informer.has_synced() for gvr, informer in informers.items()}
