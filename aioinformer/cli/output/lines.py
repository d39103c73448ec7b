"""Format each notification as one line: JSON for programs, columns for people.

Scripts rely on the fields of the JSON format and their order. Nothing here does I/O or reads a clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from aioinformer.cli.output.changes import MAX_WIDTH, describe_changes
from aioinformer.logs import visible, visible_json
from aioinformer.resources.keys import DeletedFinalStateUnknown
from aioinformer.resources.keys import deletion_handling_meta_namespace_key_func as key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aioinformer.cli.output.palette import Palette

_encode = msgspec.json.Encoder().encode
_MAX_KEY_WIDTH = 52
_TIME_AND_EVENT_WIDTH = len("12:34:56.789  update  ")


class LineFormat(Protocol):
    """Formats notifications. Each method returns a line with its line feed."""

    def add(self, obj: Any, initial: bool) -> bytes: ...

    def update(self, old: Any, new: Any) -> bytes: ...

    def delete(self, obj: Any) -> bytes: ...

    def synced(self, count: int, resource_version: str) -> bytes: ...


def identity(obj: Any) -> tuple[str, str]:
    """Return the uid and resourceVersion of an object; "" for a missing one."""
    metadata = getattr(obj, "metadata", None)
    return (getattr(metadata, "uid", None) or "", getattr(metadata, "resource_version", None) or "")


class JsonFormat:
    """One JSON object for each line.

    Args:
        resource: the value of `resource` in each line; "" to leave the field out.
        whole: returns the JSON of an object for the field `object`; None to leave the field out.
    """

    def __init__(self, resource: str = "", whole: Callable[[Any], msgspec.Raw] | None = None) -> None:
        self._resource = {"resource": resource} if resource else {}
        self._whole = whole

    def add(self, obj: Any, initial: bool) -> bytes:
        return self._object_line("add", key_of(obj), obj, initial=initial)

    def update(self, old: Any, new: Any) -> bytes:
        return self._object_line("update", key_of(new), new, oldResourceVersion=identity(old)[1])

    def delete(self, obj: Any) -> bytes:
        missed = isinstance(obj, DeletedFinalStateUnknown)
        return self._object_line("delete", key_of(obj), obj.obj if missed else obj, tombstone=missed)

    def stored(self, obj: Any) -> bytes:
        """Return the line for an object in the cache at the end."""
        return self._object_line("store", key_of(obj), obj)

    def synced(self, count: int, resource_version: str) -> bytes:
        return json_line({"event": "synced", **self._resource, "count": count, "resourceVersion": resource_version})

    def _object_line(self, event: str, key: str, obj: Any, **more: Any) -> bytes:
        uid, version = identity(obj)
        line = {"event": event, **self._resource, "key": key, "uid": uid, "resourceVersion": version, **more}
        if self._whole is not None:
            line["object"] = self._whole(obj)
        return json_line(line)


class Columns:
    """The widths of the columns, shared by the formats of several resources. They grow with their contents.

    Args:
        terminal_width: fit details into a line of this width; 0 for output that is not a terminal.
    """

    def __init__(self, terminal_width: int = 0) -> None:
        self.resource = 0
        self.key = _MAX_KEY_WIDTH // 2
        self._terminal_width = terminal_width

    @property
    def details(self) -> int:
        """How wide several changes may be together."""
        return max(self._left - len(", 9 more"), 20) if self._terminal_width else MAX_WIDTH

    def has_room(self, width: int) -> bool:
        """Return whether details of this width fit into a line of the terminal."""
        return not self._terminal_width or width <= self._left

    @property
    def _left(self) -> int:
        resource = self.resource + 2 if self.resource else 0
        return self._terminal_width - _TIME_AND_EVENT_WIDTH - resource - self.key - 2

    def pad(self, resource: str, key: str) -> str:
        """Widen the columns if necessary, and return both values padded; an empty resource is left out."""
        self.key = max(self.key, min(len(key), _MAX_KEY_WIDTH))
        if not resource:
            return f"{key:<{self.key}}"
        self.resource = max(self.resource, len(resource))
        return f"{resource:<{self.resource}}  {key:<{self.key}}"


class TextFormat:
    """Columns for people: time, event, key, and what changed.

    Args:
        resource: the column before the key; "" to leave it out.
        columns: the widths, shared by the formats of all resources.
        secret: treat all objects as Secrets.
    """

    def __init__(
        self,
        palette: Palette,
        clock: Callable[[], str],
        resource: str = "",
        *,
        columns: Columns | None = None,
        secret: bool = False,
        show_secrets: bool = False,
    ) -> None:
        self._secrets = {"secret": secret, "show_secrets": show_secrets}
        self._palette = palette
        self._clock = clock
        self._resource = visible(resource)
        self._columns = columns or Columns()
        self._columns.pad(self._resource, "")

    def add(self, obj: Any, initial: bool) -> bytes:
        return self._text_line("add", key_of(obj), "" if initial else f"version {identity(obj)[1]}")

    def update(self, old: Any, new: Any) -> bytes:
        old_uid, old_version = identity(old)
        uid, version = identity(new)
        if old_uid != uid:
            details = "deleted and created again"
        elif old_version == version:
            return self._text_line("resync", key_of(new), "")
        else:
            changes = describe_changes(old.to_dict(), new.to_dict(), **self._secrets, width=self._columns.details)
            details = changes or f"version {version}"
        return self._text_line("update", key_of(new), details)

    def delete(self, obj: Any) -> bytes:
        missed = isinstance(obj, DeletedFinalStateUnknown)
        return self._text_line("delete", key_of(obj), "missed while not watching, found by a list" if missed else "")

    def synced(self, count: int, resource_version: str) -> bytes:
        objects = "1 object" if count == 1 else f"{count} objects"
        text = f"{objects} at version {resource_version}"
        key, details = ("", text) if self._columns.has_room(len(text)) else (text, "")
        return self._text_line("synced", key, details)

    def _text_line(self, event: str, key: str, details: str) -> bytes:
        palette = self._palette
        padded_event = palette.paint(event, f"{event:<6}")
        details = visible(details)
        columns = self._columns.pad(self._resource, visible(key))
        line = f"{palette.paint('time', self._clock())}  {padded_event}  {columns}"
        return f"{line}  {details}\n".encode() if details else f"{line.rstrip()}\n".encode()


def json_line(fields: Mapping[str, Any]) -> bytes:
    """Return a line of JSON, as those of `-o json` and `-o summary` are."""
    return visible_json(_encode(fields)) + b"\n"
