"""Aggregated cluster roles, as the controller of kube-controller-manager maintains them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.resources.label_selectors import LabelSelector
from aioinformer.testing.api.encoding import decode
from aioinformer.testing.ownership.managers import Manager
from aioinformer.testing.state.object_store import CLUSTER_ROLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from aioinformer.testing.state.cluster import Cluster
    from aioinformer.testing.state.storage import Record

_CONTROLLER = Manager("clusterrole-aggregation-controller", "Apply", "rbac.authorization.k8s.io/v1")


def aggregate_roles(cluster: Cluster) -> None:
    """Set the rules of each aggregated role: those of the selected roles, in the order of their names, each rule
    once.
    """
    served = cluster.store.registry.find_collection(CLUSTER_ROLES)
    assert served is not None
    records = cluster.store.collection(served).records()
    for record in records:
        if b'"aggregationRule"' not in record.body:
            continue
        role = decode(record.body)
        selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors")
        if selectors is None:
            continue
        rules: list[Any] = []
        for other in _selected(records, selectors, record):
            for rule in decode(other.body).get("rules") or ():
                if rule not in rules:
                    rules.append(rule)
        if rules != (role.get("rules") or []):
            config: dict[str, Any] = {"apiVersion": _CONTROLLER.api_version, "kind": "ClusterRole"}
            config |= {"metadata": {"name": record.name}} | ({"rules": rules} if rules else {})
            cluster.writer.apply(served, "", record.name, config, _CONTROLLER, force=True)


def _selected(records: Sequence[Record], selectors: Sequence[Mapping[str, Any]], total: Record) -> Iterator[Record]:
    for selector in selectors:
        chosen = LabelSelector.from_dict(selector)
        yield from (record for record in records if record is not total and chosen.matches(record.labels))
