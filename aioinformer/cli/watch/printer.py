"""The handler of `watch`: prints and counts notifications, and detects when the exit condition is met.

`synced` is printed directly after the last add of the initial list. A handler does not know which add is the last one,
but its registration reports `has_synced` once the handler has returned from it. So the printer checks that before it
prints the next line, and a task waits for it in case no further notification comes.

Before a dump, the cache is copied at one moment. The printer then prints the notifications that led to that state, and
no later ones, so that the printed notifications match the dump.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aioinformer.cli.output.lines import identity
from aioinformer.resources.keys import deletion_handling_meta_namespace_key_func as key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aioinformer.cli.output.lines import LineFormat


class ExitCondition:
    """The condition of `--until-synced` and `--exit-after`, over all printers. When it is met, they print no more.

    Args:
        on_met: called once, when the condition is met.
        until_synced: the condition is that each printer has printed `synced`.
        exit_after: the condition is this number of notifications, each after its printer's `synced`; None for no limit.

    Attributes:
        remaining: the number of missing notifications; None for no limit.
    """

    def __init__(
        self, on_met: Callable[[], None], *, until_synced: bool = False, exit_after: int | None = None
    ) -> None:
        self._on_met = on_met
        self._until_synced = until_synced
        self.remaining = exit_after
        self._printers: list[Printer] = []

    def include(self, printer: Printer) -> None:
        """Include a printer in the condition."""
        self._printers.append(printer)

    def on_synced(self) -> None:
        """Check the condition after a printer has printed `synced`."""
        if self._until_synced and all(printer.synced_at is not None for printer in self._printers):
            self._end()

    def on_change(self) -> None:
        """Count a notification after `synced`, and check the condition."""
        if self.remaining is not None:
            self.remaining -= 1
            if not self.remaining:
                self._end()

    def _end(self) -> None:
        for printer in self._printers:
            printer.close()
        self._on_met()


class Printer:
    """Prints and counts notifications. `on_add`, `on_update` and `on_delete` are the methods of a detailed handler.

    Args:
        form: the format of the lines; None to print none.
        version: returns the resourceVersion of the initial list; "" until it is known.
        track_objects: remember the printed state of each object, which `print_up_to` needs.

    Attributes:
        synced_at: when `synced` was printed; None before.
        first_change: when the first notification after `synced` was printed.
        last_change: when the last notification after `synced` was printed.
    """

    def __init__(
        self,
        form: LineFormat | None,
        write: Callable[[bytes], None],
        *,
        clock: Callable[[], float],
        version: Callable[[], str] = lambda: "",
        condition: ExitCondition | None = None,
        track_objects: bool = False,
    ) -> None:
        self.adds = 0
        self.updates = 0
        self.deletes = 0
        self.synced_at: float | None = None
        self.first_change: float | None = None
        self.last_change: float | None = None
        #: Whether the handler has received the whole initial list; set when it is registered.
        self.has_synced: Callable[[], bool] = lambda: False
        #: The format of the lines; set once the resource is known.
        self.form = form
        self._write = write
        self._clock = clock
        self._version = version
        self._list_version = ""
        self._condition = condition
        if condition is not None:
            condition.include(self)
        #: uid and resourceVersion of each object, as printed.
        self._printed: dict[str, tuple[str, str]] | None = {} if track_objects else None
        #: The state of objects to print before the dump; None for a deleted object.
        self._outstanding: dict[str, tuple[str, str] | None] | None = None
        self._caught_up = asyncio.Event()
        self._initial = 0
        self._closed = False

    def on_add(self, obj: Any, initial: bool) -> None:
        """Print and count an add."""
        self.note_list_version()
        if self._accept(key_of(obj), identity(obj), initial=initial):
            self.adds += 1
            self._initial += initial
            if self.form is not None:
                self._write(self.form.add(obj, initial))
            self._count_change(initial)

    def on_update(self, old: Any, new: Any) -> None:
        """Print and count an update."""
        if self._accept(key_of(new), identity(new)):
            self.updates += 1
            if self.form is not None:
                self._write(self.form.update(old, new))
            self._count_change()

    def on_delete(self, obj: Any) -> None:
        """Print and count a delete."""
        if self._accept(key_of(obj), None):
            self.deletes += 1
            if self.form is not None:
                self._write(self.form.delete(obj))
            self._count_change()

    def note_list_version(self) -> None:
        """Store the resourceVersion of the initial list as soon as it is known."""
        self._list_version = self._list_version or self._version()

    def print_synced(self) -> None:
        """Print `synced`, once."""
        if self.synced_at is None and not self._closed:
            self.note_list_version()
            self.synced_at = self._clock()
            if self.form is not None:
                self._write(self.form.synced(self._initial, self._list_version))
            if self._condition is not None:
                self._condition.on_synced()

    def close(self) -> None:
        """Print no more."""
        self._closed = True
        self._caught_up.set()

    async def print_up_to(self, store: Iterable[Any]) -> None:
        """Wait until the notifications that led to this state of the cache are printed, and print no later ones.

        Args:
            store: the objects in the cache, read immediately before this call.
        """
        if self._printed is None or self._closed:
            return
        printed = self._printed
        state = {key_of(obj): identity(obj) for obj in store}
        keys = state.keys() | printed.keys()
        self._outstanding = {key: state.get(key) for key in keys if state.get(key) != printed.get(key)}
        if self._outstanding:
            await self._caught_up.wait()
        self.close()

    def _accept(self, key: str, state: tuple[str, str] | None, *, initial: bool = False) -> bool:
        """Return whether to print a notification about this state of an object; None for deleted."""
        if self.synced_at is None and not initial and self.has_synced():
            self.print_synced()
        if self._closed:
            return False
        if self._outstanding is not None:
            if key not in self._outstanding:
                return False
            if self._outstanding[key] == state:
                del self._outstanding[key]
                if not self._outstanding:
                    self._caught_up.set()
        if self._printed is not None:
            if state is None:
                self._printed.pop(key, None)
            else:
                self._printed[key] = state
        return True

    def _count_change(self, initial: bool = False) -> None:
        if self.synced_at is None or initial:
            return
        self.last_change = self._clock()
        if self.first_change is None:
            self.first_change = self.last_change
        if self._condition is not None:
            self._condition.on_change()
