"""aioinformer as the client of a script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer import DeletedFinalStateUnknown, HttpTransport, ListWatch, Resource, RunOptions, SharedIndexInformer
from aioinformer.errors import DecodeError
from tests.system.oracle.compare import Record
from tests.system.oracle.player import Player
from tests.system.oracle.script import encode_object

if TYPE_CHECKING:
    from tests.system.oracle.script import Script

WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget")


class Witness:
    """A handler that records notifications."""

    def __init__(self) -> None:
        self.delivered: dict[str, list[str]] = {}

    def on_add(self, obj: Any, is_in_initial_list: bool) -> None:
        self._note(obj, f"{'initial add' if is_in_initial_list else 'add'} {render(obj)}")

    def on_update(self, old: Any, new: Any) -> None:
        self._note(new, f"update {render(old)} -> {render(new)}")

    def on_delete(self, obj: Any) -> None:
        if isinstance(obj, DeletedFinalStateUnknown):
            self.delivered.setdefault(_short(obj.key), []).append(f"delete, last known {render(obj.obj)}")
        else:
            self._note(obj, f"delete {render(obj)}")

    def _note(self, obj: Any, line: str) -> None:
        self.delivered.setdefault(_short(f"{obj.metadata.namespace}/{obj.metadata.name}"), []).append(line)


def _short(key: str) -> str:
    return key.removeprefix("default/")


def render(obj: Any) -> str:
    """Return the notation of a cached object."""
    metadata = obj.metadata
    try:
        value = obj["spec"]["value"]
    except DecodeError:
        value = "unreadable"
    return encode_object(metadata.namespace, metadata.name, metadata.resource_version, metadata.uid, value)


async def play(script: Script) -> Record:
    """Play a script to an informer.

    Raises:
        ValueError: the script has no reply for a request.
        TimeoutError: the script did not end.
    """
    witness = Witness()
    options = RunOptions(streaming_list=script.streaming, **script.options)
    async with Player(script) as player, HttpTransport(player.url) as transport:
        informer: SharedIndexInformer[Any] = SharedIndexInformer(ListWatch(transport, WIDGETS), options=options)
        informer.add_event_handler(witness)
        async with informer:
            await player.wait_for_end()
            return Record(player.requests(), witness.delivered, sorted(map(render, informer.lister().list())))
