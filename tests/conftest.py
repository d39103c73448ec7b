"""For every test: isolation from the machine's own clusters and proxies, and a check for tasks that are left running.

Also the option that limits the values of parametrised tests.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import inspect
import os
import shutil
import signal
from itertools import count
from typing import TYPE_CHECKING

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import HealthCheck, settings

from tests import selection

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

AMBIENT_VARIABLES = (
    "KUBECONFIG",
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
)

# Machines differ in speed, and a busy one is slow.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

#: Seconds after its timeout that a test has to end.
_PATIENCE = 45.0

#: The number of tests after which what is alive is exempted again.
_EXEMPTING = 20
_ended = count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    selection.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Set no event loop for this thread: pytest-asyncio would otherwise create one that is never closed."""
    asyncio.set_event_loop(None)
    # A shell that starts this run in the background lets it ignore SIGINT; programs under test would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Start two workers more than there are cores: many tests wait for programs and for time.

    With a real API server, each worker runs one of its own, which uses the cores.
    """
    cores = os.cpu_count() or 1
    return cores if os.environ.get("AIOINFORMER_TEST_CLUSTER") else cores + 2


def pytest_report_header(config: pytest.Config) -> list[str]:
    return [
        selection.describe(config),
        selection.versions(),
        *([] if shutil.which("promtool") else ["promtool: missing, the tests of the alert rules are skipped"]),
    ]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if selection.values_of(config):
        selection.deselect_values(config, items)


def pytest_collection_finish() -> None:
    _exempt_what_is_alive()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """End the process, with the stacks of its threads, if a test goes on for long after its timeout.

    pytest-timeout raises an exception once, which an event loop may swallow, and after which fixtures may hang.
    """
    _end_if_late(item)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        if next(_ended) % _EXEMPTING == 0:
            _exempt_what_is_alive()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Watch the end of a test, too: when one fails, pytest cancels what was begun."""
    _end_if_late(item)


def _exempt_what_is_alive() -> None:
    """Exempt what tests have loaded from garbage collection: many tests collect, and each would walk all of it."""
    gc.collect()
    gc.freeze()


def _end_if_late(item: pytest.Item) -> None:
    marker = item.get_closest_marker("timeout")
    seconds = float(item.config.getini("timeout")) if marker is None else float(marker.args[0])
    stderr = item.config.stash[fault_handler_stderr_fd_key]
    faulthandler.dump_traceback_later(seconds + _PATIENCE, exit=True, file=stderr)


@pytest.fixture(autouse=True)
def no_cluster_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the clusters and proxies of the machine: tests connect to what they started only."""
    for variable in AMBIENT_VARIABLES:
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(autouse=True)
def no_task_left_behind(request: pytest.FixtureRequest) -> None:
    """Run the check after a test's own fixtures: what is set up first is torn down last."""
    if inspect.iscoroutinefunction(getattr(request.node, "obj", None)):
        request.getfixturevalue("task_census")


@pytest.fixture
async def task_census() -> AsyncIterator[None]:
    """Fail a test if a task of its event loop is still running after the test and its fixtures."""
    yield
    # A closed task may need some iterations of the loop to end; one that waits for a timer or a socket does not end.
    for _ in range(10):
        await asyncio.sleep(0)
    left = sorted(task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task())
    assert not left, f"tasks left behind: {', '.join(left)}"
