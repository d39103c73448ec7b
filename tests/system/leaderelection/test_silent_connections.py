"""All connections of a leader become silent, while new ones work, as behind a balancer that has died."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from aioinformer import HttpTransport, LeaderElectionOptions, LeaderElector
from aioinformer.testing import ApiServer
from tests.support.loopback import fetch
from tests.support.silent_link import SilentLink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.leaderelection import Term

TIMES = LeaderElectionOptions(lease_duration=5, renew_deadline=4.0, retry_period=0.2)


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        yield server


async def renewed(server: ApiServer) -> None:
    """Wait until the leader has renewed its Lease three times."""
    versions: set[str] = set()
    async with asyncio.timeout(50):
        while len(versions) < 4:
            versions.add(server.get("leases", "it", "default")["metadata"]["resourceVersion"])
            await asyncio.sleep(0.02)


async def test_leader_goes_on_when_all_connections_become_silent(server: ApiServer) -> None:
    async with SilentLink(server.url).started() as link, HttpTransport(link.url) as transport:
        elector = LeaderElector(transport, "it", identity="me", options=TIMES)

        async def lead(term: Term) -> int:
            await renewed(server)
            for _ in range(3):
                await asyncio.gather(*(fetch(transport, "/version") for _ in range(8)))  # they are idle then
                link.silence()
                await renewed(server)
                term.check()
            return term.token

        assert await elector.run(lead) == 0
    assert server.get("leases", "it", "default")["spec"]["leaseTransitions"] == 0
    assert elector.slow_paths >= 3


async def test_candidate_takes_over_when_all_connections_have_become_silent(server: ApiServer) -> None:
    async with SilentLink(server.url).started() as link, HttpTransport(link.url) as transport:
        async with (
            HttpTransport(server.url) as direct,
            LeaderElector(direct, "it", identity="other", options=TIMES).leading(),
        ):
            elector = LeaderElector(transport, "it", identity="me", options=TIMES)
            candidate = asyncio.create_task(elector.run(token_of), name="candidate")
            async with asyncio.timeout(50):
                while elector.leader() != "other":  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            await asyncio.gather(*(fetch(transport, "/version") for _ in range(8)))
            link.silence()
        async with asyncio.timeout(50):
            assert await candidate == 1


async def token_of(term: Term) -> int:
    return term.token
