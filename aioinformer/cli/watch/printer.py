"""The handler of `watch`: turns notifications into lines, counts them, and knows when it has seen enough.

`synced` stands directly behind the last add of the initial list. Nobody tells a handler which add is the last, but its
registration knows once the handler has returned from it; so it is asked before anything else is printed, and somebody
waits for it in case nothing else comes.

To end with a dump, the store is taken as it is at one moment, and the handler goes on until everything that led to that
state has been told, and nothing of what came after: what is printed before the dump leads exactly to what it shows.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aioinformer.cli.output.lines import identity
from aioinformer.resources.keys import deletion_handling_meta_namespace_key_func as key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aioinformer.cli.output.lines import Form


class Goal:
    """What is enough, over all recorders that are made with it. Nothing more is printed by any of them then.

    Args:
        on_enough: called once.
        until_synced: it is enough when each recorder has printed `synced`.
        exit_after: how many notifications, each after `synced` of its recorder, are enough; None for any number.

    Attributes:
        left: how many of these are still missing; None for any number.
    """

    def __init__(
        self, on_enough: Callable[[], None], *, until_synced: bool = False, exit_after: int | None = None
    ) -> None:
        self._on_enough = on_enough
        self._until_synced = until_synced
        self.left = exit_after
        self._recorders: list[Recorder] = []

    def include(self, recorder: Recorder) -> None:
        """Wait for this recorder, too."""
        self._recorders.append(recorder)

    def note_synced(self) -> None:
        """Take note that a recorder has printed `synced`."""
        if self._until_synced and all(recorder.synced_at is not None for recorder in self._recorders):
            self._reach()

    def note_change(self) -> None:
        """Take note of one notification after `synced`."""
        if self.left is not None:
            self.left -= 1
            if not self.left:
                self._reach()

    def _reach(self) -> None:
        for recorder in self._recorders:
            recorder.close()
        self._on_enough()


class Recorder:
    """Prints and counts what it is told; its methods are those of a handler.

    Args:
        form: how notifications look, None not to print them.
        write: takes each line.
        clock: seconds, from anywhere.
        version: the version of the list, as soon as it is known; "" before.
        goal: counts what was printed, and says when it is enough; None if it never is.
        remember: keep in mind what was told, as `settle` needs it.
    """

    def __init__(
        self,
        form: Form | None,
        write: Callable[[bytes], None],
        *,
        clock: Callable[[], float],
        version: Callable[[], str] = lambda: "",
        goal: Goal | None = None,
        remember: bool = False,
    ) -> None:
        self.adds = self.updates = self.deletes = 0
        self.synced_at: float | None = None
        self.first_change: float | None = None
        self.last_change: float | None = None
        #: Says whether the handler has seen all of the initial list; set when it is registered.
        self.has_synced: Callable[[], bool] = lambda: False
        #: How notifications look; set once the resource is known.
        self.form = form
        self._write = write
        self._clock = clock
        self._version = version
        self._list_version = ""
        self._goal = goal
        if goal is not None:
            goal.include(self)
        self._told: dict[str, tuple[str, str]] | None = {} if remember else None
        self._wanted: dict[str, tuple[str, str] | None] | None = None
        self._settled = asyncio.Event()
        self._initial = 0
        self._closed = False

    def on_add(self, obj: Any, initial: bool) -> None:
        """A handler's `on_add`, in its detailed form."""
        self.note_version()
        if self._passes(key_of(obj), identity(obj), initial=initial):
            self.adds += 1
            self._initial += initial
            if self.form is not None:
                self._write(self.form.add(obj, initial))
            self._count(initial)

    def on_update(self, old: Any, new: Any) -> None:
        """A handler's `on_update`."""
        if self._passes(key_of(new), identity(new)):
            self.updates += 1
            if self.form is not None:
                self._write(self.form.update(old, new))
            self._count()

    def on_delete(self, obj: Any) -> None:
        """A handler's `on_delete`."""
        if self._passes(key_of(obj), None):
            self.deletes += 1
            if self.form is not None:
                self._write(self.form.delete(obj))
            self._count()

    def note_version(self) -> None:
        """Takes the version of the list, if it is known for the first time."""
        self._list_version = self._list_version or self._version()

    def tell_synced(self) -> None:
        """Prints `synced`, once."""
        if self.synced_at is None and not self._closed:
            self.note_version()
            self.synced_at = self._clock()
            if self.form is not None:
                self._write(self.form.synced(self._initial, self._list_version))
            if self._goal is not None:
                self._goal.note_synced()

    def close(self) -> None:
        """Prints nothing more."""
        self._closed = True
        self._settled.set()

    async def settle(self, store: Iterable[Any]) -> None:
        """Waits until all that led to this state of the store has been told, and prints nothing that came later.

        Args:
            store: the objects in it, taken without a pause before this is called.
        """
        if self._told is None or self._closed:
            return
        told = self._told
        state = {key_of(obj): identity(obj) for obj in store}
        self._wanted = {key: state.get(key) for key in state.keys() | told.keys() if state.get(key) != told.get(key)}
        if self._wanted:
            await self._settled.wait()
        self.close()

    def _passes(self, key: str, now: tuple[str, str] | None, *, initial: bool = False) -> bool:
        if self.synced_at is None and not initial and self.has_synced():
            self.tell_synced()
        if self._closed:
            return False
        if self._wanted is not None:
            if key not in self._wanted:
                return False
            if self._wanted[key] == now:
                del self._wanted[key]
                if not self._wanted:
                    self._settled.set()
        if self._told is not None:
            if now is None:
                self._told.pop(key, None)
            else:
                self._told[key] = now
        return True

    def _count(self, initial: bool = False) -> None:
        if self.synced_at is None or initial:
            return
        self.last_change = self._clock()
        if self.first_change is None:
            self.first_change = self.last_change
        if self._goal is not None:
            self._goal.note_change()
