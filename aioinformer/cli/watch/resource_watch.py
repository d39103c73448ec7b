"""One resource of `watch`: discovery, an informer with one handler, and the figures of the summary."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aioinformer.cli.output.lines import JsonFormat
from aioinformer.cli.watch.printer import Printer
from aioinformer.concurrency import TaskGroup
from aioinformer.errors import AioinformerError, ApiError, UsageError
from aioinformer.handlers.notifications import ResourceEventHandlerDetailedFuncs
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.logs import get_logger
from aioinformer.reflector.listwatch import ListWatch
from aioinformer.reflector.state import InformerState, Phase
from aioinformer.resources.keys import meta_namespace_key_func
from aioinformer.transport import HttpRequest
from aioinformer.transport.messages import exchange

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from aioinformer.cli.connecting import TimedTransport
    from aioinformer.cli.options import WatchOptions
    from aioinformer.cli.output.lines import LineFormat
    from aioinformer.cli.targets import Target
    from aioinformer.cli.watch.printer import ExitCondition
    from aioinformer.resources.discovery import Discovery
    from aioinformer.resources.resource import Resource

logger = get_logger("aioinformer.cli")


class ResourceWatch:
    """Watches one target and prints its notifications. Make it while the event loop runs."""

    def __init__(
        self,
        target: Target,
        options: WatchOptions,
        form: Callable[[Resource[Any]], LineFormat | None],
        write: Callable[[bytes], None],
        condition: ExitCondition,
    ) -> None:
        self._target = target
        self._options = options
        self._form = form
        self._write = write
        self._informer: SharedIndexInformer[Any] | None = None
        self._listed: tuple[TimedTransport, str] | None = None
        self._dump: list[Any] = []
        self.printer = Printer(
            None,
            write,
            clock=asyncio.get_running_loop().time,
            version=self._list_version,
            condition=condition,
            track_objects=options.dump_on_exit,
        )

    async def run(self, transport: TimedTransport, discovery: Discovery, default_namespace: str) -> None:
        """Watch the target until cancelled.

        Raises:
            UsageError: the server does not serve the resource, cannot watch it, or refuses a selector.
        """
        options = self._options
        resource = await discovery.wait_for(self._target.resource, _log_failure)
        resource.require("list", "watch")
        namespace = ""
        if resource.namespaced and not options.all_namespaces:
            namespace = options.namespace or default_namespace
        self._listed = (transport, resource.path(namespace))
        printer = self.printer
        printer.form = self._form(resource)
        field_selector = self._target.field_selector(options.field_selector)
        lister_watcher = ListWatch(
            transport,
            resource,
            namespace=namespace,
            label_selector=options.selector,
            field_selector=field_selector,
            metadata_only=options.metadata_only,
        )
        informer = SharedIndexInformer(lister_watcher, resync_period=options.resync)
        self._informer = informer
        registration = informer.add_event_handler(
            ResourceEventHandlerDetailedFuncs(
                on_add=printer.on_add, on_update=printer.on_update, on_delete=printer.on_delete
            )
        )
        printer.has_synced = registration.has_synced
        not_found = asyncio.Event()
        backing_off = asyncio.Event()

        def on_state(state: InformerState) -> None:
            printer.note_list_version()
            if printer.synced_at is None:
                if state.phase is Phase.NOT_FOUND:
                    not_found.set()
                elif state.phase is Phase.BACKING_OFF:
                    backing_off.set()

        informer.add_state_handler(on_state)

        async def print_synced() -> None:
            await registration.wait_for_sync()
            printer.print_synced()

        async def check_resource() -> None:
            # Built-in resources are not discovered first, and a custom resource may have been removed since discovery.
            while printer.synced_at is None:
                await not_found.wait()
                not_found.clear()
                await discovery.wait_for(resource.gvr, _log_failure, fresh=True)

        async def check_selectors() -> None:
            while printer.synced_at is None:
                await backing_off.wait()
                backing_off.clear()
                await _check_selectors(transport, resource.path(namespace), options.selector, field_selector)

        async with TaskGroup() as tasks:
            tasks.create_task(informer.run(), name=f"informer of {resource}")
            tasks.create_task(print_synced(), name=f"wait for the initial list of {resource}")
            tasks.create_task(check_resource(), name=f"check that {resource} is served")
            if options.selector or field_selector:
                tasks.create_task(check_selectors(), name=f"check the selectors of {resource}")

    def copy_store(self) -> list[Any]:
        """Copy the objects in the cache, sorted by key, for `dump`."""
        if self._informer is not None:
            self._dump = sorted(self._informer.get_indexer().list(), key=meta_namespace_key_func)
        return self._dump

    def dump(self) -> None:
        """Write the copied objects, always as JSON."""
        lines = self.printer.form
        if not isinstance(lines, JsonFormat):
            lines = JsonFormat(self.name if len(self._options.targets) > 1 else "")
        for obj in self._dump:
            self._write(lines.stored(obj))

    def warn_of_undecodable(self) -> None:
        """Log how many versions of objects were not printed because they could not be decoded, if any."""
        informer = self._informer
        if informer is not None and (count := informer.skipped):
            reasons = sorted(informer.undecodable().items(), reverse=True)
            if reasons:
                example = f"; {reasons[0][0] or 'an object without a readable name'}: {reasons[0][1]}"
            else:
                example = ""
            logger.warning(
                "%s: %d versions of objects were not printed, because they could not be decoded%s",
                self.name,
                count,
                example,
            )

    @property
    def name(self) -> str:
        """The resource, as the server names it once that is known."""
        if self._informer is None:
            return self._target.resource
        return self._informer.resource.group_resource

    @property
    def span(self) -> tuple[float | None, float | None]:
        """The time of the first list request, and that of the sync."""
        return self._listed and self._listed[0].first_request(self._listed[1]), self.printer.synced_at

    @property
    def progress(self) -> str:
        """How far the first list is: "pods: 500 of 2000 objects …"; "" once it is delivered, and before it is known."""
        if self._informer is None or self.printer.synced_at is not None:
            return ""
        text = "; ".join(filter(None, (each.progress for each in self._informer.reflectors().values())))
        return text and f"{self.name}: {text}"

    @property
    def objects(self) -> int:
        """The number of objects in the cache."""
        return 0 if self._informer is None else len(self._informer.get_indexer().list_keys())

    def _list_version(self) -> str:
        return "" if self._informer is None else self._informer.initial_resource_version


def summary_figures(watches: Sequence[ResourceWatch], process: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of the summary, over all given watches."""
    printers = [watch.printer for watch in watches]
    starts, ends = zip(*(watch.span for watch in watches), strict=True)
    synced = None not in (*starts, *ends)
    changes = [at for printer in printers for at in (printer.first_change, printer.last_change) if at is not None]
    return {
        "adds": sum(printer.adds for printer in printers),
        "updates": sum(printer.updates for printer in printers),
        "deletes": sum(printer.deletes for printer in printers),
        "sync_seconds": round(max(ends) - min(starts), 6) if synced else None,
        "watch_seconds": round(max(changes, default=0.0) - min(changes, default=0.0), 6) if synced else None,
        "objects": sum(watch.objects for watch in watches),
        **process,
    }


async def _check_selectors(transport: TimedTransport, path: str, labels: str, fields: str) -> None:
    """Send a plain list request with the selectors. The informer reports failures other than a refusal.

    Raises:
        UsageError: the server refuses the selectors.
    """
    selectors = [("labelSelector", labels), ("fieldSelector", fields)]
    query = [(name, text) for name, text in selectors if text]
    try:
        await exchange(transport, HttpRequest(path, (*query, ("limit", "1"))), "list")
    except ApiError as error:
        if error.status == 400:
            refused = " with ".join(f"{name}={text}" for name, text in query)
            raise UsageError(f"the server refuses {refused}: {error.message or error.reason}") from error
    except AioinformerError:
        pass


def _log_failure(failure: Exception, delay: float) -> None:
    logger.warning("discovery failed: %s; retrying in %.1f s", failure, delay)
