"""Electors with the embedded API server, over real sockets, with short times."""

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

#: A candidate with these times that takes over within seconds does so because of the watch.
SLOW = LeaderElectionOptions(lease_duration=900, renew_deadline=600.0, retry_period=300.0)

#: The shortest times that a Lease allows.
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
    """A transport that records the status of each answer."""

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
    """Run until cancelled."""
    await asyncio.Event().wait()


async def test_lease_has_the_fields_of_the_kubernetes_api(server: ApiServer, transport: HttpTransport) -> None:
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
async def test_two_electors_never_lead_together(server: ApiServer) -> None:
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
async def test_leader_stops_if_the_server_is_unreachable(
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
async def test_leader_survives_a_few_server_failures(server: ApiServer, transport: HttpTransport, fault: str) -> None:
    witness = Witness(transport)
    async with LeaderElector(witness, "it", identity="me", options=SHORT).leading() as term:
        renewed = spec(server)["renewTime"]
        async with server.fault(fault, times=5) as struck:
            while struck.strikes < 5 or spec(server)["renewTime"] == renewed:
                await witness.answers.get()
        term.check()
    assert spec(server)["holderIdentity"] == ""


async def test_candidate_takes_over_an_expired_lease(server: ApiServer, transport: HttpTransport) -> None:
    dead = {"holderIdentity": "dead", "leaseDurationSeconds": 1, "leaseTransitions": 5}
    server.create("leases", {"metadata": {"name": "it"}, "spec": dead})
    async with LeaderElector(transport, "it", identity="me", options=SHORT).leading() as term:
        assert term.token == 6
        assert spec(server)["holderIdentity"] == "me"


@pytest.mark.behaviour("C-75")
async def test_standby_takes_over_a_released_lease_without_waiting(server: ApiServer) -> None:
    watched = asyncio.Event()

    class Watched:
        """A transport that reports when a watch is open."""

        def __init__(self, transport: Transport) -> None:
            self._transport = transport

        async def request(self, request: Request) -> Response:
            response = await self._transport.request(request)
            if ("watch", "true") in request.query:
                watched.set()
            return response

    async def second() -> None:
        async with (
            HttpTransport(server.url) as transport,
            LeaderElector(Watched(transport), "it", identity="second", options=SLOW).leading(),
        ):
            assert spec(server)["holderIdentity"] == "second"

    async with (
        asyncio.timeout(30),
        HttpTransport(server.url) as transport,
        asyncio.TaskGroup() as tasks,
        LeaderElector(transport, "it", identity="first", options=SLOW).leading(),
    ):
        tasks.create_task(second())
        await watched.wait()


class SlowSource(RenewedCredentials):
    """A credential source that takes longer than the timeout of an elector's request."""

    fetches = 0

    async def fetch(self, refused: Credential | None) -> tuple[Credential, float | None]:
        self.fetches += 1
        await asyncio.sleep(2 * SHORT.renew_deadline)
        return Credential(), None


async def test_candidate_leads_despite_a_slow_credential_source(server: ApiServer) -> None:
    source = SlowSource()
    async with (
        asyncio.timeout(30),
        HttpTransport(server.url, credentials=source) as transport,
        LeaderElector(transport, "it", identity="me", options=SHORT).leading(),
    ):
        assert spec(server)["holderIdentity"] == "me"
    assert source.fetches == 1
