"""The answers to writes that a dry run does not send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

import msgspec

from aioinformer.client.requests import APPLY, PATCHES
from aioinformer.errors import ApiNotFound
from aioinformer.transport import Request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aioinformer.client.targets import Target

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode


async def pretend(
    target: Target, request: Request, cached: bytes | None, live: Callable[[Request], Awaitable[bytes]]
) -> bytes:
    """Return a plausible answer to a write that is not sent; nothing is defaulted, validated or refused.

    It is the body of a create or a replacement; the object after a merge patch, a strategic merge patch or an apply,
    all of which are merged as by RFC 7386; the unchanged object after a JSON patch; otherwise a Status.

    Args:
        target: what the write is about.
        request: the write.
        cached: the JSON of the cached object, None if there is none.
        live: sends a read. It is called for a patch of what is not cached.

    Raises:
        ApiNotFound: a patch names an object that does not exist.
        AioinformerError: the object cannot be read.
    """
    known = _decode(cached) if cached is not None else {}
    if not request.body or request.method == "DELETE" or (request.method == "POST" and target.subresource):
        details = {"name": target.name, "uid": known.get("metadata", {}).get("uid", "")}
        return _encode({"apiVersion": "v1", "kind": "Status", "status": "Success", "details": details})
    if request.method != "PATCH":
        return _encode(_identified(_decode(request.body), target))
    kind = request.headers.get("Content-Type", "")
    if cached is None or target.subresource not in ("", "status"):
        headers = {name: value for name, value in request.headers.items() if name != "Content-Type"}
        try:
            known = _decode(await live(Request(request.path, headers=headers)))
        except ApiNotFound:
            if kind != APPLY or target.subresource:
                raise
    changes = {} if kind == PATCHES["json"] else _decode(request.body)
    return _encode(_identified(_merged(known, changes), target))


def _identified(obj: dict[str, Any], target: Target) -> dict[str, Any]:
    """Return an object with the identity that the server gives to it."""
    metadata = dict(obj.get("metadata") or {})
    name = metadata["name"] = metadata.get("name") or target.name or f"{metadata.get('generateName') or ''}dryrun"
    if target.namespace:
        metadata["namespace"] = target.namespace
    metadata["uid"] = metadata.get("uid") or str(uuid5(NAMESPACE_URL, f"{target.what}/{target.namespace}/{name}"))
    metadata["resourceVersion"] = metadata.get("resourceVersion") or "0"
    return {**obj, "metadata": metadata}


def _merged(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), value)
    return merged
