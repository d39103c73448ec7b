"""`aioinformer watch`: an informer with one handler for each resource, from the first request to the last line.

It ends by a condition that came true, the time-out, a signal, a stdout that is closed, or an error. Whatever the
reason, what runs is unwound, and what is still to be said is said.
"""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

from aioinformer.cli.connecting import connected
from aioinformer.cli.options import Output, WatchOptions
from aioinformer.cli.output.lines import summed_up
from aioinformer.cli.program import Program
from aioinformer.cli.watch.measurements import LoopLag, max_rss_kib
from aioinformer.cli.watch.printer import Goal
from aioinformer.cli.watch.resource_watch import Followed, figures
from aioinformer.logs import get_logger
from aioinformer.resources.discovery import Discovery

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.cli.output.lines import Form
    from aioinformer.resources.resource import Resource

logger = get_logger("aioinformer.cli")

_SETTLE = 0.8
"""Seconds within the grace that what is still to be told may take before a dump."""


class WatchSession(Program):
    """One run of `watch`. To be made where the loop runs.

    Args:
        options: what to watch, and until when.
        form: how notifications about a resource look; returns None not to print them.
        write: takes each line of stdout.
    """

    def __init__(
        self, options: WatchOptions, form: Callable[[Resource[Any]], Form | None], write: Callable[[bytes], None]
    ) -> None:
        super().__init__()
        self._options = options
        self._write = write
        self._goal = Goal(lambda: self.end(0), until_synced=options.until_synced, exit_after=options.exit_after)
        self._followed = [Followed(target, options, form, write, self._goal) for target in options.targets]
        self._lag = LoopLag()

    def interrupt(self) -> None:
        self.end(1 if self._options.conditional else 0)

    def expire(self, code: int) -> None:
        pending = [followed.name for followed in self._followed if followed.recorder.synced_at is None]
        if pending:
            missing = f"not synced: {', '.join(pending)}"
        elif self._options.exit_after is not None:
            missing = f"--exit-after {self._options.exit_after} lacks {self._goal.left} more"
        else:
            missing = "neither --until-synced nor --exit-after was given"
        logger.error("--timeout: %g s are over; %s", self._options.timeout, missing)
        self.end(code)

    async def run(self) -> int:
        work = asyncio.create_task(self._work(), name="watch")
        code = await self.until_end(work, self._options.timeout, 1)
        self._lag.stop()
        if self._options.dump_on_exit:
            await self._settle()
        for followed in self._followed:
            followed.recorder.close()
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
            async with asyncio.TaskGroup() as tasks:
                for followed in self._followed:
                    tasks.create_task(
                        followed.run(transport, discovery, default_namespace), name=f"follow {followed.name}"
                    )

    async def _settle(self) -> None:
        settling = [followed.recorder.settle(followed.take_store()) for followed in self._followed]
        try:
            async with asyncio.timeout(_SETTLE):
                await asyncio.gather(*settling)
        except TimeoutError:
            logger.warning("the store holds more than has been told: there was no time to tell the rest")

    def _say_the_rest(self) -> None:
        for followed in self._followed:
            followed.dump()
            followed.warn_of_undecodable()
        if self._options.output is Output.SUMMARY:
            process = {"max_rss_kib": max_rss_kib(), "loop_lag_ms": self._lag.lateness()}
            total = figures(self._followed, process)
            if len(self._followed) > 1:
                of_process = dict.fromkeys(process)
                total["resources"] = [
                    {"resource": followed.name, **figures([followed], of_process)} for followed in self._followed
                ]
            self._write(summed_up(total))
