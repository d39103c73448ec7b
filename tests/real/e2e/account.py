"""Replay the notifications of a handler: compute the resulting objects, and check consistency.

The notifications of each key must form a sequence: an add, updates that start from the last state, a delete, perhaps an
add again, with increasing resourceVersions. Anything else is a violation, and is kept for the test.
"""

from __future__ import annotations

from typing import Any

from tests.support.real_cluster import Version


class Account:
    """Replays notifications in the format of `aioinformer watch -o jsonl`.

    Attributes:
        objects: the objects that result from the notifications.
        delivered: key, uid and resourceVersion of all adds and updates.
        deleted: key and uid of all deletes.
        violations: inconsistent notifications.
        is_synced: whether `synced` was received.
    """

    def __init__(self) -> None:
        self.objects: dict[str, Version] = {}
        self.delivered: set[tuple[str, str, str]] = set()
        self.deleted: set[tuple[str, str]] = set()
        self.violations: list[str] = []
        self.is_synced = False
        self._last: dict[str, int] = {}

    def take(self, line: dict[str, Any]) -> None:
        """Replay one notification."""
        match line["event"]:
            case "synced":
                self._expect(not self.is_synced, line, "synced twice")
                self.is_synced = True
            case "add":
                self._expect(line["key"] not in self.objects, line, "add of a present object")
                self._put(line)
            case "update":
                current = self._current(line).resource_version
                self._expect(current == line["oldResourceVersion"], line, "update from another state than the last")
                self._put(line)
            case "delete":
                self._delete(line)

    def _put(self, line: dict[str, Any]) -> None:
        key, number = line["key"], int(line["resourceVersion"])
        self._expect(number > self._last.get(key, 0), line, "not newer than the last notification")
        self._last[key] = number
        self.objects[key] = Version(line["uid"], line["resourceVersion"])
        self.delivered.add((key, *self.objects[key]))

    def _delete(self, line: dict[str, Any]) -> None:
        key, number, last = line["key"], int(line["resourceVersion"]), self._current(line)
        self._expect(line["uid"] == last.uid, line, "delete of another object")
        if line["tombstone"]:
            self._expect(line["resourceVersion"] == last.resource_version, line, "not the last known version")
        self._expect(number >= self._last.get(key, 0), line, "older than the last notification")
        self._last[key] = number
        self.objects.pop(key, None)
        self.deleted.add((key, line["uid"]))

    def _current(self, line: dict[str, Any]) -> Version:
        return self.objects.get(line["key"], Version("", ""))

    def _expect(self, holds: bool, line: dict[str, Any], violation: str) -> None:
        if not holds:
            self.violations.append(f"{violation}: {line}")
