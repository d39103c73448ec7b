"""Continue tokens: a version, and the key at which the next page begins, as base64 of JSON.

Keys in it are relative to the path that is listed: a token of one namespace goes on at the same name in another one.
Version -1 stands for no moment: a list that goes on with whatever there is now.
"""

from __future__ import annotations

import base64
import json
import re
from posixpath import normpath
from typing import Any

from aioinformer.testing.api import statuses
from aioinformer.testing.api.golike import json_error

_FORM = "meta.k8s.io/v1"
_FIELDS = {"v": (str, "string"), "rv": (int, "int64"), "start": (str, "string")}
_JSON_TYPES = {str: "string", bool: "bool", list: "array", dict: "object"}
_ALPHABET = re.compile(r"[\w\r\n-]*", re.ASCII)
_LARGEST = 2**63 - 1


def encode_token(version: int, namespace: str, name: str, *, scope: str) -> str:
    """A token that goes on behind an object.

    Args:
        version: of the list.
        namespace: of the object.
        name: of the object.
        scope: namespace that is listed, "" for all.
    """
    key = f"/{name}" if scope or not namespace else f"{namespace}/{name}"
    return _token(version, f"{key}\0")


def restart_token(token: str) -> str:
    """The token that goes on at the same place without promising one moment."""
    return _token(-1, _content(token)["start"].removeprefix("/"))


def decode_token(token: str, scope: str) -> tuple[int, str]:
    """The version, or -1, and the first key that a list may have from there on.

    Args:
        scope: namespace that is listed, "" for all.

    Raises:
        StatusError: 400.
    """
    content = _content(token)
    if content.get("v") != _FORM:
        raise _bad_token(f"server does not recognize this encoded version {content.get('v', '')}")
    version, start = content.get("rv", 0), content.get("start", "")
    if version == 0:
        raise _bad_token(f"incorrect encoded start resourceVersion (version {_FORM})")
    if not start:
        raise _bad_token(f"encoded start key empty (version {_FORM})")
    path = start if start.startswith("/") else f"/{start}"
    if "//" in path or normpath(path) != path:
        raise _bad_token(start)
    key = path.removeprefix("/")
    return version, f"{scope}/{key}" if scope else key


def _content(token: str) -> dict[str, Any]:
    """The fields of a token as Go reads them: by their names in any case, each of its type."""
    data = _decoded(token)
    if reason := json_error(data):
        raise _bad_token(reason)
    content = json.loads(data)
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise _bad_token(f"json: cannot unmarshal {_json_type(content)} into Go value of type storage.continueToken")
    found: dict[str, Any] = {}
    for name, value in content.items():
        field = name.lower()
        if field not in _FIELDS or value is None:
            continue
        wanted, go_type = _FIELDS[field]
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
        if type(value) is not wanted or (number is not None and abs(number) > _LARGEST):
            shown = f"number {number}" if number is not None and wanted is int else _json_type(value)
            raise _bad_token(
                f"json: cannot unmarshal {shown} into Go struct field continueToken.{field} of type {go_type}"
            )
        found[field] = value
    return found


def _json_type(value: Any) -> str:
    return _JSON_TYPES.get(type(value), "number")


def _token(version: int, start: str) -> str:
    content = json.dumps({"v": _FORM, "rv": version, "start": start}, separators=(",", ":"))
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def _decoded(token: str) -> bytes:
    found = _ALPHABET.match(token)
    end = found.end() if found else 0
    letters = re.sub(r"[\r\n]", "", token)
    if end < len(token) or len(letters) % 4 == 1:
        # A letter that is one too many is told itself.
        raise _bad_token(f"illegal base64 data at input byte {min(end, len(token) - 1)}")
    return base64.urlsafe_b64decode(letters + "=" * (-len(letters) % 4))


def _bad_token(why: str) -> statuses.StatusError:
    return statuses.bad_request(f"invalid continue token: continue key is not valid: {why}")
