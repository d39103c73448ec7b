"""The default roles and bindings of every cluster.

There are many, and a server for a test lives briefly: their bodies are made once per process, and each server only
fills in uids, times and versions.
"""

from __future__ import annotations

import uuid
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from aioinformer.testing.access.rbac import RBAC_GROUP
from aioinformer.testing.api.encoding import decode, encode_object
from aioinformer.testing.state.storage import Record

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from aioinformer.testing.state.cluster import Cluster

_KINDS = {
    "clusterroles": "ClusterRole",
    "clusterrolebindings": "ClusterRoleBinding",
    "roles": "Role",
    "rolebindings": "RoleBinding",
}
_UID, _TIME, _VERSION = "<uid>", "<time>", "<version>"


def create_bootstrap_policy(cluster: Cluster, rng: random.Random) -> None:
    """Store the missing roles and bindings; those that an earlier run has changed stay.

    Args:
        cluster: the state of the server.
        rng: for uids.
    """
    store, now = cluster.store, cluster.now().encode()
    for plural, objects in _prepared().items():
        served = store.registry.find(RBAC_GROUP, "v1", plural)
        assert served is not None
        for metadata, prepared in objects:
            namespace, name = metadata.get("namespace", ""), metadata["name"]
            if store.find(served, namespace, name) is not None:
                continue
            version, uid = store.storage.next_version(), str(uuid.UUID(int=rng.getrandbits(128), version=4))
            body = prepared.replace(_UID.encode(), uid.encode(), 1).replace(_TIME.encode(), now, 1)
            body = body.replace(_VERSION.encode(), str(version).encode(), 1)
            record = Record(namespace, name, version, uid, body, metadata.get("labels") or {}, ())
            store.write(served, "ADDED", record, None, metadata)


@cache
def _prepared() -> Mapping[str, list[tuple[Mapping[str, Any], bytes]]]:
    """Return metadata and body of each, by resource."""
    data = files("aioinformer.testing").joinpath("data", "roles.json").read_bytes()
    recorded: dict[str, list[dict[str, Any]]] = decode(data)
    return {plural: [_template(_KINDS[plural], obj) for obj in objects] for plural, objects in recorded.items()}


def _template(kind: str, obj: dict[str, Any]) -> tuple[Mapping[str, Any], bytes]:
    metadata = obj["metadata"]
    standing = metadata | {"uid": _UID, "resourceVersion": _VERSION, "creationTimestamp": _TIME}
    whole = {"kind": kind, "apiVersion": f"{RBAC_GROUP}/v1", **obj, "metadata": standing}
    return metadata, encode_object(whole, custom=False)
