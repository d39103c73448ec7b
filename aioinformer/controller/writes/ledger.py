"""`Ledger`: what a run of a declaration leaves for the next run, in the same manager or in another one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aioinformer.errors import UsageError

if TYPE_CHECKING:
    from aioinformer.controller.writes.own_writes import OwnWrites


class Ledger:
    """Says which manager runs a declaration, and has the writes of its last run that caches may not show yet.

    Each `Controller` has one, since two managers may share nothing but the declaration. It refers to nothing that runs:
    it has the name of the manager, and own writes once they are closed.
    """

    __slots__ = ("_left", "_loop", "_manager")

    def __init__(self) -> None:
        self._manager = ""
        #: In which the manager runs. If it is closed, the manager was not stopped, and runs nothing any more.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._left: OwnWrites | None = None

    def check_free(self, controller: str, manager: str) -> None:
        """Check that no manager runs the declaration, before this one does.

        Raises:
            UsageError: another manager runs it.
        """
        if self._loop is not None and not self._loop.is_closed():
            what = f"controller {controller} already runs in manager {self._manager}"
            raise UsageError(f"{what}; make another Controller for manager {manager}")

    def begin(self, manager: str) -> OwnWrites | None:
        """Note that a manager runs the declaration from now on. Return the own writes of the run before, once."""
        self._manager = manager
        self._loop = asyncio.get_running_loop()
        left = self._left
        self._left = None
        return left

    def end(self, left: OwnWrites) -> None:
        """Note that the manager does not run the declaration any more. Close its own writes, and keep them."""
        self._loop = None
        self._left = left
        left.close()
