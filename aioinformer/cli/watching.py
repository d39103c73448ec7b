"""`aioinformer watch`: one informer with one handler, from the first request to the last line.

It ends by a condition that came true, the time-out, a signal, a stdout that is closed, or an error. Whatever the
reason, what runs is unwound, and what is still to be said is said.
"""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

from aioinformer.cli.connecting import connected
from aioinformer.cli.lines import stored, summed_up
from aioinformer.cli.measures import LoopLag, max_rss_kib
from aioinformer.cli.options import Output, WatchOptions
from aioinformer.cli.program import Program
from aioinformer.cli.recorder import Recorder
from aioinformer.discovery import Discovery
from aioinformer.keys import meta_namespace_key_func
from aioinformer.listwatch import ListWatch
from aioinformer.logger import get_logger
from aioinformer.notifications import ResourceEventHandlerDetailedFuncs
from aioinformer.shared_informer import SharedIndexInformer
from aioinformer.state import InformerState, Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cli.connecting import TimedTransport
    from aioinformer.cli.lines import Form
    from aioinformer.resources import Resource

logger = get_logger("aioinformer.cli")

_SETTLE = 0.8
"""Seconds within the grace that what is still to be told may take before a dump."""


class WatchSession(Program):
    """One run of `watch`. To be made where the loop runs.

    Args:
        options: what to watch, and until when.
        form: how notifications look, None not to print them.
        write: takes each line of stdout.
    """

    def __init__(self, options: WatchOptions, form: Form | None, write: Callable[[bytes], None]) -> None:
        super().__init__()
        self._options = options
        self._write = write
        self._recorder = Recorder(
            form,
            write,
            clock=asyncio.get_running_loop().time,
            version=self._version,
            until_synced=options.until_synced,
            exit_after=options.exit_after,
            remember=options.dump_on_exit,
            on_enough=lambda: self.end(0),
        )
        self._lag = LoopLag()
        self._informer: SharedIndexInformer[Any] | None = None
        self._listing: tuple[TimedTransport, str] | None = None
        self._store: list[Any] = []

    def interrupt(self) -> None:
        self.end(1 if self._options.conditional else 0)

    async def run(self) -> int:
        work = asyncio.create_task(self._work(), name="watch")
        code = await self.until_end(work, self._options.timeout, 1)
        self._lag.stop()
        if self._options.dump_on_exit and self._informer is not None:
            await self._take_store(self._informer)
        self._recorder.close()
        code = await self.unwind(work, code)
        self._say_the_rest()
        return code

    async def _work(self) -> None:
        options = self._options
        async with connected(options.server) as (transport, default_namespace):
            if options.output is Output.SUMMARY:
                # What has been imported stays: the collector need not walk through it again and again.
                gc.collect()
                gc.freeze()
                self._lag.start()
            discovery = Discovery(transport)
            resource = await discovery.wait_for(options.resource, _report)
            resource.require("list", "watch")
            namespace = ""
            if resource.namespaced and not options.all_namespaces:
                namespace = options.namespace or default_namespace
            self._listing = (transport, resource.path(namespace))
            lister_watcher = ListWatch(
                transport,
                resource,
                namespace=namespace,
                label_selector=options.selector,
                field_selector=options.field_selector,
                metadata_only=options.metadata_only,
            )
            informer = SharedIndexInformer(lister_watcher, resync_period=options.resync)
            await self._follow(informer, discovery, resource)

    async def _follow(self, informer: SharedIndexInformer[Any], discovery: Discovery, resource: Resource[Any]) -> None:
        recorder = self._recorder
        self._informer = informer
        registration = informer.add_event_handler(
            ResourceEventHandlerDetailedFuncs(
                on_add=recorder.on_add, on_update=recorder.on_update, on_delete=recorder.on_delete
            )
        )
        recorder.has_synced = registration.has_synced
        missing = asyncio.Event()

        def on_state(state: InformerState) -> None:
            recorder.note_version()
            if state.phase is Phase.NOT_FOUND and recorder.synced_at is None:
                missing.set()

        informer.add_state_handler(on_state)

        async def tell_synced() -> None:
            await registration.wait_for_sync()
            recorder.tell_synced()

        async def make_sure() -> None:
            # A built-in resource was taken for granted, or a custom one has gone since it was discovered.
            while recorder.synced_at is None:
                await missing.wait()
                missing.clear()
                await discovery.wait_for(resource.gvr, _report, fresh=True)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(informer.run(), name=f"informer of {resource}")
            tasks.create_task(tell_synced(), name="wait for the initial list")
            tasks.create_task(make_sure(), name="look for a resource that was not found")

    async def _take_store(self, informer: SharedIndexInformer[Any]) -> None:
        self._store = sorted(informer.get_indexer().list(), key=meta_namespace_key_func)
        try:
            async with asyncio.timeout(_SETTLE):
                await self._recorder.settle(self._store)
        except TimeoutError:
            logger.warning("the store holds more than has been told: there was no time to tell the rest")

    def _say_the_rest(self) -> None:
        for obj in self._store:
            self._write(stored(obj))
        if self._options.output is Output.SUMMARY:
            self._write(summed_up(self._figures()))

    def _figures(self) -> dict[str, Any]:
        recorder = self._recorder
        started = self._listing and self._listing[0].first_request(self._listing[1])
        changing = (recorder.last_change or 0.0) - (recorder.first_change or 0.0)
        synced = started is not None and recorder.synced_at is not None
        return {
            "adds": recorder.adds,
            "updates": recorder.updates,
            "deletes": recorder.deletes,
            "sync_seconds": round((recorder.synced_at or 0.0) - (started or 0.0), 6) if synced else None,
            "watch_seconds": round(changing, 6) if synced else None,
            "objects": 0 if self._informer is None else len(self._informer.get_indexer().list_keys()),
            "max_rss_kib": max_rss_kib(),
            "loop_lag_ms": self._lag.lateness(),
        }

    def _version(self) -> str:
        return "" if self._informer is None else self._informer.initial_resource_version


def _report(failure: Exception, delay: float) -> None:
    logger.warning("discovery: %s; next attempt in %.1f s", failure, delay)
