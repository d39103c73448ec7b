"""One run of `watch`: an informer for each resource, from the first request to the last line.

The run ends when the exit condition is met, at the timeout, by a signal, when stdout is closed, or with an error. In
each case all tasks are stopped, and the dump, warnings and summary are written.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from aioinformer.cli.connecting import connected
from aioinformer.cli.options import Output, WatchOptions
from aioinformer.cli.output.line_writer import LineWriter
from aioinformer.cli.output.lines import JsonFormat, TextFormat, json_line
from aioinformer.cli.output.palette import Palette, terminal_width, time_of_day, wants_colour
from aioinformer.cli.output.whole_objects import is_secret, whole_object
from aioinformer.cli.program import Program
from aioinformer.cli.watch.measurements import LoopLag, max_rss_kib
from aioinformer.cli.watch.printer import ExitCondition
from aioinformer.cli.watch.resource_watch import ResourceWatch, summary_figures
from aioinformer.concurrency import TaskGroup, create_task
from aioinformer.logs import get_logger, visible
from aioinformer.resources.discovery import Discovery

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cli.output.lines import Columns, LineFormat
    from aioinformer.resources.resource import Resource

logger = get_logger("aioinformer.cli")

_PROGRESS_AFTER = 1.0
_PROGRESS_EVERY = 0.5
_CATCH_UP_SECONDS = 0.8
"""How long outstanding notifications may take before a dump; less than the grace of the end."""


class WatchSession(Program):
    """One run of `watch`. Make it while the event loop runs."""

    def __init__(
        self, options: WatchOptions, form: Callable[[Resource[Any]], LineFormat | None], write: Callable[[bytes], None]
    ) -> None:
        super().__init__()
        self._options = options
        self._write = write
        self._condition = ExitCondition(
            lambda: self.end(0), until_synced=options.until_synced, exit_after=options.exit_after
        )
        self._watches = [ResourceWatch(target, options, form, write, self._condition) for target in options.targets]
        self._lag = LoopLag()
        #: Writes to the terminal of stderr; None if there is none.
        live = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._terminal = LineWriter(sys.stderr.fileno()).write if live else None

    def interrupt(self) -> None:
        self.end(1 if self._options.conditional else 0)

    def time_out(self, code: int) -> None:
        pending = [watch.name for watch in self._watches if watch.printer.synced_at is None]
        if pending:
            missing = f"not synced: {', '.join(pending)}"
        elif self._options.exit_after is not None:
            missing = (
                f"{self._condition.remaining} of --exit-after {self._options.exit_after} notifications are missing"
            )
        else:
            missing = "neither --until-synced nor --exit-after was given"
        logger.error("--timeout: %g s are over; %s", self._options.timeout, missing)
        self.end(code)

    async def run(self) -> int:
        work = create_task(self._work(), name="watch")
        code = await self.wait_for_end(work, self._options.timeout, 1)
        self._lag.stop()
        if self._options.dump_on_exit:
            await self._catch_up()
        for watch in self._watches:
            watch.printer.close()
        code = await self.stop(work, code)
        self._write_last_lines()
        return code

    async def _work(self) -> None:
        options = self._options
        async with connected(options.server) as (transport, default_namespace):
            if options.output is Output.SUMMARY:
                # Imported modules stay in memory: keep the garbage collector from scanning them each time.
                gc.collect()
                gc.freeze()
                self._lag.start()
            discovery = Discovery(transport)
            async with TaskGroup() as tasks:
                for watch in self._watches:
                    tasks.create_task(watch.run(transport, discovery, default_namespace), name=f"watch {watch.name}")
                if self._terminal is not None:
                    tasks.create_task(self._show_progress(self._terminal), name="progress of the first lists")

    async def _show_progress(self, write: Callable[[bytes], None]) -> None:
        """Show on the terminal how far the first lists are, in a line that is written over."""
        shown = False
        try:
            await asyncio.sleep(_PROGRESS_AFTER)
            while any(watch.printer.synced_at is None for watch in self._watches):
                if text := "; ".join(filter(None, (watch.progress for watch in self._watches))):
                    # The cursor stays at the begin of the line, so that the next line of the output replaces it.
                    write(f"\r\x1b[2K{visible(text)[: terminal_width() - 1]}\r".encode())
                    shown = True
                await asyncio.sleep(_PROGRESS_EVERY)
        finally:
            if shown:
                write(b"\r\x1b[2K")

    async def _catch_up(self) -> None:
        """Print the notifications that led to the state of the cache to dump."""
        catching_up = [watch.printer.print_up_to(watch.copy_store()) for watch in self._watches]
        try:
            async with asyncio.timeout(_CATCH_UP_SECONDS):
                await asyncio.gather(*catching_up)
        except TimeoutError:
            logger.warning("the dump contains changes that were not printed, because the time for them was over")

    def _write_last_lines(self) -> None:
        for watch in self._watches:
            watch.dump()
            watch.warn_of_undecodable()
        if self._options.output is Output.SUMMARY:
            process = {"max_rss_kib": max_rss_kib(), "loop_lag_ms": self._lag.lateness()}
            total = summary_figures(self._watches, process)
            if len(self._watches) > 1:
                not_measured = dict.fromkeys(process)
                total["resources"] = [
                    {"resource": watch.name, **summary_figures([watch], not_measured)} for watch in self._watches
                ]
            self._write(json_line(total))


def line_format(options: WatchOptions, columns: Columns, resource: Resource[Any]) -> LineFormat | None:
    """Return the format of the lines for a resource; None for the summary alone."""
    several = len(options.targets) > 1
    name = resource.group_resource
    redaction = {"secret": is_secret(resource), "show_secrets": options.show_secrets}
    match options.output:
        case Output.TEXT:
            palette = Palette(wants_colour(sys.stdout))
            return TextFormat(palette, time_of_day, name if several else "", columns=columns, **redaction)
        case Output.JSONL | Output.JSON:
            whole = partial(whole_object, **redaction) if options.output is Output.JSON else None
            return JsonFormat(name if several else "", whole)
        case Output.SUMMARY:
            return None
