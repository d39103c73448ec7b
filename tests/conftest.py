"""What holds for every test: nothing of the machine gets in, and no task is left behind."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

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


def pytest_configure() -> None:
    """Says that this thread has no loop, where pytest-asyncio would else be given a new one that nobody closes."""
    asyncio.set_event_loop(None)


@pytest.fixture(autouse=True)
def no_cluster_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own cluster or proxy is never talked to by accident."""
    for variable in AMBIENT_VARIABLES:
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(autouse=True)
def no_task_left_behind(request: pytest.FixtureRequest) -> None:
    """Set up before a test's own fixtures, and therefore torn down after them."""
    if inspect.iscoroutinefunction(getattr(request.node, "obj", None)):
        request.getfixturevalue("task_census")


@pytest.fixture
async def task_census() -> AsyncIterator[None]:
    """Fails a test that ends, its fixtures included, while a task of its loop still lives."""
    yield
    # What was closed may need a turn or two of the loop to be gone; who waits for a timer or a socket is not gone.
    for _ in range(10):
        await asyncio.sleep(0)
    left = sorted(task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task())
    assert not left, f"tasks left behind: {', '.join(left)}"
