"""Candidates of a coordinated election in virtual time: when they announce themselves, and what they write."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from aioinformer.errors import UsageError
from aioinformer.leaderelection import LeaseCandidate
from tests.support.written_collection import Server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LONG_AGO = "2020-01-01T00:00:00.000000Z"
PINGED = "2021-01-01T00:00:00.000000Z"
SPEC = {
    "leaseName": "it",
    "binaryVersion": "1.4.0",
    "emulationVersion": "1.4.0",
    "strategy": "OldestEmulationVersion",
}


@pytest.fixture
def server() -> Server:
    server = Server()
    server.put("configmaps", {"metadata": {"name": "other", "namespace": "default"}})  # a server has some version
    return server


@asynccontextmanager
async def announced(server: Server, **options: Any) -> AsyncIterator[None]:
    """Announce a candidate while the block runs; it is announced when the block begins."""
    candidate = LeaseCandidate(server, "me", lease="it", **{"binary_version": "1.4.0", **options})
    async with candidate:
        await asyncio.sleep(1)
        yield


def stored(server: Server) -> dict[str, Any]:
    return server.objects["leasecandidates"]["default/me"]


def edit(server: Server, **spec: Any) -> None:
    """Change the spec on behalf of another client."""
    known = stored(server)
    server.put("leasecandidates", {**known, "spec": {**known["spec"], **spec}})


@pytest.mark.conformance("LE-14")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {}),
        ({"emulation_version": "1.3.0", "strategy": "Other"}, {"emulationVersion": "1.3.0", "strategy": "Other"}),
    ],
    ids=["defaults", "given"],
)
async def test_candidate_is_created_and_renewed(
    server: Server, options: dict[str, str], expected: dict[str, str]
) -> None:
    async with announced(server, **options):
        first = stored(server)["spec"]
        assert first == {**SPEC, **expected, "renewTime": first["renewTime"]}
        known = stored(server)
        metadata = {**known["metadata"], "labels": {"a": "1"}}
        server.put("leasecandidates", {**known, "metadata": metadata, "spec": {**first, "strategy": "x", "more": 1}})
        await asyncio.sleep(298)
        assert [each.method for each in server.writes] == ["POST"]
        await asyncio.sleep(2)
        assert [each.method for each in server.writes] == ["POST", "PUT"], "after 300 s"
        spec = stored(server)["spec"]
        assert spec == {**SPEC, **expected, "more": 1, "renewTime": spec["renewTime"]}
        assert spec["renewTime"] > first["renewTime"]
        assert stored(server)["metadata"]["labels"] == {"a": "1"}
        await asyncio.sleep(300)
        assert len(server.writes) == 3
    await asyncio.sleep(1000)
    assert len(server.writes) == 3
    assert server.names("leasecandidates") == ["default/me"], "the object stays"


@pytest.mark.conformance("LE-14")
async def test_candidate_that_is_there_is_renewed(server: Server) -> None:
    metadata = {"name": "me", "namespace": "default"}
    server.put("leasecandidates", {"metadata": metadata, "spec": {"leaseName": "former", "renewTime": LONG_AGO}})
    async with announced(server, renew_period=10.0):
        assert [each.method for each in server.writes] == ["PUT"]
        assert stored(server)["spec"]["leaseName"] == "it"
        await asyncio.sleep(30)
        assert len(server.writes) == 4


@pytest.mark.conformance("LE-14")
async def test_ping_is_answered_once(server: Server) -> None:
    async with announced(server):
        edit(server, renewTime=LONG_AGO, pingTime=PINGED)
        await asyncio.sleep(1)
        assert len(server.writes) == 2
        spec = stored(server)["spec"]
        assert spec["renewTime"] > spec["pingTime"] == PINGED
        await asyncio.sleep(200)
        assert len(server.writes) == 2


@pytest.mark.conformance("LE-14")
@pytest.mark.parametrize("time", [LONG_AGO, "odd", None, ""], ids=str)
async def test_what_is_no_new_ping_is_not_answered(server: Server, time: str | None) -> None:
    async with announced(server):
        edit(server, renewTime=LONG_AGO, pingTime=time)
        await asyncio.sleep(100)
        assert len(server.writes) == 1


@pytest.mark.conformance("LE-14")
async def test_deleted_candidate_is_created_again_at_once(server: Server) -> None:
    async with announced(server):
        server.remove("leasecandidates", "default/me")
        await asyncio.sleep(1)
        assert [each.method for each in server.writes] == ["POST", "POST"]
        assert msgspec.json.decode(server.writes[1].body or b"")["spec"]["leaseName"] == "it"


@pytest.mark.conformance("LE-14")
@pytest.mark.parametrize("fault", ["503", "409", "before"])
async def test_failed_renewal_is_retried_with_backoff(
    server: Server, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with announced(server):
        server.fault = lambda request: fault
        await asyncio.sleep(299 + 0.1 * (2**6 - 1) + 0.5)
        assert 7 <= len(server.writes) <= 9, "after 300 s, and then after 0.1, 0.2, 0.4 s …"
        assert caplog.text.count("lease candidate default/me was not renewed, retrying:") == len(server.writes) - 1
        server.fault = lambda request: ""
        await asyncio.sleep(15)
        succeeded = len(server.writes)
        await asyncio.sleep(280)
        assert len(server.writes) == succeeded
        await asyncio.sleep(30)
        assert len(server.writes) == succeeded + 1


@pytest.mark.parametrize("missing", ["name", "namespace", "lease", "binary_version"])
def test_what_a_candidate_lacks_is_named(server: Server, missing: str) -> None:
    arguments: dict[str, Any] = {
        "name": "me",
        "namespace": "default",
        "lease": "it",
        "binary_version": "1.4.0",
        missing: "",
    }
    with pytest.raises(UsageError, match="a candidate needs a name, a namespace, a lease and a binary_version"):
        LeaseCandidate(server, **arguments)


async def test_backoff_begins_anew_after_a_renewal(server: Server) -> None:
    async with announced(server, renew_period=100.0):
        for _ in range(2):
            before = len(server.writes)
            server.fault = lambda request: "503"
            await asyncio.sleep(105)
            server.fault = lambda request: ""
            await asyncio.sleep(8)
            assert 7 <= len(server.writes) - before <= 8, "after 0.1, 0.2, 0.4 s …"


async def test_renewal_waits_for_the_cache_to_show_the_last_one(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.delay = lambda: 2.0
    async with announced(server, renew_period=1.0):
        await asyncio.sleep(20)
        assert [each.method for each in server.writes[:3]] == ["POST", "PUT", "PUT"]
    assert "was not renewed" not in caplog.text


async def test_other_candidates_cause_no_renewal(server: Server) -> None:
    async with announced(server):
        metadata = {"name": "other", "namespace": "default"}
        server.put("leasecandidates", {"metadata": metadata, "spec": {"renewTime": LONG_AGO, "pingTime": PINGED}})
        await asyncio.sleep(1)
        server.remove("leasecandidates", "default/other")
        await asyncio.sleep(1)
        assert len(server.writes) == 1


async def test_candidate_without_a_spec_gets_one(server: Server) -> None:
    server.put("leasecandidates", {"metadata": {"name": "me", "namespace": "default"}, "spec": None})
    async with announced(server):
        assert {**stored(server)["spec"], "renewTime": ""} == {**SPEC, "renewTime": ""}


async def test_candidate_is_in_the_namespace_of_its_lease(server: Server) -> None:
    candidate = LeaseCandidate(server, "me", "shop", lease="it", binary_version="1.4.0")
    assert (candidate.name, candidate.lease) == ("me", "it")
    async with candidate:
        await asyncio.sleep(1)
    assert server.names("leasecandidates") == ["shop/me"]
    with pytest.raises(UsageError):
        LeaseCandidate(server, "a/b", lease="it", binary_version="1.4.0")
