"""Outages are logged once a minute, in one line for all informers of a factory."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.errors import TransportError
from aioinformer.factory.dynamic import DynamicInformer
from aioinformer.factory.factory import SharedInformerFactory
from aioinformer.informer.outages import duration
from aioinformer.informer.shared_informer import SharedIndexInformer
from tests.support.cluster import Cluster
from tests.support.collection import Collection
from tests.support.virtual_time import settled

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("queue")


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level("INFO", "aioinformer.informer")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "aioinformer.informer"]


class Lost(Cluster):
    """A server that can be switched off."""

    lost = True

    async def request(self, request: Any) -> Any:
        if self.lost:
            raise TransportError("api:6443 refused the connection")
        return await super().request(request)


async def test_factory_logs_an_outage_once_a_minute(lines: Callable[[], list[str]]) -> None:
    cluster = Lost()
    async with SharedInformerFactory(cluster) as factory:
        for accessor in (
            factory.core.v1.pods,
            factory.core.v1.nodes,
            factory.core.v1.secrets,
            factory.core.v1.services,
        ):
            accessor.informer()
        factory.start()
        await asyncio.sleep(59)
        assert lines() == []
        await asyncio.sleep(182)
        assert len(lines()) == 4
        pattern = (
            r"informer factory: 4 of 4 informers \(informer of nodes, informer of pods, informer of secrets, …\) have "
            r"been failing for 3 min: api:6443 refused the connection; attempt \d+, next retry in \d+ s"
        )
        assert re.fullmatch(pattern, lines()[2])
        cluster.lost = False
        await asyncio.sleep(120)
        assert lines()[-1] == "informer factory: the outage is over after " + lines()[-1].rpartition(" after ")[2]
        count = len(lines())
        await asyncio.sleep(600)
        assert len(lines()) == count


async def test_single_informer_logs_its_outage(lines: Callable[[], list[str]]) -> None:
    pods = Collection("a")
    for _ in range(100):
        pods.refuse(403, "Forbidden")
    async with SharedIndexInformer(pods):
        await asyncio.sleep(125)
    first, second = lines()
    assert re.fullmatch(r"informer of pods has been failing for 1 min: .*403.*; attempt \d, next retry in \d+ s", first)
    assert "for 2 min:" in second


async def test_short_outage_is_not_logged_again(lines: Callable[[], list[str]]) -> None:
    pods = Collection("a")
    pods.refusals.extend(TransportError("lost") for _ in range(3))
    async with SharedIndexInformer(pods):
        await asyncio.sleep(600)
    assert lines() == []


async def test_unserved_resource_is_no_outage(lines: Callable[[], list[str]]) -> None:
    informer = DynamicInformer(Collection("a"))
    async with informer:
        await settled()
        informer.serve(False)
        await asyncio.sleep(300)
    assert lines() == []


async def test_attempts_count_consecutive_delays() -> None:
    pods = Collection("a")
    pods.refusals.extend(TransportError("lost") for _ in range(3))
    informer = SharedIndexInformer(pods)
    counts = []
    informer.add_state_handler(lambda state: counts.append(informer.reflectors()[""].attempts))
    async with informer:
        await settled()
        reflector = informer.reflectors()[""]
        loop = asyncio.get_running_loop()
        assert reflector.attempts == 1
        assert reflector.retry_at is not None
        assert 0 < reflector.retry_at - loop.time() < 2
        await asyncio.sleep(30)
        figures: tuple[object, ...] = (reflector.attempts, reflector.retry_at, reflector.next_retry)
        assert figures == (0, None, None)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(59.4, "59 s"), (60, "1 min"), (200, "3 min 20 s"), (3600, "1 h"), (7500, "2 h 5 min")],
)
def test_duration_format(seconds: float, text: str) -> None:
    assert duration(seconds) == text
