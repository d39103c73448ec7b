"""Electors against an API server, over real sockets, with short times."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer.leaderelection.elector import LeaderElector, LeadershipLost, Term
from aioinformer.leaderelection.lease import LeaderElectionOptions
from aioinformer.testing import ApiServer
from aioinformer.transport.auth.tokens import Credential, RenewedCredentials
from aioinformer.transport.http import HttpTransport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aioinformer.transport import Request, Response, Transport

#: As short as a Lease can say it.
SHORT = LeaderElectionOptions(lease_duration=2, renew_deadline=1.0, retry_period=0.05)


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        yield server


@pytest.fixture
async def transport(server: ApiServer) -> AsyncIterator[HttpTransport]:
    async with HttpTransport(server.url) as transport:
        yield transport


class Witness:
    """A transport that says when an answer has come."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.answers: asyncio.Queue[int] = asyncio.Queue()

    async def request(self, request: Request) -> Response:
        response = await self._transport.request(request)
        self.answers.put_nowait(response.status)
        return response


def spec(server: ApiServer) -> dict[str, Any]:
    found: dict[str, Any] = server.get("leases", "it", "default")["spec"]
    return found


async def work(term: Term) -> None:
    """Guarded work that has no end."""
    await asyncio.Event().wait()


async def test_the_lease_is_written_as_kubernetes_has_it(server: ApiServer, transport: HttpTransport) -> None:
    async with LeaderElector(transport, "it", identity="me", labels={"app": "test"}).leading():
        lease = server.get("leases", "it", "default")
    assert lease["metadata"]["labels"] == {"app": "test"}
    assert {name: type(value) for name, value in lease["spec"].items()} == {
        "holderIdentity": str,
        "leaseDurationSeconds": int,
        "acquireTime": str,
        "renewTime": str,
        "leaseTransitions": int,
    }


@pytest.mark.conformance("LE-07", "LE-08", "LE-09")
async def test_two_electors_take_turns_and_never_lead_together(server: ApiServer) -> None:
    leaders: list[str] = []
    tokens: list[int] = []

    async def compete(identity: str) -> None:
        async with HttpTransport(server.url) as transport:
            elector = LeaderElector(transport, "it", identity=identity, options=SHORT)
            for _ in range(3):
                async with elector.leading() as term:
                    assert leaders == []
                    leaders.append(identity)
                    tokens.append(term.token)
                    await asyncio.sleep(0.1)
                    assert spec(server)["holderIdentity"] == identity
                    leaders.remove(identity)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(compete("first"))
        tasks.create_task(compete("second"))
    assert tokens == [0, 1, 2, 3, 4, 5]
    assert spec(server)["holderIdentity"] == ""


@pytest.mark.conformance("LE-06")
@pytest.mark.parametrize("fault", ["outage", "black_hole"])
async def test_a_leader_that_cannot_reach_the_server_stops(
    server: ApiServer, transport: HttpTransport, fault: str
) -> None:
    elector = LeaderElector(transport, "it", options=SHORT)
    leads = asyncio.Event()

    async def main(term: Term) -> None:
        leads.set()
        await work(term)

    task = asyncio.create_task(elector.run(main))
    await leads.wait()
    async with server.fault(fault):
        with pytest.raises(LeadershipLost):
            await task
    assert await elector.run(lambda term: asyncio.sleep(0, term.token)) == 1


@pytest.mark.conformance("LE-06")
@pytest.mark.parametrize("fault", ["throttle", "server_error", "unavailable", "html"])
async def test_a_leader_survives_a_server_that_fails_a_few_times(
    server: ApiServer, transport: HttpTransport, fault: str
) -> None:
    witness = Witness(transport)
    async with LeaderElector(witness, "it", identity="me", options=SHORT).leading() as term:
        renewed = spec(server)["renewTime"]
        async with server.fault(fault, times=5) as struck:
            while struck.strikes < 5 or spec(server)["renewTime"] == renewed:
                await witness.answers.get()
        term.check()
    assert spec(server)["holderIdentity"] == ""


async def test_a_standby_takes_over_when_the_lease_of_a_dead_leader_has_run_out(
    server: ApiServer, transport: HttpTransport
) -> None:
    dead = {"holderIdentity": "dead", "leaseDurationSeconds": 1, "leaseTransitions": 5}
    server.create("leases", {"metadata": {"name": "it"}, "spec": dead})
    async with LeaderElector(transport, "it", identity="me", options=SHORT).leading() as term:
        assert term.token == 6
        assert spec(server)["holderIdentity"] == "me"


class SlowSource(RenewedCredentials):
    """Takes longer for its credential than a request of an elector may."""

    asked = 0

    async def fetch(self, refused: Credential | None) -> tuple[Credential, float | None]:
        self.asked += 1
        await asyncio.sleep(2 * SHORT.renew_deadline)
        return Credential(), None


async def test_a_candidate_leads_though_its_credential_takes_longer_than_a_request(server: ApiServer) -> None:
    source = SlowSource()
    async with (
        asyncio.timeout(30),
        HttpTransport(server.url, credentials=source) as transport,
        LeaderElector(transport, "it", identity="me", options=SHORT).leading(),
    ):
        assert spec(server)["holderIdentity"] == "me"
    assert source.asked == 1
