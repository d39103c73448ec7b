"""Continue tokens: a version, and the key at which the next page begins, as base64 of JSON.

Keys in a token are relative to the listed path: a token of one namespace continues at the same name in another one.
Version -1 means no fixed version: the list continues with the current objects.
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
    """Return a token that continues after an object.

    Args:
        version: of the list.
        namespace: of the object.
        name: of the object.
        scope: the listed namespace, "" for all.
    """
    key = f"/{name}" if scope or not namespace else f"{namespace}/{name}"
    return _token(version, f"{key}\0")


def restart_token(token: str) -> str:
    """Return a token that continues at the same key with the current objects."""
    return _token(-1, _content(token)["start"].removeprefix("/"))


def decode_token(token: str, scope: str) -> tuple[int, str]:
    """Return the version, or -1, and the first key of the page.

    Args:
        token: as sent.
        scope: the listed namespace, "" for all.

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
    """Return the fields of a token as Go reads them: names in any case, values of the right type."""
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
        # Go reports a single surplus letter by itself.
        raise _bad_token(f"illegal base64 data at input byte {min(end, len(token) - 1)}")
    return base64.urlsafe_b64decode(letters + "=" * (-len(letters) % 4))


def _bad_token(why: str) -> statuses.StatusError:
    return statuses.bad_request(f"invalid continue token: continue key is not valid: {why}")
