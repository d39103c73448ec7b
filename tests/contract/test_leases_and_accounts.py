"""Leases and ServiceAccounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.conversation import MERGE_PATCH

if TYPE_CHECKING:
    from tests.contract.conversation import Conversation

LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
ACCOUNTS = "/api/v1/namespaces/{ns}/serviceaccounts"
HELD = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.000006Z"}


async def test_lease_is_acquired_renewed_and_transferred(api: Conversation) -> None:
    made = await api("POST", LEASES, {"metadata": {"name": "a"}, "spec": HELD})
    renewed = made.body | {"spec": HELD | {"holderIdentity": "b", "leaseTransitions": 1}}
    await api("PUT", f"{LEASES}/a", renewed)
    answer = await api("PUT", f"{LEASES}/a", renewed)
    assert answer.status == 409


WRONG_LEASES: dict[str, Any] = {
    "duration": {"leaseDurationSeconds": 0},
    "transitions": {"leaseTransitions": -1},
    "time": {"renewTime": "yesterday"},
    "text_for_duration": {"leaseDurationSeconds": "15"},
}


@pytest.mark.parametrize("case", WRONG_LEASES)
async def test_lease_is_validated(api: Conversation, case: str) -> None:
    answer = await api("POST", LEASES, {"metadata": {"name": "a"}, "spec": HELD | WRONG_LEASES[case]})
    assert answer.status in (400, 422)


async def test_service_account_is_created_and_patched(api: Conversation) -> None:
    await api("POST", ACCOUNTS, {"metadata": {"name": "a"}})
    patch = {"automountServiceAccountToken": False, "imagePullSecrets": [{"name": "s"}]}
    answer = await api("PATCH", f"{ACCOUNTS}/a", patch, content_type=MERGE_PATCH)
    assert answer.body["automountServiceAccountToken"] is False
