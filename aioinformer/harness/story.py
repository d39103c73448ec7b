"""What happened in a run, for people who look for a bug; objects, events and differences as short texts."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.harness.loop import PROCESS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_VOLATILE = ("resourceVersion", "managedFields", "generation", "uid", "creationTimestamp", "deletionTimestamp")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_UID = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}")
_PATH = re.compile(r"/apis?/(?:[^/]+/)?v[^/]+/(?:namespaces/([^/]+)/(?=[^/]+))?([^/]+)(?:/([^/]+))?(?:/(.+))?")
_LAST = 80
_LONGEST = 120


class Story(logging.Handler):
    """The steps of one run, and the warnings that are logged meanwhile. `str(story)` is its end."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(logging.WARNING)
        self._clock = clock
        self._begin = clock()
        self._lines: list[tuple[float, str, str, bytes]] = []

    def tell(self, actor: str, text: str, event: bytes = b"") -> None:
        """Add a line. The event of a watch is decoded only if the story is shown."""
        self._lines.append((self._clock() - self._begin, actor, text, event))

    def emit(self, record: logging.LogRecord) -> None:
        error = f": {record.exc_info[1]!r}" if record.exc_info else ""
        self.tell(PROCESS.get(), f"logs: {record.getMessage()}{error}")

    def __str__(self) -> str:
        shown = [f"{at:9.3f} s  {by:<17} {text}{_event_text(event)}" for at, by, text, event in self._lines[-_LAST:]]
        left_out = len(self._lines) - len(shown)
        return "\n".join([f"… {left_out} earlier lines", *shown] if left_out else shown)


def _event_text(line: bytes) -> str:
    try:
        event = msgspec.json.decode(line)
        metadata = event["object"].get("metadata") or {}
        return f" {event['type']} {key_of(metadata)} (version {metadata.get('resourceVersion')})"
    except (msgspec.DecodeError, LookupError, TypeError, AttributeError):
        return f" {line[:_LONGEST].decode(errors='replace')}".rstrip()


def key_of(metadata: Mapping[str, Any]) -> str:
    """Return "namespace/name", or "name" without a namespace."""
    return "/".join(filter(None, (metadata.get("namespace"), metadata.get("name") or metadata.get("generateName"))))


def parts_of(path: str) -> tuple[str, str]:
    """Return the resource in the path of a request, and the rest: ("widgets", "default/a status")."""
    found = _PATH.fullmatch(path)
    if found is None:
        return path, ""
    namespace, plural, name, subresource = found.groups()
    return plural, " ".join(filter(None, ("/".join(filter(None, (namespace, name))), subresource)))


def content(obj: Any, *, normal: bool = False) -> Any:
    """Return an object without what the server sets on every write; if normal, without times and uids, too."""
    if isinstance(obj, dict):
        if isinstance(metadata := obj.get("metadata"), dict):
            kept = {name: value for name, value in metadata.items() if name not in _VOLATILE}
            obj = {**obj, "metadata": {**kept, "deleted": True} if "deletionTimestamp" in metadata else kept}
        return {name: content(value, normal=normal) for name, value in obj.items()}
    if isinstance(obj, list):
        return [content(item, normal=normal) for item in obj]
    if normal and isinstance(obj, str):
        if _TIME.fullmatch(obj):
            return "<time>"
        if _UID.fullmatch(obj):
            return "<uid>"
    return obj


def differences(old: Any, new: Any, path: str = "") -> list[str]:
    """Return the fields that differ, with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        names = [*old, *(name for name in new if name not in old)]
        return [text for name in names for text in differences(old.get(name), new.get(name), f"{path}.{name}")]
    if old == new:
        return []
    was, now = ("none" if value is None else msgspec.json.encode(value).decode() for value in (old, new))
    return [f"{path.lstrip('.')}: {was[:_LONGEST]} -> {now[:_LONGEST]}"]
