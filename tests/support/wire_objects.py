"""Short functions for objects and events as a server sends them."""

from __future__ import annotations

from typing import Any

import msgspec

from aioinformer.cache.objects.record import Record, decode_record
from aioinformer.errors import DecodeError, api_error
from aioinformer.reflector.watch_events import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED, WatchEvent


def body(name: str, version: int | str = 1, namespace: str = "ns", **more: Any) -> bytes:
    """Return the JSON of an object; its uid is derived from its name."""
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": str(version)}
    metadata.update(more.pop("metadata", {}))
    return msgspec.json.encode({"metadata": {key: value for key, value in metadata.items() if value != ""}, **more})


def record(name: str, version: int | str = 1, namespace: str = "ns", **more: Any) -> Record:
    return decode_record(body(name, version, namespace, **more))


def added(name: str, version: int | str) -> WatchEvent:
    return WatchEvent(ADDED, record(name, version))


def modified(name: str, version: int | str) -> WatchEvent:
    return WatchEvent(MODIFIED, record(name, version))


def deleted(name: str, version: int | str) -> WatchEvent:
    return WatchEvent(DELETED, record(name, version))


def bookmark(version: int | str) -> WatchEvent:
    return WatchEvent(BOOKMARK, version=str(version))


def initial_events_end(version: int | str) -> WatchEvent:
    return WatchEvent(BOOKMARK, version=str(version), initial_events_end=True)


def error_event(status: int, **details: Any) -> WatchEvent:
    return WatchEvent(ERROR, error=api_error(0, {"code": status, "reason": "Said", "details": details}))


def undecodable(name: str = "", kind: str = MODIFIED, version: int | str = "") -> WatchEvent:
    """Return an event whose object does not decode; without a name, it has no key."""
    return WatchEvent(kind, error=DecodeError("not to be read", key=f"ns/{name}" if name else "", version=str(version)))
