"""Streams pods in memory, in chunks of the test's choice."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from aioinformer import Resource
    from aioinformer.reflector import ListOptions

_END = {"k8s.io/initial-events-end": "true"}


class Stream:
    """A lister-watcher with one response: a watch that never ends."""

    status = 200
    headers: Mapping[str, str] = {}

    def __init__(self, resource: Resource[Any]) -> None:
        self.resource = resource
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue()

    def feed(self, chunk: bytes) -> None:
        """Deliver the next chunk."""
        self._chunks.put_nowait(chunk)

    async def request(self, options: ListOptions) -> Stream:
        return self

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            yield await self._chunks.get()

    async def close(self) -> None: ...


def added(numbers: Iterable[int]) -> bytes:
    """Return initial events and the bookmark that ends them."""
    pods = [_line("ADDED", _pod(number, number + 1)) for number in numbers]
    end = {"kind": "Pod", "metadata": {"resourceVersion": "1000", "annotations": _END}}
    return b"".join([*pods, _line("BOOKMARK", end)])


def modified(version: int, number: int) -> bytes:
    """Return the event of a new version of a pod."""
    return _line("MODIFIED", _pod(number, 1001 + version))


def _pod(number: int, version: int) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": f"pod-{number}",
            "namespace": f"team-{number % 5}",
            "uid": f"uid-{number}",
            "resourceVersion": str(version),
            "labels": {"app": "web"},
            "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}],
        },
        "spec": {"nodeName": f"node-{number % 7}", "containers": [{"name": "app", "image": "web:1"}]},
        "status": {"phase": "Running"},
    }


def _line(kind: str, obj: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": obj}, separators=(",", ":")).encode() + b"\n"
