"""Leases that a person or another program has touched, and what replicas say of them."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from aioinformer import HttpTransport, LeaderElectionOptions
from tests.support.loopback import fetch
from tests.support.silent_link import SilentLink
from tests.system.ring.replicas import Link, Replica, ring_object, settled, until

if TYPE_CHECKING:
    from aioinformer.testing import ApiServer

LABEL = "aioinformer/ring"
EPOCH = "aioinformer/ring-epoch"
SECONDS = "aioinformer/lease-duration"


def lease(
    name: str, holder: str, annotations: dict[str, str] | None = None, *, labelled: bool = True
) -> dict[str, Any]:
    metadata = {"name": name, "labels": {LABEL: "widgets"} if labelled else {}, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"holderIdentity": holder, "leaseDurationSeconds": 3}}


async def reported(server: ApiServer, reason: str) -> str:
    """Wait for the Event with this reason, and return its message."""
    found: list[str] = []

    def look() -> list[str]:
        found[:] = [each["message"] for each in server.list("events") if each.get("reason") == reason]
        return found

    await until(look)
    return found[0]


@pytest.mark.behaviour("C-138")
@pytest.mark.parametrize(
    ("holder", "labelled"), [("another-program", False), ("another-program", True), ("widgets-a_1", False)]
)
async def test_lease_of_another_program_is_named_and_kept(
    server: ApiServer, caplog: pytest.LogCaptureFixture, holder: str, labelled: bool
) -> None:
    caplog.set_level(logging.INFO)
    made = server.create("leases", lease("widgets-a", holder, labelled=labelled))
    async with Replica(server, "a") as replica:
        message = await reported(server, "LeaseOfAnother")
        assert f"default/widgets-a, held by {holder}, is that of another program" in message
        assert "another name with member=" in message
        assert message in str(replica.manager.ready())
        assert len([each for each in caplog.records if message in each.getMessage()]) == 1
        reads = replica.transport.lease_requests
        await until(lambda: replica.transport.lease_requests > reads + 30)
        kept = server.get("leases", "widgets-a", "default")
        assert kept["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
        server.delete("leases", "widgets-a", "default")
        await until(lambda: settled(server, replica))


@pytest.mark.behaviour("C-138")
async def test_long_duration_is_named(server: ApiServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with Replica(server, "a") as replica:
        await until(lambda: settled(server, replica))
        server.create("leases", lease("widgets-z", "widgets-z_1", {SECONDS: "20000"}))
        message = await reported(server, "LeaseTooLong")
        assert (
            "default/widgets-z, held by widgets-z_1, has a duration of 20000 s, more than 10 times the 3 s" in message
        )
        assert "delete the Lease" in message
        assert message in str(replica.manager.ready())
        assert len([each for each in caplog.records if message in each.getMessage()]) == 1
        server.delete("leases", "widgets-z", "default")
        await until(lambda: replica.manager.ready())


@pytest.mark.behaviour("C-138")
async def test_annotation_of_a_later_format_is_named_and_kept(
    server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    later = server.create("leases", lease("widgets-z", "widgets-z_1", {EPOCH: "2:17", SECONDS: "3"}))
    async with Replica(server, "a") as replica:
        message = await reported(server, "LeaseUnreadable")
        assert "default/widgets-z, held by widgets-z_1, has the annotation aioinformer/ring-epoch: '2:17'" in message
        assert "knows decimal numbers only: no new ring is made; run one version on all replicas" in message
        assert message in str(replica.manager.ready())
        assert len([each for each in caplog.records if message in each.getMessage()]) == 1
        assert not [each for each in server.list("configmaps") if each["metadata"]["name"] == "widgets-ring"]
        found = server.get("leases", "widgets-z", "default")
        assert found["metadata"]["resourceVersion"] == later["metadata"]["resourceVersion"]
        # Its holder has ended: once that is proven, its Lease is deleted, and a ring is made.
        await until(lambda: settled(server, replica))
        server.create("leases", lease("widgets-y", "widgets-y_1", {SECONDS: "P3D"}))
        await until(lambda: "aioinformer/lease-duration: 'P3D', and this version" in caplog.text)
        assert replica.manager.ready()


@pytest.mark.behaviour("C-138")
async def test_edited_duration_of_a_living_member_changes_nothing(server: ApiServer, shared: list[Replica]) -> None:
    before = ring_object(server)["metadata"]["resourceVersion"]
    for seconds in (1, 20_000):
        for each in shared:
            server.patch("leases", f"widgets-{each.name}", {"spec": {"leaseDurationSeconds": seconds}}, "default")
    reads = [each.looks() for each in shared]
    await until(lambda: all(each.looks() > read + 5 for each, read in zip(shared, reads, strict=True)))
    assert ring_object(server)["metadata"]["resourceVersion"] == before
    assert all(each.manager.ready() for each in shared)


async def test_members_write_their_epoch_and_the_next_ring_begins_above_it(
    server: ApiServer, replicas: list[Replica]
) -> None:
    first, second, _ = replicas
    await first.start()
    await until(lambda: settled(server, first))
    epoch = first.ring["epoch"]

    def written() -> bool:
        annotations = server.get("leases", "widgets-a", "default")["metadata"]["annotations"]
        return bool(annotations[EPOCH] == str(epoch) and annotations[SECONDS] == "3")

    await until(written)
    await first.stop()
    server.delete("configmaps", "widgets-ring", "default")
    server.create("leases", lease("widgets-dead", "widgets-dead_1", {EPOCH: str(2**50)}))
    await second.start()
    await until(lambda: settled(server, second))
    assert second.ring["epoch"] > 2**50


@pytest.mark.behaviour("C-135")
async def test_replica_keeps_its_slots_when_all_connections_become_silent(
    server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    times = LeaderElectionOptions(lease_duration=10, renew_deadline=8.0, retry_period=0.5)
    async with SilentLink(server.url).started() as link:
        replica = Replica(server, "a", options=times)
        await replica.transport.aclose()
        replica.transport = replica.manager.client = Link(HttpTransport(link.url))
        async with replica:
            await until(lambda: settled(server, replica))
            session = replica.manager._session
            assert session is not None
            assert session.replica is not None
            membership = session.replica.membership
            changes: list[tuple[set[int], ...]] = []

            def note(*change: set[int]) -> None:
                changes.append(change)

            membership._on_change = note

            async def renewed() -> None:
                version = server.get("leases", "widgets-a", "default")["metadata"]["resourceVersion"]
                reads = replica.looks()
                await until(lambda: replica.looks() > reads + 3)
                await until(
                    lambda: server.get("leases", "widgets-a", "default")["metadata"]["resourceVersion"] != version
                )

            for _ in range(2):
                await asyncio.gather(*(fetch(replica.transport, "/version") for _ in range(8)))  # they are idle then
                link.silence()
                await renewed()
            assert len(replica.ring["mine"]) == 16
            assert changes == []
