"""Run all tests of this folder on virtual time; asyncio must report no leftover tasks or errors."""

from __future__ import annotations

from tests.shell.conftest import nothing_left_to_asyncio_to_report, pytest_asyncio_loop_factories

__all__ = ["nothing_left_to_asyncio_to_report", "pytest_asyncio_loop_factories"]
