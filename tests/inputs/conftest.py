"""Run all tests of this folder in virtual time; fail those that leave errors to asyncio."""

from __future__ import annotations

from tests.shell.conftest import nothing_left_to_asyncio_to_report, pytest_asyncio_loop_factories

__all__ = ["nothing_left_to_asyncio_to_report", "pytest_asyncio_loop_factories"]
