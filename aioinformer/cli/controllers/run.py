"""`aioinformer run`: run a manager until a signal."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from aioinformer.cli.connecting import connected
from aioinformer.cli.shutdown import shutdown
from aioinformer.logs import VISIBLE, get_logger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.cli.options import ServerOptions
    from aioinformer.controller import Manager

_TEXT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
#: What every record has; all else was added by the caller.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class JsonFormatter(logging.Formatter):
    """Formats each record as one line of JSON: time, level, logger, message, error, and what `extra` adds."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        seconds = time.gmtime(record.created)
        line: dict[str, Any] = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', seconds)}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


def configure_logging(form: str, level: str = "info") -> None:
    """Send log records to stderr: of asyncio and aiohttp from WARNING on, of all others from a level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else logging.Formatter(_TEXT))
    handler.addFilter(VISIBLE)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for noisy in ("asyncio", "aiohttp"):
        get_logger(noisy).setLevel(max(logging.WARNING, logging.root.level))


def run_manager(manager: Manager, server: ServerOptions, report_file: str = "") -> int:
    """Run a manager as a program, with a file for reports; return its exit code.

    A server that an option names takes precedence over the manager's own client. After a signal that was received
    before the manager handles signals itself, it does not begin, and the exit code is 0.
    """
    own = manager.client if server == type(server)() else None

    @asynccontextmanager
    async def connect() -> AsyncIterator[Any]:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None

        def interrupt() -> None:
            loop.call_soon_threadsafe(task.cancel)

        shutdown.set_listener(interrupt)
        try:
            await asyncio.sleep(0)  # a signal that was received earlier cancels here
            if own is not None:
                yield own
                return
            async with connected(server) as (transport, _):
                yield transport
        finally:
            shutdown.set_listener(None)

    try:
        return manager.run_as_program(connect, report_file=report_file)
    except asyncio.CancelledError:
        return 0
