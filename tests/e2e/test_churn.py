"""What is told while the API server is killed and its history compacted is true, and leads to the truth."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.e2e.churn import Churn
from tests.e2e.witnesses import CommandLine, Library

if TYPE_CHECKING:
    from tests.e2e.account import Account
    from tests.e2e.churn import Written
    from tests.e2e.real_cluster import Operator, RealCluster
    from tests.e2e.witnesses import Witness


@pytest.mark.parametrize("witness_class", [CommandLine, Library])
@pytest.mark.conformance("ARC-02", "ARC-03")
async def test_what_is_told_through_a_kill_and_a_compaction_is_true_and_complete(
    cluster: RealCluster, operator: Operator, witness_class: type[Witness]
) -> None:
    churn = Churn(operator, f"churn-{witness_class.__name__.lower()}", Random(36))
    await churn.prepare()
    await churn.write(20)
    async with witness_class(cluster.kubeconfig) as witness:
        await witness.until(lambda account: account.is_synced)
        before = await churn.write(150)
        await witness.until_told(await operator.configmaps())
        assert untold(before, witness.account) == []

        async with churn.going_on():
            await churn.acknowledged(20)
            await operator.act("kill-apiserver")
            await operator.act("start-apiserver")
            await churn.acknowledged(20)
            await operator.act("compact")
            await churn.acknowledged(20)
        await witness.until_told(await operator.configmaps())

        after = await churn.write(150)
        await witness.until_told(await operator.configmaps())
        assert untold(after, witness.account) == []

        stored = await witness.stop()
    assert stored == await operator.configmaps()
    assert witness.account.lies == []


def untold(written: list[Written], account: Account) -> list[Written]:
    """The acknowledged writes that were not told, though nothing but a relist may skip one."""
    return [
        each
        for each in written
        if each not in account.told and (each.resource_version or (each.key, each.uid) not in account.deleted)
    ]
