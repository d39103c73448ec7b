"""Replaces what differs between two servers: times, uids, versions, tokens, generated names.

Placeholders keep what a client may rely on. A uid has the same placeholder everywhere in a conversation, and so has the
version of an object: after a write that changes nothing, the version is visibly the same. Versions of lists have one
placeholder only, because a real cluster has other writers.
"""

from __future__ import annotations

import re
from typing import Any

_UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_IP = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b(?!/)")
# Messages that contain versions which no response has.
_TOLD = re.compile(r"(resource version: )\d+(?:, current: \d+| \(\d+\))|(in (?:the precondition|record) )\(\d+\)")
_QUOTED_VERSION = re.compile(r'(\bresourceVersion\\?"?: ?\\?")\d+')
AGE = re.compile(r"\d+s|\d+y\d+d")
_AGE_IN_YAML = re.compile(r"^( *- )\d+s$", re.MULTILINE)
_HASH = re.compile(r"\b[0-9A-F]{128}\b")
_TOKEN = re.compile(r"\beyJ[\w.-]{20,}")

#: Headers that clients read. Others are present at times only.
HEADERS = (
    "Allow",
    "Cache-Control",
    "Connection",
    "Content-Encoding",
    "Content-Type",
    "Location",
    "Retry-After",
    "Vary",
    "Warning",
)
#: Headers of which only the presence can be compared.
PRESENT = ("Audit-Id",)


class Normal:
    """Replace values that differ between servers, in all responses of one conversation.

    Args:
        names: random names of the test, with their placeholders.
    """

    def __init__(self, names: dict[str, str]) -> None:
        self._names = dict(names)
        self._uids: dict[str, str] = {}
        self._versions: dict[str, str] = {}

    def value(self, value: Any) -> Any:
        """Return a JSON value with placeholders."""
        match value:
            case dict():
                return self._object(value)
            case list():
                return [self.value(each) for each in value]
            case str():
                return self.text(value)
        return value

    def text(self, text: str) -> str:
        """Return a string with placeholders."""
        for name, placeholder in self._names.items():
            text = text.replace(name, placeholder)
        text = _UID.sub(self._uid, text)
        text = _TIME.sub(lambda found: "<micro time>" if found[1] else "<time>", text)
        text = _TOLD.sub(lambda found: f"{found[1] or found[2]}<versions>", text)
        text = _QUOTED_VERSION.sub(r"\1<version>", text)
        text = _HASH.sub("<hash>", text)
        text = _AGE_IN_YAML.sub(r"\1<age>", text)
        text = _TOKEN.sub("<token>", text)
        return _IP.sub("<ip>", text)

    def headers(self, headers: Any) -> dict[str, Any]:
        """Return the compared headers by their usual names; repeated headers are a list."""
        found: dict[str, Any] = {}
        for name in HEADERS:
            if values := headers.getall(name, []):
                found[name] = self.value(values if len(values) > 1 else values[0])
        found.update((name, "<present>") for name in PRESENT if name in headers)
        return found

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        self._learn_generated_name(value.get("metadata"))
        shown: dict[str, Any] = {}
        for name, field in value.items():
            if name == "resourceVersion" and isinstance(field, str) and field not in ("", "0"):
                shown[name] = self._version(value, field)
            elif name == "cells" and isinstance(field, list):
                shown[name] = ["<age>" if AGE.fullmatch(str(cell)) else self.value(cell) for cell in field]
            elif name == "continue" and field:
                shown[name] = "<token>"
            else:
                shown[self.text(name)] = self.value(field)
        return shown

    def _learn_generated_name(self, metadata: Any) -> None:
        if isinstance(metadata, dict) and (prefix := metadata.get("generateName")) and (name := metadata.get("name")):
            self._names.setdefault(name, f"{prefix}<five characters>" if len(name) == len(prefix) + 5 else name)

    def _version(self, metadata: dict[str, Any], version: Any) -> str:
        if "uid" not in metadata and "name" not in metadata:
            return "<version of the list>"
        return self._versions.setdefault(version, f"<version {len(self._versions) + 1}>")

    def _uid(self, found: re.Match[str]) -> str:
        return self._uids.setdefault(found[0], f"<uid {len(self._uids) + 1}>")
