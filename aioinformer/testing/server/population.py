"""Realistic pods in large numbers, for tests and benchmarks."""

from __future__ import annotations

import asyncio
import re
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Any
from zlib import crc32

from aioinformer.testing.api.encoding import decode, encode_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.server.api_server import ApiServer

_AT_ONCE = 20
_PODS_IN_NAMESPACE = 500
_APPS = 97
_STARTED = "2026-01-01T00:00:00Z"
_PLACEHOLDER = re.compile("<([a-z]+)>")


async def populate(server: ApiServer, pods: int, *, namespaces: int = 0, nodes: int = 50) -> None:
    """Fill a server with running pods of about 5.8 KB each, in small steps.

    Args:
        server: to fill; nodes, namespaces and the owners of the pods are created, too.
        pods: how many.
        namespaces: how many the pods are spread over; 0 for one per 500 pods.
        nodes: how many they run on.
    """
    namespaces = namespaces or -(-pods // _PODS_IN_NAMESPACE)
    names = [f"team-{index:03d}" for index in range(namespaces)]
    server.load("namespaces", ({"metadata": {"name": name}, "status": {"phase": "Active"}} for name in names))
    server.load("nodes", (_node(index) for index in range(nodes)))
    # The garbage collector would delete pods without their owner.
    owners = sorted({(names[index % namespaces], index % _APPS) for index in range(pods)})
    await _load(server, "replicasets.apps", (_replica_set(namespace, app) for namespace, app in owners))
    await _load(server, "pods", make_pods(pods, names, nodes))


async def _load(server: ApiServer, resource: str, objects: Iterator[dict[str, Any]]) -> None:
    while batch := list(islice(objects, _AT_ONCE)):
        server.load(resource, batch)
        await asyncio.sleep(0)


def make_pods(count: int, namespaces: list[str], nodes: int = 50) -> Iterator[dict[str, Any]]:
    """Yield running pods as a server lists them: managed fields, conditions, environment, volumes.

    Args:
        count: how many.
        namespaces: the pods are spread over these in turn; at least one.
        nodes: how many nodes they run on in turn.
    """
    for index in range(count):
        yield make_pod(namespaces[index % len(namespaces)], index, nodes)


def make_pod(namespace: str, index: int, nodes: int = 50) -> dict[str, Any]:
    """Return one running pod; the same arguments give the same pod."""
    owner = _replica_set(namespace, index % _APPS)["metadata"]
    labels = owner["labels"]
    values = {
        "namespace": namespace,
        "pod": f"{owner['name']}-{index:05d}",
        "owner": owner["name"],
        "uid": owner["uid"],
        "app": labels["app.kubernetes.io/name"],
        "revision": labels["pod-template-hash"],
        "tier": labels["tier"],
        "checksum": f"{index * 2654435761 % 16**16:016x}" * 4,
        "digest": f"{index % _APPS * 11400714819323198485 % 16**16:016x}" * 4,
        "address": f"10.{index >> 16 & 255}.{index >> 8 & 255}.{index & 255}",
        "host": f"192.168.{index % 4}.{index % 50 + 10}",
        "node": f"node-{index % nodes:03d}",
        "version": f"1.{index % 40}.0",
        "shard": f"--shard={index % 16}",
    }
    # Every second piece is the name of a placeholder.
    pieces = [values[piece] if odd % 2 else piece for odd, piece in enumerate(_template())]
    pod: dict[str, Any] = decode("".join(pieces))
    pod["status"]["containerStatuses"][0]["restartCount"] = index % 3
    return pod


@cache
def _template() -> list[str]:
    """Return the JSON of a pod in pieces, with the names of placeholders between them."""
    text = files("aioinformer.testing").joinpath("data/pod.json").read_text("utf-8")
    return _PLACEHOLDER.split(encode_plain(decode(text)).decode())


def _replica_set(namespace: str, number: int) -> dict[str, Any]:
    """Return the owner of an application's pods in a namespace; the same arguments give the same one."""
    app, place = f"app-{number:02d}", crc32(namespace.encode())
    revision = f"{(place ^ number * 7919) % 16**9:09x}"
    labels = {
        "app.kubernetes.io/name": app,
        "app.kubernetes.io/instance": f"{app}-{namespace}",
        "app.kubernetes.io/part-of": "storefront",
        "app.kubernetes.io/managed-by": "Helm",
        "pod-template-hash": revision,
        "tier": ("frontend", "backend", "worker")[number % 3],
    }
    return {
        "metadata": {
            "name": f"{app}-{revision}",
            "namespace": namespace,
            "uid": f"{place:08x}-0000-4000-8000-{number:012x}",
            "creationTimestamp": _STARTED,
            "labels": labels,
        },
        "spec": {
            "selector": {"matchLabels": {"pod-template-hash": revision}},
            "template": {"metadata": {"labels": labels}},
        },
    }


def _node(index: int) -> dict[str, Any]:
    capacity = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    return {
        "metadata": {"name": f"node-{index:03d}", "labels": {"kubernetes.io/hostname": f"node-{index:03d}"}},
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}],
        },
    }
