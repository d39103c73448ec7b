"""Notifications are consistent and complete while the API server is killed and its history compacted."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.real.e2e.churn import Churn
from tests.real.e2e.witnesses import CommandLine, Library
from tests.support.link import Link
from tests.support.real_cluster import Version, version_of

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from tests.real.e2e.churn import Written
    from tests.real.e2e.witnesses import Account, Witness
    from tests.support.real_cluster import Operator, RealCluster

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
        await witness.until_matching(await operator.configmaps())
        assert missing(before, witness.account) == []

        async with churn.running():
            await churn.wait_for_acknowledged(20)
            await operator.act("kill-apiserver")
            await operator.act("start-apiserver")
            await churn.wait_for_acknowledged(20)
            await operator.act("compact")
            await churn.wait_for_acknowledged(20)
        await witness.until_matching(await operator.configmaps())

        after = await churn.write(150)
        await witness.until_matching(await operator.configmaps())
        assert missing(after, witness.account) == []

        stored = await witness.stop()
    assert stored == await operator.configmaps()
    assert witness.account.violations == []


@WITNESSES
@pytest.mark.conformance("ARC-03", "ARC-07")
async def test_missed_changes_are_delivered_as_a_difference(
    cluster: RealCluster, operator: Operator, tmp_path: Path, witness_class: type[Witness]
) -> None:
    churn = Churn(operator, f"missed-{witness_class.__name__.lower()}", Random(410))
    await churn.prepare()
    path = f"/api/v1/namespaces/{churn.namespace}/configmaps"
    created = {
        name: (await operator.create(path, {"metadata": {"name": name}}))["metadata"]
        for name in ("unchanged", "updated", "deleted", "recreated")
    }
    await churn.write(40)
    async with Link(cluster, tmp_path) as link, witness_class(link.kubeconfig) as witness:
        await witness.until_matching(await operator.configmaps())

        await link.cut()
        await churn.write(40)
        await operator.request("PUT", f"{path}/updated", {"metadata": {"name": "updated"}, "data": {"a": "b"}})
        for name in ("deleted", "recreated"):
            await operator.request("DELETE", f"{path}/{name}")
        recreated = (await operator.create(path, {"metadata": {"name": "recreated"}}))["metadata"]
        # Remove the history since the cut from the memory of the server and from etcd.
        await operator.act("restart-apiserver")
        await operator.act("compact")
        await link.restore()
        truth = await operator.configmaps()
        await witness.until_matching(truth)
        delivered = {name: [_brief(line) for line in witness.about(f"{churn.namespace}/{name}")] for name in created}

        stored = await witness.stop()
    first = {name: ("add", version_of(metadata), True) for name, metadata in created.items()}
    assert delivered == {
        "unchanged": [first["unchanged"]],
        "updated": [first["updated"], ("update", truth[f"{churn.namespace}/updated"], None)],
        "deleted": [first["deleted"], ("delete", version_of(created["deleted"]), True)],
        "recreated": [first["recreated"], ("update", version_of(recreated), None)],
    }
    assert stored == await operator.configmaps()
    assert witness.account.violations == []


def _brief(line: dict[str, Any]) -> tuple[str, Version, bool | None]:
    """Return the event, the version, and whether an add was initial or a delete is a tombstone."""
    flag = line.get("initial", line.get("tombstone"))
    return line["event"], Version(line["uid"], line["resourceVersion"]), flag


def missing(written: list[Written], account: Account) -> list[Written]:
    """Return the acknowledged writes without a notification; only a relist may skip some."""
    return [
        each
        for each in written
        if each not in account.delivered and (each.resource_version or (each.key, each.uid) not in account.deleted)
    ]
