"""A handler that holds what it is told against what can be true."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

from aioinformer.resources.keys import DeletedFinalStateUnknown, meta_namespace_key_func


class Witness:
    """Keeps account of each key.

    Attributes:
        present: key -> uid and version that were told last, of what was not told as deleted since.
        deletions: how often each key was told as deleted.
        lies: what cannot be true: the addition of what is there, the deletion of what is not, an update from what was
            not told or to what was told already, a version that goes back.
        versions_go_back: the server was restored from a backup: versions prove nothing.
    """

    def __init__(self) -> None:
        self.versions_go_back = False
        self.present: dict[str, tuple[str, str]] = {}
        self.deletions: Counter[str] = Counter()
        self.lies: list[str] = []
        self._waiting: dict[tuple[str, str], asyncio.Event] = {}

    def on_add(self, obj: Any) -> None:
        key, new = _key(obj), incarnation(obj)
        if key in self.present:
            self.lies.append(f"{key} is added while it is there")
        self._tell(key, new)

    def on_update(self, old: Any, new: Any) -> None:
        key, before, after = _key(new), incarnation(old), incarnation(new)
        if self.present.get(key) != before:
            self.lies.append(f"{key} is updated from {before}, but what was told is {self.present.get(key)}")
        if before == after and not self.versions_go_back:
            self.lies.append(f"{key} is updated from {before} to itself")
        if int(after[1]) < int(before[1]) and not self.versions_go_back:
            self.lies.append(f"{key} is updated from {before} back to {after}")
        self._tell(key, after)

    def on_delete(self, obj: Any) -> None:
        key = obj.key if isinstance(obj, DeletedFinalStateUnknown) else _key(obj)
        if self.present.pop(key, None) is None:
            self.lies.append(f"{key} is deleted while it is not there")
        self.deletions[key] += 1

    def _tell(self, key: str, incarnation: tuple[str, str]) -> None:
        self.present[key] = incarnation
        if (waiting := self._waiting.get((key, incarnation[1]))) is not None:
            waiting.set()

    async def was_told(self, key: str, version: str) -> None:
        """Returns once it was told of this version of an object."""
        told = self.present.get(key)
        if told is None or told[1] != version:
            await self._waiting.setdefault((key, version), asyncio.Event()).wait()


def _key(obj: Any) -> str:
    return meta_namespace_key_func(obj)


def incarnation(obj: Any) -> tuple[str, str]:
    """Uid and version of an object of any kind that informers hand out."""
    if isinstance(obj, Mapping):
        return obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]
    return obj.metadata.uid, obj.metadata.resource_version


def truth(objects: list[dict[str, Any]]) -> Mapping[str, tuple[str, str]]:
    """What there is, in the same form."""
    metadata = [obj["metadata"] for obj in objects]
    return {f"{each['namespace']}/{each['name']}": (each["uid"], each["resourceVersion"]) for each in metadata}
