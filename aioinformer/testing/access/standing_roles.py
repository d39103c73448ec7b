"""The roles and bindings that every cluster has from the start."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from aioinformer.testing.api.encoding import decode, encode_plain
from aioinformer.testing.kinds.rights import RIGHTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.testing.state.cluster import Cluster


def create_standing_roles(cluster: Cluster) -> None:
    """Stores those that are missing; what an earlier run has changed stays as it is."""
    for plural, objects in _recorded().items():
        served = cluster.ledger.registry.find(RIGHTS, "v1", plural)
        assert served is not None
        for obj in objects:
            metadata = obj["metadata"]
            if cluster.ledger.find(served, metadata.get("namespace", ""), metadata["name"]) is None:
                cluster.load(served, decode(encode_plain(obj)))


@cache
def _recorded() -> Mapping[str, list[dict[str, Any]]]:
    data = files("aioinformer.testing").joinpath("data", "roles.json").read_bytes()
    recorded: Mapping[str, list[dict[str, Any]]] = decode(data)
    return recorded
