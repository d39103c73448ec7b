"""Recorders of notifications and of states, and informers with a recorder."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from aioinformer import DeletedFinalStateUnknown, SharedIndexInformer
from tests.support.collection import Collection
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


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


@asynccontextmanager
async def informer_of(
    *pods: str | Collection, **options: Any
) -> AsyncIterator[tuple[Collection, SharedIndexInformer[Any], list[str]]]:
    """Run an informer of pods with these names, or of a collection.

    The options are those of the informer, `on_add`, `on_update` and `on_delete` of a first handler, its
    `watch_error_handler`, and `states`, a list of its states. Yield the collection, the informer after its sync, and
    the notifications of a `Recorder`.
    """
    [collection] = [each for each in pods if isinstance(each, Collection)] or [Collection(*map(str, pods))]
    functions = {name: options.pop(name) for name in ("on_add", "on_update", "on_delete") if name in options}
    states: list[str] | None = options.pop("states", None)
    watch_error_handler = options.pop("watch_error_handler", None)
    recorder = Recorder()
    informer: SharedIndexInformer[Any] = SharedIndexInformer(collection, **options)
    if watch_error_handler is not None:
        informer.set_watch_error_handler(watch_error_handler)
    if states is not None:
        informer.add_state_handler(lambda state: states.append(str(state)))
    if functions:
        informer.add_event_handler(**functions)
    informer.add_event_handler(recorder)
    async with informer:
        await informer.wait_for_sync()
        await settled()
        yield collection, informer, recorder.received
