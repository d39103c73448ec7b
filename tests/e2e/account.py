"""What a handler was told, replayed: where it leads, and whether it can be true.

For each key, notifications must form one story: an add, updates that start where the last one ended, a delete, and
perhaps an add again, with versions that only grow. Whatever does not fit is a lie, and is kept for the test to show.
"""

from __future__ import annotations

from typing import Any

from tests.e2e.real_cluster import Version


class Account:
    """Takes notifications in the form in which `aioinformer watch -o jsonl` prints them.

    Attributes:
        objects: what must be in the cache, according to what was told.
        told: key, uid and version of all that was added or updated.
        deleted: key and uid of all that was deleted.
        lies: what cannot be true.
        is_synced: whether the end of the initial list was told.
    """

    def __init__(self) -> None:
        self.objects: dict[str, Version] = {}
        self.told: set[tuple[str, str, str]] = set()
        self.deleted: set[tuple[str, str]] = set()
        self.lies: list[str] = []
        self.is_synced = False
        self._last: dict[str, int] = {}

    def take(self, line: dict[str, Any]) -> None:
        """One notification more."""
        match line["event"]:
            case "synced":
                self._expect(not self.is_synced, line, "synced twice")
                self.is_synced = True
            case "add":
                self._expect(line["key"] not in self.objects, line, "is there already")
                self._become(line)
            case "update":
                self._expect(
                    self._current(line).resource_version == line["oldResourceVersion"], line, "starts elsewhere"
                )
                self._become(line)
            case "delete":
                self._delete(line)

    def _become(self, line: dict[str, Any]) -> None:
        key, number = line["key"], int(line["resourceVersion"])
        self._expect(number > self._last.get(key, 0), line, "is not newer than what was told before")
        self._last[key] = number
        self.objects[key] = Version(line["uid"], line["resourceVersion"])
        self.told.add((key, *self.objects[key]))

    def _delete(self, line: dict[str, Any]) -> None:
        key, number, last = line["key"], int(line["resourceVersion"]), self._current(line)
        self._expect(line["uid"] == last.uid, line, "is another object than the one that was told")
        if line["tombstone"]:
            self._expect(line["resourceVersion"] == last.resource_version, line, "is not the last known version")
        self._expect(number >= self._last.get(key, 0), line, "is older than what was told before")
        self._last[key] = number
        self.objects.pop(key, None)
        self.deleted.add((key, line["uid"]))

    def _current(self, line: dict[str, Any]) -> Version:
        return self.objects.get(line["key"], Version("", ""))

    def _expect(self, truth: bool, line: dict[str, Any], what: str) -> None:
        if not truth:
            self.lies.append(f"{what}: {line}")
