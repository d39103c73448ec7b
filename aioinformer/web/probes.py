"""What `/livez`, `/readyz` and `/metrics` of a web service answer, as plain data."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from aioinformer.authorization.users import AccessDenied, Unauthenticated, Who, permitted_path
from aioinformer.serving import Answer
from aioinformer.web.problems import problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.web.informers import Informers

_TEXT: Final = "text/plain; charset=utf-8"
_HEADERS: Final = {"Cache-Control": "no-store"}


def alive() -> Answer:
    """Answer that the event loop works."""
    return Answer(200, _TEXT, b"ok\n", _HEADERS)


def ready(informers: Informers) -> Answer:
    """Answer whether all caches have synced and see all of their objects; during an outage, they stay ready."""
    unready = informers.unready()
    if not unready:
        return Answer(200, _TEXT, b"ok\n", _HEADERS)
    lines = [f"[-]{name} failed: {state}\n" for name, state in unready.items()]
    return Answer(503, _TEXT, "".join(lines).encode(), _HEADERS)


async def metrics(informers: Informers, who: Who | None, headers: Mapping[str, str], peer: str) -> Answer:
    """Answer with the metrics, in a format that the headers accept.

    Args:
        who: may read them; None for everybody.
        headers: see `Who.authenticate`.
    """
    registry: Any = getattr(informers.metrics, "registry", None)
    if registry is None:
        return Answer(404, _TEXT, b"there are no metrics: pip install 'aioinformer[prometheus]'\n", _HEADERS)
    if who is not None:
        try:
            await permitted_path(who, headers, peer, "GET", "/metrics")
        except (Unauthenticated, AccessDenied) as error:
            refused = problem(error)
            return Answer(refused.status, "application/problem+json", refused.body, {**_HEADERS, **refused.headers})
    from prometheus_client.exposition import choose_encoder

    encode, content_type = choose_encoder(headers.get("accept", ""))
    body = await asyncio.to_thread(encode, registry)
    return Answer(200, content_type, body, _HEADERS)
