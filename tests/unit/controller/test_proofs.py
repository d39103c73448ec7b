"""What a run has proven about children holds for the same configuration, version, owner, and term or slot."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from aioinformer.cache.objects.record import Record, decode_record
from aioinformer.cache.objects.views import view_class
from aioinformer.controller import Controller, LeaderElection
from aioinformer.controller.proofs import Proof, Proofs, digest_of
from aioinformer.resources import ObjectName
from tests.support.managers import CONFIG_MAPS, Cluster, Runs, active_of, manager_of, settled, started

KEY = ObjectName("default", "web")


def record() -> Record:
    return decode_record(b'{"metadata":{"name":"child","namespace":"default","uid":"u","resourceVersion":"7"}}')


PROVEN = [Proof(dict, digest_of(b"{}"), CONFIG_MAPS, record()), None]


def term(token: int = 1) -> Any:
    return SimpleNamespace(token=token)


def grant(slot: int, token: int) -> Any:
    """Return the grant of a run, of which each run has its own."""
    return SimpleNamespace(slot=slot, token=token)


def test_proof_holds_for_one_class_digest_and_version() -> None:
    proof = PROVEN[0]
    assert proof is not None
    assert proof.states(dict, digest_of(b"{}"))
    assert not proof.states(dict, digest_of(b"[]"))
    assert not proof.states(SimpleNamespace, digest_of(b"{}"))
    view = view_class(CONFIG_MAPS)
    assert proof.proves(view(proof.record))
    assert not proof.proves(view(record())), "it has the same version, and was received again"
    assert not proof.proves(None)


@pytest.mark.parametrize(
    ("before", "after", "holds"),
    [
        (None, None, True),
        (term(), None, False),
        (None, term(), False),
        (term(), term(), True),
        (term(), term(2), False),
        (grant(3, 5), grant(3, 5), True),
        (grant(3, 5), grant(4, 5), False),
        (grant(3, 5), grant(3, 6), False),
    ],
)
def test_proofs_hold_within_one_term_or_tenure(before: Any, after: Any, holds: bool) -> None:
    proofs = Proofs()
    proofs.note(KEY, before, "uid", PROVEN)
    assert proofs.of(KEY, before, "uid") == tuple(PROVEN)
    assert bool(proofs.of(KEY, after, "uid")) is holds


def test_proofs_hold_for_one_owner() -> None:
    proofs = Proofs()
    proofs.note(KEY, None, "uid", PROVEN)
    assert proofs.of(KEY, None, "successor") == ()
    assert proofs.of(ObjectName("default", "other"), None, "uid") == ()
    assert proofs.of(KEY, None, ("uid", {"app": "web"})) == ()


def test_lost_slots_and_gone_owners_leave_nothing() -> None:
    proofs = Proofs()
    for slot in range(3):
        proofs.note(ObjectName("default", f"web-{slot}"), grant(slot, 1), "uid", PROVEN)
    proofs.note(KEY, None, "uid", PROVEN)
    proofs.forget_slots({0, 2})
    assert len(proofs) == 2
    proofs.forget(KEY)
    assert len(proofs) == 1
    proofs.note(ObjectName("default", "web-1"), grant(1, 1), "uid", [None, None])
    assert len(proofs) == 0


async def test_controller_forgets_proofs_with_its_term() -> None:
    server = Cluster("a")
    controller = Controller("it", CONFIG_MAPS, Runs())
    async with manager_of(server, controller, leader_election=LeaderElection("it")) as manager:
        await started()
        proofs = active_of(manager).proofs
        proofs.note(KEY, term(), "uid", PROVEN)
        server.leases.take("another")
        await asyncio.sleep(30)  # the renewal fails
        assert len(proofs) == 0


async def test_controller_forgets_proofs_of_lost_slots_and_gone_objects() -> None:
    server = Cluster("a")
    async with manager_of(server, Controller("it", CONFIG_MAPS, Runs())) as manager:
        await started()
        active = active_of(manager)
        active.proofs.note(KEY, grant(3, 1), "uid", PROVEN)
        active.proofs.note(ObjectName("default", "other"), grant(4, 1), "uid", PROVEN)
        active.proofs.note(ObjectName("default", "a"), None, "uid", PROVEN)
        active.change_share(set(), {3}, {4})
        assert len(active.proofs) == 1
        server.remove("configmaps", "default/a")
        await settled()
        await asyncio.sleep(1)
        assert len(active.proofs) == 0
