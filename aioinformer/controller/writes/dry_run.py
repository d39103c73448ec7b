"""The answers to writes that a dry run does not send. No I/O, except for the live read of what is not cached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import NAMESPACE_URL, uuid5

import msgspec

from aioinformer.client.requests import APPLY, PATCHES
from aioinformer.errors import ApiNotFound
from aioinformer.transport import Request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aioinformer.controller.writes.targets import Target

#: Stands for the random part that the server adds to `metadata.generateName`.
_SUFFIX: Final = "dryrun"

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode


async def pretend(
    target: Target, request: Request, cached: bytes | None, live: Callable[[Request], Awaitable[bytes]]
) -> bytes:
    """Return a plausible answer to a write that is not sent.

    It is the body of a create or a replacement; the object with the changes of a merge patch, a strategic merge patch
    or an apply; the unchanged object for a JSON patch; and a Status for everything else. Nothing is defaulted,
    validated or counted.

    Args:
        target: what the write is about.
        request: the write.
        cached: the JSON of the cached object, None if there is none.
        live: sends a read. It is called for a patch if the object is not cached.

    Raises:
        ApiNotFound: a patch names an object that does not exist.
        AioinformerError: the object cannot be read.
    """
    patch = request.method == "PATCH"
    if not request.body or request.method == "DELETE" or (request.method == "POST" and target.subresource):
        found = _decode(cached)["metadata"] if cached is not None else {}
        return _encode({
            "apiVersion": "v1",
            "kind": "Status",
            "status": "Success",
            "details": {"name": target.name, "uid": found.get("uid") or ""},
        })  # fmt: skip
    content_type = request.headers.get("Content-Type", "")
    current: dict[str, Any] = {}
    if patch:
        if cached is None or target.subresource not in ("", "status"):
            try:
                headers = {name: value for name, value in request.headers.items() if name != "Content-Type"}
                cached = await live(Request(request.path, headers=headers))
            except ApiNotFound:
                if content_type != APPLY or target.subresource:
                    raise
        current = _decode(cached) if cached is not None else {}
    changes = {} if patch and content_type == PATCHES["json"] else _decode(request.body)
    return _encode(_identified(_merged(current, changes), target))


def _identified(obj: dict[str, Any], target: Target) -> dict[str, Any]:
    """Return an object with what the server adds to it, as far as programs depend on it."""
    metadata = {name: value for name, value in (obj.get("metadata") or {}).items() if value is not None}
    name = metadata.get("name") or target.name or f"{metadata.get('generateName', '')}{_SUFFIX}"
    metadata["name"] = name
    if target.namespace:
        metadata["namespace"] = target.namespace
    metadata.setdefault("uid", str(uuid5(NAMESPACE_URL, f"{target.what}/{target.namespace}/{name}")))
    metadata.setdefault("resourceVersion", "0")
    return {**obj, "metadata": metadata}


def _merged(old: Any, patch: Any) -> Any:
    """Return a value after a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), value)
    return merged
