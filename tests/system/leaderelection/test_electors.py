"""Electors and lease candidates with the embedded API server, over real sockets, with short times."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import HttpTransport, LeaderElectionOptions, LeaderElector, ListWatch, Resource
from aioinformer.errors import UsageError
from aioinformer.informer import RetryWatcher, until
from aioinformer.leaderelection import LeadershipLost, LeaseCandidate, Term
from aioinformer.reflector import ListPager
from aioinformer.testing import ApiServer
from aioinformer.transport import Credential
from aioinformer.transport.auth.tokens import RenewedCredentials

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aioinformer.transport import HttpRequest, Response, Transport

LEASE_CANDIDATES: Resource[Any] = Resource(
    "coordination.k8s.io", "v1beta1", "leasecandidates", "LeaseCandidate", model=""
)


#: The shortest times that a Lease allows.
SHORT = LeaderElectionOptions(lease_duration=2, renew_deadline=1.0, retry_period=0.05)


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer(extra_resources=[LEASE_CANDIDATES]) as server:
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

    async def request(self, request: HttpRequest) -> Response:
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
        asyncio.timeout(50),
        HttpTransport(server.url, credentials=source) as transport,
        LeaderElector(transport, "it", identity="me", options=SHORT).leading(),
    ):
        assert spec(server)["holderIdentity"] == "me"
    assert source.fetches == 1


LONG_AGO = "2020-01-01T00:00:00.000000Z"
LATER = "2999-01-01T00:00:00.000000Z"


def candidate(transport: HttpTransport, **options: Any) -> LeaseCandidate:
    return LeaseCandidate(transport, "me", lease="it", **{"binary_version": "1.4.0", **options})


async def written(transport: HttpTransport, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Wait until a candidate's spec satisfies `wanted`, and return the spec."""
    pager = ListPager(ListWatch(transport, LEASE_CANDIDATES))
    async with asyncio.timeout(50):
        for each in await pager.list():
            if wanted(each["spec"]):
                return dict(each["spec"])
        watcher = RetryWatcher(ListWatch(transport, LEASE_CANDIDATES), pager.resource_version)
        async with watcher as events:
            event = await until(events, lambda event: event.type != "DELETED" and wanted(event.object["spec"]))
            return dict(event.object["spec"])


@pytest.mark.conformance("LE-14")
async def test_candidate_announces_itself(transport: HttpTransport) -> None:
    async with candidate(transport, emulation_version="1.3.0"):
        spec = await written(transport, lambda spec: True)
    assert spec.pop("renewTime") > LONG_AGO
    assert spec == {
        "leaseName": "it",
        "binaryVersion": "1.4.0",
        "emulationVersion": "1.3.0",
        "strategy": "OldestEmulationVersion",
    }


@pytest.mark.conformance("LE-14")
async def test_ping_is_answered_and_other_fields_stay(server: ApiServer, transport: HttpTransport) -> None:
    async with candidate(transport):
        first = (await written(transport, lambda spec: True))["renewTime"]
        server.patch(
            "leasecandidates", "me", {"metadata": {"labels": {"a": "1"}}, "spec": {"pingTime": LATER}}, "default"
        )
        await written(transport, lambda spec: "pingTime" in spec and spec["renewTime"] > first)
    assert server.get("leasecandidates", "me", "default")["metadata"]["labels"] == {"a": "1"}


@pytest.mark.conformance("LE-14")
async def test_existing_candidate_object_is_renewed(server: ApiServer, transport: HttpTransport) -> None:
    spec = {"leaseName": "it", "binaryVersion": "1.0.0", "strategy": "OldestEmulationVersion", "renewTime": LONG_AGO}
    server.create("leasecandidates", {"metadata": {"name": "me", "namespace": "default"}, "spec": spec})
    async with candidate(transport):
        renewed = await written(transport, lambda spec: spec["renewTime"] != LONG_AGO)
    assert renewed["binaryVersion"] == "1.4.0"


@pytest.mark.conformance("LE-14")
async def test_deleted_candidate_announces_itself_again(server: ApiServer, transport: HttpTransport) -> None:
    async with candidate(transport):
        first = (await written(transport, lambda spec: True))["renewTime"]
        server.delete("leasecandidates", "me", "default")
        await written(transport, lambda spec: spec["renewTime"] > first)


@pytest.mark.conformance("LE-14")
async def test_candidate_renews_without_pings(transport: HttpTransport) -> None:
    async with candidate(transport, renew_period=0.05):
        first = (await written(transport, lambda spec: True))["renewTime"]
        await written(transport, lambda spec: spec["renewTime"] > first)


@pytest.mark.conformance("LE-14")
async def test_failed_write_is_retried(server: ApiServer, transport: HttpTransport) -> None:
    async with server.fault("server_error", verbs=["create"], status=503, times=1), candidate(transport):
        await written(transport, lambda spec: True)


@pytest.mark.conformance("LE-13", "LE-14")
async def test_candidate_leads_when_the_server_has_chosen_it(server: ApiServer, transport: HttpTransport) -> None:
    options = LeaderElectionOptions(lease_duration=2, renew_deadline=1.0, retry_period=0.05, coordinated=True)
    async with candidate(transport) as announced:
        elector = LeaderElector(transport, announced.lease, identity=announced.name, options=options)
        await written(transport, lambda spec: True)
        now = "2026-01-01T00:00:00.000000Z"
        spec = {"holderIdentity": "me", "leaseDurationSeconds": 5, "acquireTime": now, "renewTime": now}
        server.create(
            "leases",
            {"metadata": {"name": "it", "namespace": "default"}, "spec": {**spec, "leaseTransitions": 4}},
        )
        async with asyncio.timeout(50), elector.leading() as term:
            assert term.token == 4


def test_missing_version_is_refused() -> None:
    with pytest.raises(UsageError, match="binary_version"):
        LeaseCandidate(None, "me", lease="it", binary_version="")  # type: ignore[arg-type]
