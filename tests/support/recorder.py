"""Recorders of notifications and of states."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aioinformer.resources.keys import DeletedFinalStateUnknown

if TYPE_CHECKING:
    from aioinformer.informer.shared_informer import SharedIndexInformer


class Recorder:
    """A handler that records its notifications as text.

    Attributes:
        received: "add a 1", with "!" if it belongs to the initial list; "update a 1 2"; "delete a 3", "tombstone a 2".
        pace: the duration of each call, in seconds.
    """

    def __init__(self, pace: float = 0.0) -> None:
        self.received: list[str] = []
        self.pace = pace

    async def on_add(self, obj: Any, is_in_initial_list: bool) -> None:
        await self._write(f"add{'!' if is_in_initial_list else ''} {_named(obj)}")

    async def on_update(self, old: Any, new: Any) -> None:
        await self._write(f"update {_named(old)} {new.metadata.resource_version}")

    async def on_delete(self, obj: Any) -> None:
        if isinstance(obj, DeletedFinalStateUnknown):
            await self._write(f"tombstone {_named(obj.obj)}")
        else:
            await self._write(f"delete {_named(obj)}")

    async def _write(self, words: str) -> None:
        self.received.append(words)
        if self.pace:
            await asyncio.sleep(self.pace)


def _named(obj: Any) -> str:
    return f"{obj.metadata.name} {obj.metadata.resource_version}"


def states_of(informer: SharedIndexInformer[Any]) -> list[str]:
    """Record the states of an informer from now on."""
    states: list[str] = []
    informer.add_state_handler(lambda state: states.append(str(state)))
    return states
