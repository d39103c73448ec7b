"""Many handlers are added and removed during changes; each gets a valid history."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

import pytest

from aioinformer.errors import InformerStopped
from aioinformer.informer.shared_informer import SharedIndexInformer
from aioinformer.reflector.options import ReflectorOptions
from tests.support.collection import Collection, cut
from tests.support.virtual_time import settled
from tests.support.witness import Witness, truth

if TYPE_CHECKING:
    from aioinformer.handlers.registration import HandlerRegistration

pytestmark = pytest.mark.usefixtures("queue")

WORKERS, CHANGES = 30, 400


class Crowd:
    """Workers that repeatedly add a handler, keep it for a while, and remove it."""

    def __init__(self, informer: SharedIndexInformer[object], random: Random) -> None:
        self._informer = informer
        self._random = random
        self._registrations: list[HandlerRegistration[object]] = []
        self.witnesses: list[Witness] = []

    async def work(self) -> None:
        """Add and remove handlers until the informer stops."""
        while True:
            witness = Witness()
            try:
                registration = self._informer.add_event_handler(witness)
            except InformerStopped:
                return
            self.witnesses.append(witness)
            self._registrations.append(registration)
            await asyncio.sleep(self._random.choice([0, 0, 1e-3, 1]))
            if self._random.random() < 0.1:
                await asyncio.sleep(3600)
            self._informer.remove_event_handler(registration)

    def errors(self) -> int:
        return sum(registration.errors for registration in self._registrations)


def change(pods: Collection, random: Random) -> None:
    name = f"p{random.randrange(40)}"
    if f"default/{name}" in pods.objects and random.random() < 0.3:
        pods.delete(name)
    else:
        pods.put(name)
    match random.randrange(40):
        case 0:
            pods.end_watches(cut())
        case 1:
            pods.expire_watches()
        case 2:
            pods.bookmark()


@pytest.mark.conformance("SI-18", "SI-20", "SI-22")
@pytest.mark.parametrize("seed", range(5))
async def test_handlers_that_come_and_go_get_valid_histories(seed: int) -> None:
    random = Random(seed)
    pods = Collection(*(f"p{number}" for number in range(40)))
    informer: SharedIndexInformer[object] = SharedIndexInformer(pods, options=ReflectorOptions(slice_seconds=1e-9))
    crowd = Crowd(informer, random)
    steady = Witness()
    informer.add_event_handler(steady)
    async with asyncio.TaskGroup() as workers:
        for _ in range(WORKERS):
            workers.create_task(crowd.work())
        async with informer:
            for _ in range(CHANGES):
                change(pods, random)
                await asyncio.sleep(random.choice([0, 0, 0, 1e-3, 1]))
            await asyncio.sleep(300)
            late = Witness()
            informer.add_event_handler(late)
            await settled()
            there = truth(list(pods.objects.values()))
            assert steady.present == late.present == there
    assert [violation for witness in (steady, late, *crowd.witnesses) for violation in witness.violations] == []
    assert crowd.errors() == 0
