"""One server with faults, random changes, and an informer that watches it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from aioinformer.backoff import BackoffOptions
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.reflector.listwatch import ListWatch
from aioinformer.reflector.options import ReflectorOptions
from aioinformer.resources.catalog import find
from aioinformer.testing import ApiServer
from aioinformer.transport.http import HttpTransport
from tests.support.witness import Witness, truth

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from random import Random

    from aioinformer.informer.pipeline import QueueName
    from aioinformer.reflector.state import InformerState, Phase

#: Short times, for tests of other things.
QUICK: dict[str, Any] = {
    "backoff": BackoffOptions(initial=0.02, cap=0.1),
    "idle_timeout": 2.0,
    "stream_patience": 1.0,
    "page_size": 7,
    "max_frame": 1_000_000,
}

_NAMES = [f"c{number}" for number in range(60)]


class WatchedServer:
    """A server, an informer of its ConfigMaps, and a handler that checks the notifications.

    Attributes:
        server: the server.
        informer: the informer.
        witness: the handler.
        states: the states that the informer has reported.
    """

    def __init__(
        self, server: ApiServer, transport: HttpTransport, random: Random, options: ReflectorOptions, queue: QueueName
    ) -> None:
        resource = find("", "v1", "configmaps")
        assert resource is not None
        self.server = server
        self.informer: SharedIndexInformer[Any] = SharedIndexInformer(
            ListWatch(transport, resource), options=options, queue=queue
        )
        self.witness = Witness()
        self.states: list[InformerState] = []
        self._registration = self.informer.add_event_handler(self.witness)
        self._random = random
        self._changed = asyncio.Event()
        self.informer.add_state_handler(self._saw)

    def change(self, times: int) -> None:
        """Create, update and delete random objects."""
        for _ in range(times):
            names = [obj["metadata"]["name"] for obj in self.server.list("configmaps")]
            action = self._random.choice(["create", "update", "update", "delete"] if names else ["create"])
            if action == "create":
                name = self._random.choice([name for name in _NAMES if name not in names])
                self.server.create("configmaps", {"metadata": {"name": name}})
            elif action == "update":
                self._touch(self._random.choice(names))
            else:
                self.server.delete("configmaps", self._random.choice(names))

    @property
    def shown(self) -> set[Phase]:
        """The phases that the informer has reported."""
        return {state.phase for state in self.states}

    async def catch_up(self, marker: str = "last") -> None:
        """Wait until all changes so far have been delivered. The fault must be over or harmless.

        Args:
            marker: an object that is not changed otherwise; it is created if necessary.
        """
        await self.witness.wait_for_version(f"default/{marker}", self._touch(marker))
        # Objects of a list are delivered in any order, but before the next change of the marker.
        await self.witness.wait_for_version(f"default/{marker}", self._touch(marker))

    async def until(self, holds: Callable[[InformerState], bool]) -> None:
        """Wait until a condition holds for the state of the informer."""
        while not holds(self.informer.state):
            self._changed.clear()
            await self._changed.wait()

    def assert_consistent(self) -> None:
        """Check that the cache and the notifications match the server, and that notifications were consistent."""
        there = truth(self.server.list("configmaps"))
        cached = truth([obj.to_dict() for obj in self.informer.get_store().list()])
        assert cached == there
        assert self.witness.present == there
        assert self.witness.violations == []
        assert self._registration.errors == 0

    def _saw(self, state: InformerState) -> None:
        self.states.append(state)
        self._changed.set()

    def _touch(self, name: str) -> str:
        names = [obj["metadata"]["name"] for obj in self.server.list("configmaps")]
        if name not in names:
            obj = self.server.create("configmaps", {"metadata": {"name": name}})
        else:
            patch = {"data": {"random": str(self._random.random())}}
            obj = self.server.patch("configmaps", name, patch)
        return str(obj["metadata"]["resourceVersion"])


@asynccontextmanager
async def watched_server(random: Random, *, queue: QueueName = "delta", **options: Any) -> AsyncIterator[WatchedServer]:
    """Provide a server with objects, and an informer that is not started yet.

    Args:
        random: chooses the changes.
        queue: the queue of the informer.
        options: options of the reflector, in addition to `QUICK`.
    """
    async with (
        ApiServer(bookmark_interval=0.1) as server,
        HttpTransport(server.url, header_timeout=0.5) as transport,
    ):
        watched = WatchedServer(server, transport, random, ReflectorOptions(**{**QUICK, **options}), queue)
        watched.change(40)
        yield watched
