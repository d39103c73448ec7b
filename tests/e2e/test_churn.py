"""What is told while the API server is killed and its history compacted is true, and leads to the truth."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.e2e.churn import Churn
from tests.e2e.link import Link
from tests.e2e.real_cluster import Version, version_of
from tests.e2e.witnesses import CommandLine, Library

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from tests.e2e.account import Account
    from tests.e2e.churn import Written
    from tests.e2e.real_cluster import Operator, RealCluster
    from tests.e2e.witnesses import Witness

WITNESSES = pytest.mark.parametrize("witness_class", [CommandLine, Library])


@WITNESSES
@pytest.mark.conformance("ARC-02", "ARC-05")
async def test_notifications_are_complete_through_kill_and_compaction(
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


@WITNESSES
@pytest.mark.conformance("ARC-03", "ARC-07")
async def test_missed_changes_are_delivered_as_a_difference(
    cluster: RealCluster, operator: Operator, tmp_path: Path, witness_class: type[Witness]
) -> None:
    churn = Churn(operator, f"missed-{witness_class.__name__.lower()}", Random(410))
    await churn.prepare()
    path = f"/api/v1/namespaces/{churn.namespace}/configmaps"
    made = {
        name: (await operator.make(path, {"metadata": {"name": name}}))["metadata"]
        for name in ("stays", "changes", "goes", "returns")
    }
    await churn.write(40)
    async with Link(cluster, tmp_path) as link, witness_class(link.kubeconfig) as witness:
        await witness.until_told(await operator.configmaps())

        await link.cut()
        await churn.write(40)
        await operator.request("PUT", f"{path}/changes", {"metadata": {"name": "changes"}, "data": {"a": "b"}})
        for name in ("goes", "returns"):
            await operator.request("DELETE", f"{path}/{name}")
        again = (await operator.make(path, {"metadata": {"name": "returns"}}))["metadata"]
        # Neither the new server's memory nor etcd knows now what happened since the cut.
        await operator.act("restart-apiserver")
        await operator.act("compact")
        await link.restore()
        truth = await operator.configmaps()
        await witness.until_told(truth)
        told = {name: [_brief(line) for line in witness.about(f"{churn.namespace}/{name}")] for name in made}

        stored = await witness.stop()
    first = {name: ("add", version_of(metadata), True) for name, metadata in made.items()}
    assert told == {
        "stays": [first["stays"]],
        "changes": [first["changes"], ("update", truth[f"{churn.namespace}/changes"], None)],
        "goes": [first["goes"], ("delete", version_of(made["goes"]), True)],
        "returns": [first["returns"], ("update", version_of(again), None)],
    }
    assert stored == await operator.configmaps()
    assert witness.account.lies == []


def _brief(line: dict[str, Any]) -> tuple[str, Version, bool | None]:
    """What happened, to which version; whether an add was initial, or a deletion is a tombstone."""
    flag = line.get("initial", line.get("tombstone"))
    return line["event"], Version(line["uid"], line["resourceVersion"]), flag


def untold(written: list[Written], account: Account) -> list[Written]:
    """The acknowledged writes that were not told, though nothing but a relist may skip one."""
    return [
        each
        for each in written
        if each not in account.told and (each.resource_version or (each.key, each.uid) not in account.deleted)
    ]
