"""Load objects from manifests, saved states and databases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.errors import UsageError
from aioinformer.testing.api.encoding import decode
from aioinformer.testing.api.statuses import StatusError
from aioinformer.testing.schemas.definitions import is_established
from aioinformer.testing.schemas.field_checks import check_object
from aioinformer.testing.state.persistence.manifests import read_manifests, saved_version

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.cluster import Cluster
    from aioinformer.testing.state.persistence.durable import Database

_CRD = "CustomResourceDefinition"
# Objects that others need are loaded first, wherever they stand.
_RANKS = {_CRD: 0, "Namespace": 1}


def load_manifests(cluster: Cluster, path: Path) -> int:
    """Load the objects of a file or a folder.

    A saved state is restored unchanged, versions and uids included, and the server continues from its version. Other
    objects are created or replaced as a client would do it, with their status; missing namespaces are created. Required
    fields may be missing.

    Returns:
        The number of objects.

    Raises:
        UsageError: an object cannot be read, is not served, or is refused; the message names it.
    """
    objects = sorted(read_manifests(path), key=lambda obj: _RANKS.get(obj["kind"], 2))
    version = saved_version(path) if path.is_dir() else 0
    if version:
        _restore(cluster, objects, version)
    else:
        for obj in objects:
            _write(cluster, obj)
    return len(objects)


def load_database(cluster: Cluster, database: Database) -> None:
    """Load the contents of a database."""
    if database.version:
        _restore(cluster, [decode(body) for _, body in database.bodies()], database.version)


def _restore(cluster: Cluster, objects: list[dict[str, Any]], version: int) -> None:
    for obj in objects:
        if obj["kind"] == _CRD and is_established(obj):
            cluster.store.registry.define(obj)
    for obj in sorted(objects, key=lambda obj: int(obj["metadata"].get("resourceVersion") or 0)):
        cluster.load(_served(cluster, obj), obj, version=int(obj["metadata"].get("resourceVersion") or 0) or None)
    cluster.store.storage.version = max(cluster.store.storage.version, version)
    cluster.store.storage.compact()


def _write(cluster: Cluster, obj: dict[str, Any]) -> None:
    served = _served(cluster, obj)
    namespace = ""
    if served.resource.namespaced:
        namespace = obj["metadata"].get("namespace") or "default"
        _make_namespace(cluster, namespace)
    name = str(obj["metadata"].get("name") or "")
    obj["metadata"].pop("resourceVersion", None)
    try:
        check_object(served, obj, "Ignore")
        status = obj.get("status")
        if cluster.store.collection(served).get(f"{namespace}/{name}" if namespace else name) is None:
            stored = decode(cluster.writer.create(served, namespace, obj, whole=False))
        else:
            stored = decode(cluster.writer.update(served, namespace, name, obj, whole=False))
        if status is not None and "status" in served.subresources and obj["kind"] != _CRD:
            changed = stored | {"status": status}
            cluster.writer.update(served, namespace, stored["metadata"]["name"], changed, subresource="status")
    except StatusError as error:
        raise UsageError(f"{served.resource.kind} {namespace}/{name} is refused: {error.message}") from error


def _make_namespace(cluster: Cluster, name: str) -> None:
    namespaces = cluster.store.registry.find("", "v1", "namespaces")
    assert namespaces is not None
    if cluster.store.collection(namespaces).get(name) is None:
        cluster.writer.create(namespaces, "", {"metadata": {"name": name}})


def _served(cluster: Cluster, obj: dict[str, Any]) -> Served:
    found = cluster.store.registry.find_kind(obj["apiVersion"], obj["kind"])
    if found is None:
        raise UsageError(
            f"{obj['kind']} of {obj['apiVersion']} is not served; put its CustomResourceDefinition beside it"
        )
    return found


def all_bodies(cluster: Cluster) -> Iterable[tuple[str, list[bytes]]]:
    """Return all resources with the bodies of their objects."""
    for name, collection in cluster.store.storage.items():
        yield name, [record.body for record in collection.records()]
