"""A handler that checks each notification against the previous ones."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

from aioinformer import DeletedFinalStateUnknown, meta_namespace_key_func


class Witness:
    """Records the delivered state of each object, and checks that notifications are consistent.

    Attributes:
        present: the uid and resourceVersion delivered last for each key, without deleted objects.
        deletions: how many deletes were delivered for each key.
        violations: inconsistent notifications: an add of a present object, a delete of an absent one, an update whose
            old state is not the delivered one or equals the new state, or a resourceVersion that goes back.
        versions_go_back: the server was restored from a backup, so resourceVersions may go back.
    """

    def __init__(self) -> None:
        self.versions_go_back = False
        self.present: dict[str, tuple[str, str]] = {}
        self.deletions: Counter[str] = Counter()
        self.violations: list[str] = []
        self._waiting: dict[tuple[str, str], asyncio.Event] = {}

    def on_add(self, obj: Any) -> None:
        key, new = _key(obj), incarnation(obj)
        if key in self.present:
            self.violations.append(f"add of {key}, which is present")
        self._record(key, new)

    def on_update(self, old: Any, new: Any) -> None:
        key, before, after = _key(new), incarnation(old), incarnation(new)
        if self.present.get(key) != before:
            self.violations.append(f"update of {key} from {before}, but {self.present.get(key)} was delivered last")
        if before == after and not self.versions_go_back:
            self.violations.append(f"update of {key} from {before} to the same version")
        if int(after[1]) < int(before[1]) and not self.versions_go_back:
            self.violations.append(f"update of {key} from {before} back to {after}")
        self._record(key, after)

    def on_delete(self, obj: Any) -> None:
        key = obj.key if isinstance(obj, DeletedFinalStateUnknown) else _key(obj)
        if self.present.pop(key, None) is None:
            self.violations.append(f"delete of {key}, which is absent")
        self.deletions[key] += 1

    async def wait_for_version(self, key: str, version: str) -> None:
        """Wait until this version of an object has been delivered."""
        delivered = self.present.get(key)
        if delivered is None or delivered[1] != version:
            await self._waiting.setdefault((key, version), asyncio.Event()).wait()

    def _record(self, key: str, incarnation: tuple[str, str]) -> None:
        self.present[key] = incarnation
        if (waiting := self._waiting.get((key, incarnation[1]))) is not None:
            waiting.set()


def _key(obj: Any) -> str:
    return meta_namespace_key_func(obj)


def incarnation(obj: Any) -> tuple[str, str]:
    """Return the uid and resourceVersion of an object in any form that informers deliver."""
    if isinstance(obj, Mapping):
        return obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]
    return obj.metadata.uid, obj.metadata.resource_version


def truth(objects: list[dict[str, Any]]) -> Mapping[str, tuple[str, str]]:
    """Return the state of the server in the form of `Witness.present`."""
    metadata = [obj["metadata"] for obj in objects]
    return {f"{each['namespace']}/{each['name']}": (each["uid"], each["resourceVersion"]) for each in metadata}
