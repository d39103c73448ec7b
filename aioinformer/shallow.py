"""The members of a JSON object, found without recursion.

An API server takes objects that are nested ten thousand levels deep; decoders give up long before that. Whoever may
create an object must not be able to stop an informer by its depth: what an object is called is read like this then.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\],:]', re.DOTALL)


def members(raw: bytes) -> dict[str, bytes]:
    """The values of an object, still encoded, by name; {} for what is no object, or does not end where the bytes end.

    Linear in the size, whatever the depth. Brackets match; nothing else says that the values are valid.
    """
    found: dict[str, bytes] = {}
    depth = begin = 0
    name = ""
    last = ""
    for token in _TOKEN.finditer(raw):
        text = token.group()
        if text in (b"{", b"["):
            depth += 1
            if depth == 1:
                if text == b"[":
                    return {}
                begin = token.end()
        elif text in (b"}", b"]") or (text == b"," and depth == 1):
            if depth == 1 and name:
                found[name] = raw[begin : token.start()].strip()
                name = ""
            if text != b",":
                depth -= 1
            if depth <= 0:
                return found if not raw[token.end() :].strip() else {}
        elif depth == 1 and text == b":" and not name:
            name, begin = last, token.end()
        elif depth == 1 and not name:
            last = _text(text)
    return {}


def metadata_alone(raw: bytes, names: Iterable[str]) -> bytes:
    """An object that has nothing but these members of the metadata of another, as far as that has them.

    Nothing, if that is no object.
    """
    found = members(raw)
    if not found:
        return b""
    metadata = members(found.get("metadata", b""))
    shown = b",".join(b'"%b":%b' % (name.encode(), metadata[name]) for name in names if name in metadata)
    return b'{"metadata":{%b}}' % shown


def _text(token: bytes) -> str:
    try:
        return msgspec.json.decode(token, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
