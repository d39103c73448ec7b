"""One resource of `watch`: found by discovery, followed by an informer with one handler, and its figures."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aioinformer.cli.output.lines import JsonForm
from aioinformer.cli.watch.printer import Recorder
from aioinformer.errors import AioinformerError, ApiError, UsageError
from aioinformer.handlers.notifications import ResourceEventHandlerDetailedFuncs
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.logs import get_logger
from aioinformer.reflector.listwatch import ListWatch
from aioinformer.reflector.state import InformerState, Phase
from aioinformer.resources.keys import meta_namespace_key_func
from aioinformer.transport import Request
from aioinformer.transport.exchange import exchange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from aioinformer.cli.connecting import TimedTransport
    from aioinformer.cli.options import WatchOptions
    from aioinformer.cli.output.lines import Form
    from aioinformer.cli.targets import Target
    from aioinformer.cli.watch.printer import Goal
    from aioinformer.resources.discovery import Discovery
    from aioinformer.resources.resource import Resource

logger = get_logger("aioinformer.cli")


class Followed:
    """Follows one target. To be made where the loop runs.

    Args:
        target: what to follow.
        options: of the command.
        form: makes the form of lines for a resource; None not to print any.
        write: takes each line of stdout.
        goal: what is enough.
    """

    def __init__(
        self,
        target: Target,
        options: WatchOptions,
        form: Callable[[Resource[Any]], Form | None],
        write: Callable[[bytes], None],
        goal: Goal,
    ) -> None:
        self._target = target
        self._options = options
        self._form = form
        self._write = write
        self._informer: SharedIndexInformer[Any] | None = None
        self._listing: tuple[TimedTransport, str] | None = None
        self._store: list[Any] = []
        self.recorder = Recorder(
            None,
            write,
            clock=asyncio.get_running_loop().time,
            version=self._version,
            goal=goal,
            remember=options.dump_on_exit,
        )

    async def run(self, transport: TimedTransport, discovery: Discovery, default_namespace: str) -> None:
        """Follows the target until cancelled.

        Raises:
            UsageError: the resource is not served, cannot be watched, or the server refuses a selector.
        """
        options = self._options
        resource = await discovery.wait_for(self._target.resource, _report)
        resource.require("list", "watch")
        namespace = ""
        if resource.namespaced and not options.all_namespaces:
            namespace = options.namespace or default_namespace
        self._listing = (transport, resource.path(namespace))
        self.recorder.form = self._form(resource)
        field_selector = self._target.field_selector(options.field_selector)
        lister_watcher = ListWatch(
            transport,
            resource,
            namespace=namespace,
            label_selector=options.selector,
            field_selector=field_selector,
            metadata_only=options.metadata_only,
        )
        informer = self._informer = SharedIndexInformer(lister_watcher, resync_period=options.resync)
        recorder = self.recorder
        registration = informer.add_event_handler(
            ResourceEventHandlerDetailedFuncs(
                on_add=recorder.on_add, on_update=recorder.on_update, on_delete=recorder.on_delete
            )
        )
        recorder.has_synced = registration.has_synced
        missing, refused = asyncio.Event(), asyncio.Event()

        def on_state(state: InformerState) -> None:
            recorder.note_version()
            if recorder.synced_at is None:
                if state.phase is Phase.NOT_FOUND:
                    missing.set()
                elif state.phase is Phase.BACKING_OFF:
                    refused.set()

        informer.add_state_handler(on_state)

        async def tell_synced() -> None:
            await registration.wait_for_sync()
            recorder.tell_synced()

        async def make_sure_of_resource() -> None:
            # A built-in resource was taken for granted, or a custom one has gone since it was discovered.
            while recorder.synced_at is None:
                await missing.wait()
                missing.clear()
                await discovery.wait_for(resource.gvr, _report, fresh=True)

        async def make_sure_of_selectors() -> None:
            while recorder.synced_at is None:
                await refused.wait()
                refused.clear()
                await _check_selectors(transport, resource.path(namespace), options.selector, field_selector)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(informer.run(), name=f"informer of {resource}")
            tasks.create_task(tell_synced(), name=f"wait for the initial list of {resource}")
            tasks.create_task(make_sure_of_resource(), name=f"look for {resource}, which was not found")
            if options.selector or field_selector:
                tasks.create_task(make_sure_of_selectors(), name=f"check the selectors of {resource}")

    def take_store(self) -> list[Any]:
        """Take the objects in the cache, sorted by key, for `dump`."""
        if self._informer is not None:
            self._store = sorted(self._informer.get_indexer().list(), key=meta_namespace_key_func)
        return self._store

    def dump(self) -> None:
        """Write the objects that were taken; JSON whatever the form of the rest is."""
        form = self.recorder.form
        lines = form if isinstance(form, JsonForm) else JsonForm(self.name if len(self._options.targets) > 1 else "")
        for obj in self._store:
            self._write(lines.stored(obj))

    def warn_of_undecodable(self) -> None:
        """Say how many versions of objects were not printed because they could not be decoded, if there were some."""
        informer = self._informer
        if informer is not None and (count := informer.skipped):
            reasons = sorted(informer.undecodable().items(), reverse=True)
            last = f"; {reasons[0][0] or 'an object without a readable name'}: {reasons[0][1]}" if reasons else ""
            logger.warning("%s: not printed, because they could not be decoded: %d%s", self.name, count, last)

    @property
    def name(self) -> str:
        """The resource, as the server calls it once that is known."""
        return self._target.resource if self._informer is None else self._informer.resource.group_resource

    @property
    def span(self) -> tuple[float | None, float | None]:
        """When the list was first requested, and when it was delivered."""
        return self._listing and self._listing[0].first_request(self._listing[1]), self.recorder.synced_at

    @property
    def objects(self) -> int:
        """How many objects are in the cache."""
        return 0 if self._informer is None else len(self._informer.get_indexer().list_keys())

    def _version(self) -> str:
        return "" if self._informer is None else self._informer.initial_resource_version


def figures(followed: Iterable[Followed], process: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a summary, over all that were followed.

    Args:
        followed: at least one.
        process: figures of the process as a whole.
    """
    each = list(followed)
    recorders = [one.recorder for one in each]
    starts, ends = zip(*(one.span for one in each), strict=True)
    synced = None not in (*starts, *ends)
    changes = [at for recorder in recorders for at in (recorder.first_change, recorder.last_change) if at is not None]
    return {
        "adds": sum(recorder.adds for recorder in recorders),
        "updates": sum(recorder.updates for recorder in recorders),
        "deletes": sum(recorder.deletes for recorder in recorders),
        "sync_seconds": round(max(ends) - min(starts), 6) if synced else None,
        "watch_seconds": round(max(changes, default=0.0) - min(changes, default=0.0), 6) if synced else None,
        "objects": sum(one.objects for one in each),
        **process,
    }


async def _check_selectors(transport: TimedTransport, path: str, labels: str, fields: str) -> None:
    """Ask a plain list whether the server takes the selectors. The informer reports any other failure.

    Raises:
        UsageError: the server refuses them.
    """
    selectors = [("labelSelector", labels), ("fieldSelector", fields)]
    query = [(name, text) for name, text in selectors if text]
    try:
        await exchange(transport, Request(path, (*query, ("limit", "1"))), "list")
    except ApiError as error:
        if error.status == 400:
            said = " with ".join(f"{name}={text}" for name, text in query)
            raise UsageError(f"the server refuses {said}: {error.message or error.reason}") from error
    except AioinformerError:
        pass


def _report(failure: Exception, delay: float) -> None:
    logger.warning("discovery: %s; next attempt in %.1f s", failure, delay)
