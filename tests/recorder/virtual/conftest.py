"""All tests of this folder run on virtual time, and must keep quiet."""

from __future__ import annotations

from tests.shell.conftest import nothing_left_to_asyncio_to_report, pytest_asyncio_loop_factories

__all__ = ["nothing_left_to_asyncio_to_report", "pytest_asyncio_loop_factories"]
