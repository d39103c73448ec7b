"""A manager as a program: its event loop, its exit code, its signals, and its report at SIGUSR1."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from aioinformer.errors import UsageError
from aioinformer.files import replace_file
from aioinformer.functions import place
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractAsyncContextManager
    from types import FrameType

    from aioinformer.controller.report import StopReport
    from aioinformer.controller.running.session import Session
    from aioinformer.metrics.provider import MetricsSource
    from aioinformer.prometheus import PrometheusMetrics
    from aioinformer.transport import Transport

_log = get_logger("aioinformer.controller")

#: Seconds that a signal is not handled by an event loop that is blocked.
_BLOCKED: Final = 1.0
#: Open files that a program may have if the system allows it: each connection is one. More would only cost those who
#: look at all numbers of files, such as child processes.
_FILES: Final = 65_536


class Runnable(Protocol):
    """What a program needs of a manager."""

    name: str
    client: Any
    metrics: Any
    stop_report: StopReport | None

    async def run(self, *, signals: bool) -> None: ...

    def report(self) -> dict[str, Any]: ...


def run_as_program(
    manager: Runnable, connect: Callable[[], AbstractAsyncContextManager[Transport]] | None, report_file: str
) -> int:
    """Run a manager in an event loop of its own, as `Manager.run_as_program` describes.

    Raises:
        UsageError: an event loop runs in this thread.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise UsageError(
            f"manager {manager.name}: main() starts an event loop of its own, and one runs already; write "
            "`async with manager:` or `await manager.run()`"
        )
    raise_file_limit()
    code = 0
    with metrics_of_process(manager), asyncio.Runner() as runner:
        try:
            runner.run(_run(manager, connect, report_file))
        except UsageError as error:
            _log.error("%s", error)
            code = 2
        except Exception as error:
            _log.error("manager %s has failed: %s", manager.name, error, exc_info=error)
            code = 1
        if manager.stop_report is not None and manager.stop_report.abandoned:
            # Python would wait for them for ever.
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return code


def raise_file_limit() -> None:
    """Raise the soft limit of open files as far as the hard limit allows."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError) as error:
            _log.warning("the limit of open files stays %d: %s", soft, error)


class _MetricsOfProcess:
    """Exports to the registry of the process, without being asked to.

    So a name that a provider of the program has already, such as that of a queue, is a warning, and no error.
    """

    def __init__(self, name: str, provider: PrometheusMetrics) -> None:
        self.registry = provider.registry
        self._name = name
        self._provider = provider

    def register(self, source: MetricsSource) -> None:
        """Export a source; see `MetricsProvider`."""
        try:
            self._provider.register(source)
        except UsageError as error:
            _log.warning("manager %s: some metrics are missing: %s", self._name, error)


@contextmanager
def metrics_of_process(manager: Runnable) -> Iterator[None]:
    """While the block runs, let a manager without metrics export them to the registry of the process, if there is one.

    A name of a metric that another collector exports is a warning: the manager runs without metrics.
    """
    if manager.metrics is not None:
        yield
        return
    try:
        from aioinformer.prometheus import PrometheusMetrics

        manager.metrics = _MetricsOfProcess(manager.name, PrometheusMetrics())
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "prometheus_client":
            raise
        _log.info("manager %s: there are no metrics: %s", manager.name, error)
    except ValueError as error:
        line = "manager %s: there are no metrics: %s; pass metrics=PrometheusMetrics(CollectorRegistry())"
        _log.warning(line, manager.name, error)
    try:
        yield
    finally:
        manager.metrics = None


async def _run(
    manager: Runnable, connect: Callable[[], AbstractAsyncContextManager[Transport]] | None, report_file: str
) -> None:
    own = manager.client
    with reports_at_signal(manager.name, manager.report, report_file):
        async with nullcontext(own) if connect is None else connect() as manager.client:
            try:
                await manager.run(signals=True)
            finally:
                manager.client = own


@contextmanager
def stopped_by_signals(session: Callable[[], Session | None]) -> Iterator[None]:
    """While the block runs, stop the session at SIGTERM and SIGINT.

    An event loop that is blocked handles no signal. If another signal comes at least a second later, the process ends.

    Raises:
        UsageError: this is not the main thread.
    """
    loop = asyncio.get_running_loop()
    unhandled: list[float] = []  # when the signals came in that the event loop has not handled yet

    def on_signal(name: str) -> None:
        unhandled.clear()
        if (found := session()) is not None:
            found.stop_at_signal(name)

    def on_arrival(number: int, frame: FrameType | None) -> None:
        # Python calls this between two instructions of the main thread, whether or not the event loop runs.
        unhandled.append(time.monotonic())
        if number not in of_loop:
            loop.call_soon_threadsafe(on_signal, signal.Signals(number).name)
        if unhandled[-1] - unhandled[0] >= _BLOCKED:
            if frame is None:
                where = ""
            else:
                where = f" at {place(frame.f_code.co_filename, frame.f_lineno)}"
            text = "%s again while the event loop is blocked%s: the process ends without a stop in order"
            # In a thread: the main one may have been interrupted while it writes a line.
            name = signal.Signals(number).name
            telling = threading.Thread(target=_log.error, args=(text, name, where), daemon=True)
            telling.start()
            telling.join(_BLOCKED)
            os._exit(0)

    numbers = (signal.SIGTERM, signal.SIGINT)
    previous = {number: signal.getsignal(number) for number in numbers}
    of_loop: set[int] = set()  # those that the event loop handles
    try:
        for number in numbers:
            # The event loop of Windows handles no signal, but each one wakes it.
            with suppress(NotImplementedError):
                loop.add_signal_handler(number, on_signal, number.name)  # it wakes the event loop, and calls on_signal
                of_loop.add(number)
            signal.signal(number, on_arrival)
    except (RuntimeError, ValueError) as error:
        raise UsageError(f"run(signals=True) works in the main thread only: {error}; pass signals=False") from error
    try:
        yield
    finally:
        for number, handler in previous.items():
            if number in of_loop:
                loop.remove_signal_handler(number)
            if handler is not None:
                signal.signal(number, handler)


@contextmanager
def reports_at_signal(name: str, make: Callable[[], dict[str, Any]], file: str) -> Iterator[None]:
    """While the block runs, write the report at SIGUSR1 as one line of JSON: into a file, or into the log if it is "".

    A handler of the program for this signal stays. The file is replaced as a whole, as is a link of its name, and only
    its owner can read it.

    Raises:
        UsageError: the folder of the file does not exist.
    """
    number = getattr(signal, "SIGUSR1", None)
    if file and not Path(file).absolute().parent.is_dir():
        raise UsageError(f"the report file {file}: its folder does not exist; create it, or name another file")
    if number is None or signal.getsignal(number) is not signal.SIG_DFL:
        yield
        return

    def write() -> None:
        try:
            line = msgspec.json.encode(make())
            if not file:
                _log.warning("manager %s: report: %s", name, line.decode())
                return
            replace_file(file, [line, b"\n"], private=True)
            _log.info("manager %s: its report is in %s", name, file)
        except Exception:
            _log.exception("manager %s: the report cannot be written", name)

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(number, write)
    try:
        yield
    finally:
        loop.remove_signal_handler(number)
