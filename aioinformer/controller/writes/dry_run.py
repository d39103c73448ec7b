"""Dry runs: the answers to writes that are not sent, and what these writes would change, for the log."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import NAMESPACE_URL, uuid5

import msgspec

from aioinformer.cache.objects.changes import changed
from aioinformer.client.changes.patches import is_same
from aioinformer.client.requests import APPLY, PATCHES
from aioinformer.errors import ApiError, ApiNotFound
from aioinformer.logs import without_values
from aioinformer.transport import HttpRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from aioinformer.cache.objects.record import Record
    from aioinformer.client.targets import Target

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode

#: At most so many lines of a change, and characters of a line, are logged.
_LINES: Final = 40
_LINE: Final = 200
_ABSENT: Final = msgspec.UNSET
_REDACTED: Final = "<redacted>"
_LAST_APPLIED: Final = "metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']"
#: What the server sets, or what lists omit.
_NOT_SHOWN: Final = ("apiVersion", "kind", "metadata.managedFields", "metadata.resourceVersion")


class Pretended(NamedTuple):
    """A plausible answer to a write that is not sent, and the lines that describe the change."""

    answer: bytes
    lines: list[str]

    def __repr__(self) -> str:
        return without_values(self)


async def pretend(
    target: Target,
    request: HttpRequest,
    cached: Record | None,
    live: Callable[[HttpRequest], Awaitable[bytes]],
    *,
    values: bool = False,
) -> Pretended:
    """Return a plausible answer to a write that is not sent; nothing is defaulted, validated or refused.

    It is the body of a create or a replacement; the object after a merge patch, a strategic merge patch or an apply,
    all of which are merged as by RFC 7386; the unchanged object after a JSON patch; otherwise a Status.

    `cached` is None if there is no cached object. `live` sends a read, for a patch or a replacement of what is not
    cached, or only in part. The lines name the members that change; with `values`, they have the former and the new
    value of each, except those of Secrets.

    Raises:
        ApiNotFound: a patch names an object that does not exist.
        AioinformerError: the object cannot be read.
    """
    is_secret = target.plural == "secrets" and not target.group
    shown = partial(_lines_with_values, secret=is_secret) if values else _lines
    known = _decode(cached.json) if cached is not None else {}
    body: Any = msgspec.json.decode(request.body) if request.body else {}
    if not request.body or request.method == "DELETE" or (request.method == "POST" and target.subresource):
        details = {"name": target.name, "uid": known.get("metadata", {}).get("uid", "")}
        answer = {"apiVersion": "v1", "kind": "Status", "status": "Success", "details": details}
        return Pretended(_encode(answer), shown(_ABSENT, body or _ABSENT))
    kind = request.headers.get("Content-Type", "") if request.method == "PATCH" else ""
    if request.method != "POST" and (cached is None or not cached.is_whole or target.subresource not in ("", "status")):
        headers = {name: value for name, value in request.headers.items() if name != "Content-Type"}
        try:
            known = _decode(await live(HttpRequest(request.path, headers=headers)))
        except ApiNotFound:
            if kind and (kind != APPLY or target.subresource):
                raise
        except ApiError:
            if kind:
                raise
    if kind == PATCHES["json"]:
        lines = []
        for each in body:
            rest = _rest_of(each, values=values, secret=is_secret)
            lines.append(f"* {each.get('op')} {each.get('path')}{rest}")
        return Pretended(_encode(_identified(known, target)), _bounded(lines))
    made = _decode(changed(_encode(known), body)) if kind else body
    return Pretended(_encode(_identified(made, target)), shown(known or _ABSENT, made))


def _lines(old: Any, new: Any) -> list[str]:
    """Return a line for each member that a write removes (-), adds (+) or changes (~)."""
    lines = []
    for path, before, after in _changes(old, new, ""):
        sign = "~"
        if before is _ABSENT:
            sign = "+"
        elif after is _ABSENT:
            sign = "-"
        lines.append(f"{sign} {path}")
    return _bounded(lines)


def _lines_with_values(old: Any, new: Any, *, secret: bool) -> list[str]:
    """Return a line for each member that a write removes (-) or sets (+), with the value."""
    lines = []
    for path, before, after in _changes(old, new, ""):
        hidden = path == _LAST_APPLIED or (secret and path.startswith(("data", "stringData")))
        for sign, value in (("-", before), ("+", after)):
            if value is not _ABSENT:
                lines.append(f"{sign} {path}: {_REDACTED if hidden else _encode(value).decode()}")
    return _bounded(lines)


def _changes(old: Any, new: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield path, former and new value of each member that differs. Lists of objects are compared by position."""
    if path in _NOT_SHOWN or is_same(old, new):
        return
    one, other = (_members(value) for value in (old, new))
    if (one or other) and (one is not None or old is _ABSENT) and (other is not None or new is _ABSENT):
        for name in {**(one or {}), **(other or {})}:
            yield from _changes((one or {}).get(name, _ABSENT), (other or {}).get(name, _ABSENT), _joined(path, name))
    else:
        yield path, old, new


def _members(value: Any) -> dict[str, Any] | None:
    """Return the members of an object, or the elements of a list of objects, by name; None for other values."""
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        return {str(at): each for at, each in enumerate(value)}
    return value if isinstance(value, dict) else None


def _joined(path: str, name: str) -> str:
    step = name if name.replace("-", "").replace("_", "").isalnum() else f"['{name}']"
    return f"{path}{'.' if path and not step.startswith('[') else ''}{step}"


def _rest_of(operation: dict[str, Any], *, values: bool, secret: bool) -> str:
    """Return what follows the path of an operation of a JSON patch, for the log."""
    if "from" in operation:
        return f" from {operation['from']}"
    if not values or "value" not in operation:
        return ""
    return f": {_REDACTED if secret else _encode(operation['value']).decode()}"


def _bounded(lines: list[str]) -> list[str]:
    shown = [line if len(line) <= _LINE else f"{line[:_LINE]}… ({len(line)} characters)" for line in lines]
    if len(shown) <= _LINES:
        return shown
    return [*shown[:_LINES], f"… and {len(shown) - _LINES} more lines"]


def _identified(obj: dict[str, Any], target: Target) -> dict[str, Any]:
    """Return an object with the identity that the server gives to it."""
    metadata = dict(obj.get("metadata") or {})
    name = metadata.get("name") or target.name or f"{metadata.get('generateName') or ''}dryrun"
    metadata["name"] = name
    if target.namespace:
        metadata["namespace"] = target.namespace
    metadata["uid"] = metadata.get("uid") or str(uuid5(NAMESPACE_URL, f"{target.what}/{target.namespace}/{name}"))
    metadata["resourceVersion"] = metadata.get("resourceVersion") or "0"
    return {**obj, "metadata": metadata}
