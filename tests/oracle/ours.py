"""aioinformer as the client of a script."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aioinformer.deltas import DeletedFinalStateUnknown
from aioinformer.listwatch import ListWatch
from aioinformer.options import ReflectorOptions
from aioinformer.resources import Resource
from aioinformer.shared_informer import SharedIndexInformer
from aioinformer.transport.http import HttpTransport
from tests.oracle.player import Player
from tests.oracle.script import encode_object

if TYPE_CHECKING:
    from tests.oracle.script import Script

WIDGETS: Resource[Any] = Resource("example.com", "v1", "widgets", "Widget")


@dataclass(slots=True)
class Record:
    """What a client did with a script.

    Attributes:
        requests: what it asked, and how soon.
        told: the notifications of each key, in order.
        store: what its cache has in the end.
    """

    requests: list[str]
    told: dict[str, list[str]] = field(default_factory=dict)
    store: list[str] = field(default_factory=list)


class Witness:
    """Notes notifications."""

    def __init__(self) -> None:
        self.told: dict[str, list[str]] = {}

    def on_add(self, obj: Any, is_in_initial_list: bool) -> None:
        self._note(obj, f"{'initial add' if is_in_initial_list else 'add'} {render(obj)}")

    def on_update(self, old: Any, new: Any) -> None:
        self._note(new, f"update {render(old)} -> {render(new)}")

    def on_delete(self, obj: Any) -> None:
        if isinstance(obj, DeletedFinalStateUnknown):
            self.told.setdefault(_short(obj.key), []).append(f"delete, last known {render(obj.obj)}")
        else:
            self._note(obj, f"delete {render(obj)}")

    def _note(self, obj: Any, line: str) -> None:
        self.told.setdefault(_short(f"{obj.metadata.namespace}/{obj.metadata.name}"), []).append(line)


def _short(key: str) -> str:
    return key.removeprefix("default/")


def render(obj: Any) -> str:
    """Return the notation of a cached object."""
    metadata = obj["metadata"]
    spec = obj.get("spec") or {}
    return encode_object(
        metadata["namespace"],
        metadata["name"],
        metadata.get("resourceVersion") or "",
        metadata.get("uid") or "",
        spec.get("value") or "",
    )


async def play(script: Script) -> Record:
    """Play a script to an informer.

    Raises:
        AssertionError: the script has no answer to what it was asked.
        TimeoutError: the script did not come to an end.
    """
    player, witness = Player(script), Witness()
    await player.start()
    try:
        async with HttpTransport(player.url) as transport:
            options = ReflectorOptions(streaming_list=script.streaming, **script.options)
            informer: SharedIndexInformer[Any] = SharedIndexInformer(ListWatch(transport, WIDGETS), options=options)
            informer.add_event_handler(witness)
            async with informer:
                try:
                    await player.wait_for_end()
                except TimeoutError:
                    raise TimeoutError(f"{script.name} did not end; it was asked {player.requests()}") from None
                await asyncio.sleep(0)
                record = Record(player.requests(), witness.told, sorted(map(render, informer.lister().list())))
    finally:
        await player.close()
    assert not player.problems, player.problems
    return record
