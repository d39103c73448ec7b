"""An informer, a server that fails, and changes all the while: held together for one test."""

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
from tests.faults.witness import Witness, truth

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from random import Random

    from aioinformer.reflector.state import InformerState, Phase

#: Times are short where they are not the point.
QUICK: dict[str, Any] = {
    "backoff": BackoffOptions(initial=0.02, cap=0.1),
    "idle_timeout": 2.0,
    "stream_patience": 1.0,
    "page_size": 7,
    "max_frame": 1_000_000,
}

_NAMES = [f"c{number}" for number in range(60)]


class Following:
    """A server, an informer of its config maps, and what the informer told.

    Attributes:
        states: what the informer showed.
    """

    def __init__(
        self, server: ApiServer, transport: HttpTransport, random: Random, options: ReflectorOptions, queue: str
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
        """Makes, changes and takes away objects, as it comes."""
        for _ in range(times):
            names = [obj["metadata"]["name"] for obj in self.server.list("configmaps")]
            what = self._random.choice(["make", "change", "change", "take"] if names else ["make"])
            if what == "make":
                name = self._random.choice([name for name in _NAMES if name not in names])
                self.server.create("configmaps", {"metadata": {"name": name}})
            elif what == "change":
                self._touch(self._random.choice(names))
            else:
                self.server.delete("configmaps", self._random.choice(names))

    @property
    def shown(self) -> set[Phase]:
        """The phases that the informer has shown."""
        return {state.phase for state in self.states}

    async def catch_up(self, marker: str = "last") -> None:
        """Returns when the informer has told everything up to now; the fault must be over, or harmless.

        Args:
            marker: an object that nobody else touches; made if it is not there.
        """
        await self.witness.was_told(f"default/{marker}", self._touch(marker))
        # What a list brought was told in any order, but before what is told now.
        await self.witness.was_told(f"default/{marker}", self._touch(marker))

    async def until(self, holds: Callable[[InformerState], bool]) -> None:
        """Returns when something holds of the state that the informer shows."""
        while not holds(self.informer.state):
            self._changed.clear()
            await self._changed.wait()

    def assert_truth_was_told(self) -> None:
        """Nothing is lost, doubled, out of order, or untrue."""
        there = truth(self.server.list("configmaps"))
        cached = truth([obj.to_dict() for obj in self.informer.get_store().list()])
        assert cached == there
        assert self.witness.present == there
        assert self.witness.lies == []
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
async def following(random: Random, *, queue: str = "delta", **options: Any) -> AsyncIterator[Following]:
    """A server with objects, and an informer that is not started yet.

    Args:
        random: decides what happens to the objects.
        queue: of the informer.
        options: of the reflector, where they are not `QUICK`.
    """
    async with (
        ApiServer(bookmark_interval=0.1) as server,
        HttpTransport(server.url, header_timeout=0.5) as transport,
    ):
        follower = Following(server, transport, random, ReflectorOptions(**{**QUICK, **options}), queue)
        follower.change(40)
        yield follower
