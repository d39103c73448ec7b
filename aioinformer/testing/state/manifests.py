"""Manifests on disk: loaded as people write them, and written so that another server can continue from them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aioinformer.errors import UsageError
from aioinformer.files import replace_file
from aioinformer.resources.manifests import load_manifests as read_manifests
from aioinformer.testing.api.encoding import decode
from aioinformer.testing.api.statuses import StatusError
from aioinformer.testing.schemas.definitions import is_established
from aioinformer.testing.schemas.field_checks import check_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from aioinformer.testing.api.served import Served
    from aioinformer.testing.state.cluster import Cluster

_CRD = "CustomResourceDefinition"
# Objects that others need are loaded first, wherever they stand.
_RANKS = {_CRD: 0, "Namespace": 1}
_STATE = ".state.json"
_HEAD = b'{"apiVersion":"v1","kind":"List","items":[\n'
_BETWEEN = b",\n"
_END = b"\n]}\n"


def _saved_version(path: Path) -> int:
    """Return the version of the server whose state a folder contains; 0 for other manifests.

    Raises:
        UsageError: the file with the version is malformed.
    """
    state = path / _STATE
    if not state.is_file():
        return 0
    try:
        return int(json.loads(state.read_bytes())["resourceVersion"])
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{state}: resourceVersion is not there, or no number; remove the file") from error


def write_manifests(folder: Path, collections: Iterable[tuple[str, Iterable[bytes]]], version: int) -> None:
    """Write a file for each resource that has objects, such as `deployments.apps.json`; kubectl accepts them.

    Files of resources without objects are removed. Only their owner can read the files: they contain Secrets.

    Args:
        folder: created if needed.

    Raises:
        UsageError: the folder cannot be written to.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, bodies in collections:
            path = folder / f"{name}.json"
            content = _BETWEEN.join(bodies)
            if content:
                replace_file(path, [_HEAD, content, _END], private=True)
            else:
                path.unlink(missing_ok=True)
        head = json.dumps({"resourceVersion": str(version)}).encode()
        replace_file(folder / _STATE, [head, b"\n"], private=True)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error.strerror or error}") from error


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
    version = _saved_version(path) if path.is_dir() else 0
    if version:
        _restore(cluster, objects, version)
    else:
        for obj in objects:
            _create(cluster, obj)
    return len(objects)


def _restore(cluster: Cluster, objects: Sequence[dict[str, Any]], version: int) -> None:
    for obj in objects:
        if obj["kind"] == _CRD and is_established(obj):
            cluster.store.registry.define(obj)
    for obj in sorted(objects, key=lambda obj: int(obj["metadata"].get("resourceVersion") or 0)):
        cluster.load(_served(cluster, obj), obj, version=int(obj["metadata"].get("resourceVersion") or 0) or None)
    cluster.store.storage.version = max(cluster.store.storage.version, version)
    cluster.store.storage.compact()


def _create(cluster: Cluster, obj: dict[str, Any]) -> None:
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
