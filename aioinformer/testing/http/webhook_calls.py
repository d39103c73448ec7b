"""The call of a webhook, by URL or by the name of its service."""

from __future__ import annotations

import base64
import ssl
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp

from aioinformer.transport.connections import Connector

if TYPE_CHECKING:
    from collections.abc import Mapping


class CallError(Exception):
    """A webhook could not be called."""


class Reply(NamedTuple):
    """What a webhook has answered."""

    status: int
    body: bytes


async def call_webhook(
    config: Mapping[str, Any], services: Mapping[str, str], review: Mapping[str, Any], seconds: float
) -> Reply:
    """Send a review to a webhook.

    Args:
        config: its `clientConfig`.
        services: "namespace/name" of each service -> the URL at which it is reached.
        seconds: for the answer.

    Raises:
        CallError: there is no answer.
    """
    url = str(config.get("url") or "")
    name = None
    if service := config.get("service"):
        place = f"{service['namespace']}/{service['name']}"
        if place not in services:
            raise CallError(f"service {place} is unknown: pass webhook_services={{{place!r}: url}} to the server")
        url = services[place].rstrip("/") + "/" + (service.get("path") or "").lstrip("/")
        name = f"{service['name']}.{service['namespace']}.svc"
    try:
        pem = base64.b64decode(config.get("caBundle") or "").decode() or None
        # Names and signatures are checked by the system's trust if there is no `caBundle`.
        context = ssl.create_default_context(cadata=pem)
        async with (
            aiohttp.ClientSession(connector=Connector(), timeout=aiohttp.ClientTimeout(total=seconds)) as session,
            session.post(
                url, params={"timeout": f"{seconds}s"}, json=review, ssl=context, server_hostname=name
            ) as answer,
        ):
            return Reply(answer.status, await answer.read())
    except TimeoutError:
        raise CallError(f"no answer from {url} within {seconds} s") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise CallError(str(error)) from None
