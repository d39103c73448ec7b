"""Asks a server what it serves: two requests where it knows aggregated discovery, the legacy documents where not.

The negotiation is the server's. Both roots are asked with one `Accept` header that prefers the aggregated document (v2,
then v2beta1) and also takes the legacy one, and what came is told by its `kind`; an older server needs no second
question. Only then one document per group and version is read, a few at a time, and those that fail are noted beside
those that do not. The roots are asked one after the other, and the first failure ends the attempt, as does a connection
that cannot be had: a server in trouble is not asked twice to be told the same.
"""

from __future__ import annotations

import asyncio
import random as random_module
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec

from aioinformer import catalog
from aioinformer.backoff import Backoff, BackoffOptions
from aioinformer.discovery_documents import LegacyResources, Root
from aioinformer.errors import ApiError, DecodeError, TransportError
from aioinformer.list_head import status_error
from aioinformer.retry_after import retry_after as seconds_to_wait
from aioinformer.served import (
    DiscoveryIncomplete,
    ServedResources,
    ServedVersion,
    UnknownResource,
    parse_resource_name,
)
from aioinformer.transport import Request
from aioinformer.transport.clients import transport_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.resources import Resource
    from aioinformer.transport import Transport
    from aioinformer.transport.credentials import Connection

__all__ = ["Discovery", "DiscoveryIncomplete", "ServedResources", "ServedVersion", "UnknownResource"]

_ACCEPT = ",".join(
    [f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")]
    + ["application/json"]
)
_LEGACY = "application/json"
_AT_ONCE = 8
_TIMEOUT = 30.0
_LIMIT = 64 * 1024 * 1024
_UNKNOWN_AFTER = 2.0


_Document = TypeVar("_Document", Root, LegacyResources)


class Discovery:
    """What one server serves, asked for when needed and remembered.

    Safe to share between tasks: those that ask at the same time share one answer.

    Args:
        transport: the server.
        backoff: the pace of `wait_for`; informers have the same.
        random: gives numbers in [0, 1) for the jitter.
    """

    def __init__(
        self,
        transport: Transport | Connection,
        *,
        backoff: BackoffOptions | None = None,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self._transport = transport_of(transport)
        self._backoff = Backoff(backoff, random=random)
        self._served: ServedResources | None = None
        self._asking = asyncio.Lock()

    async def resources(self, *, refresh: bool = False) -> ServedResources:
        """Everything the server serves, in the order of its preference.

        A group or version that cannot be read does not fail the whole; see `ServedResources.failures`.

        Args:
            refresh: ask again, even if the answer is known.

        Raises:
            TransportError: the server was not reached.
            ApiError: the server refuses to tell.
            DecodeError: it tells something that is no discovery document.
        """
        known = self._served
        async with self._asking:
            # Whoever waited for the lock while another asked has a fresh answer already.
            if self._served is None or (refresh and self._served is known):
                self._served = await self._ask()
            return self._served

    async def resolve(self, name: str, *, fresh: bool = False) -> Resource[Any]:
        """The resource that a name means on this server, as kubectl takes names.

        A built-in resource named as group/version/plural needs no request. Otherwise what is remembered is used, and
        the server is asked again if that lacks the name.

        Args:
            name: "pods", "po", "Pod", "deployments.apps", "deployments.v1.apps", "widgets.example.com",
                "apps/v1/deployments", "v1/pods" …
            fresh: ask the server in any case, so that a built-in resource, too, is one that it serves now.

        Raises:
            UsageError: this is not the name of a resource.
            UnknownResource: a complete, successful discovery does not list it.
            DiscoveryIncomplete: the part of the discovery that would tell has failed.
            TransportError: the server was not reached.
            ApiError: the server refuses to tell.
            DecodeError: it tells something that is no discovery document.
        """
        reading = parse_resource_name(name)[0]
        if not fresh:
            builtin = catalog.find(reading.group or "", reading.version, reading.name) if reading.exact else None
            if builtin is not None:
                return builtin
            if self._served is not None:
                with suppress(UnknownResource, DiscoveryIncomplete):
                    return self._served.resolve(name)
        return (await self.resources(refresh=True)).resolve(name)

    async def wait_for(
        self, name: str, report: Callable[[Exception, float], None], *, fresh: bool = False
    ) -> Resource[Any]:
        """Like `resolve`, but waits for a server that is not there yet, or does not tell.

        Failures are paced by the backoff, and by what the server says in `Retry-After`. A resource that a complete,
        successful discovery lacks may just be in the making: it is looked for once more, two seconds later.

        Args:
            name: as for `resolve`.
            report: called with each failure, and the seconds until the next attempt.
            fresh: as for `resolve`.

        Raises:
            UsageError: this is not the name of a resource.
            UnknownResource: two complete, successful discoveries, two seconds apart, do not list it.
        """
        lacking = False
        while True:
            try:
                return await self.resolve(name, fresh=fresh)
            except UnknownResource as error:
                if lacking:
                    raise
                lacking, delay = True, _UNKNOWN_AFTER
                report(error, delay)
            except (ApiError, DecodeError, DiscoveryIncomplete, TransportError) as error:
                delay = self._delay(error)
                report(error, delay)
            await asyncio.sleep(delay)

    def _delay(self, failure: Exception) -> float:
        now = asyncio.get_running_loop().time()
        delay = self._backoff.next(now)
        asked = getattr(failure, "retry_after", None) or 0.0
        if asked > delay:
            self._backoff.extend(now + asked)
        return max(delay, asked)

    async def _ask(self) -> ServedResources:
        versions: list[ServedVersion] = []
        absent = 0
        for path in ("/api", "/apis"):
            try:
                versions += await self._root(path)
            except ApiError as error:
                # An API server may lack one of the two; what lacks both is another kind of server.
                absent += 1
                if error.status != 404 or absent == 2:
                    raise
        return ServedResources(tuple(versions))

    async def _root(self, path: str) -> list[ServedVersion]:
        try:
            root = await self._document(path, _ACCEPT, Root)
        except ApiError as error:
            if error.status != 406:
                raise
            root = await self._document(path, _LEGACY, Root)
        wanted = root.legacy()
        if wanted is None:
            return root.aggregated()
        gate = asyncio.Semaphore(_AT_ONCE)
        try:
            async with asyncio.TaskGroup() as group_of_tasks:
                tasks = [
                    group_of_tasks.create_task(self._legacy(group, version, gate), name=f"discovery {group}/{version}")
                    for group, version in wanted
                ]
        except* TransportError as failures:
            raise failures.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _legacy(self, group: str, version: str, gate: asyncio.Semaphore) -> ServedVersion:
        root = f"/apis/{quote(group, safe='')}" if group else "/api"
        path = f"{root}/{quote(version, safe='')}"
        async with gate:
            try:
                document = await self._document(path, _LEGACY, LegacyResources)
            except (ApiError, DecodeError) as error:
                return ServedVersion(group, version, failure=str(error))
        return document.served(group, version)

    async def _document(self, path: str, accept: str, form: type[_Document]) -> _Document:
        response = await self._transport.request(Request(path, headers={"Accept": accept}, total_timeout=_TIMEOUT))
        body = bytearray()
        try:
            async for chunk in response.chunks():
                body += chunk
                if len(body) > _LIMIT:
                    raise DecodeError(f"{path} answers with more than {_LIMIT} bytes, which is no discovery document")
        finally:
            await response.close()
        if response.status != 200:
            raise status_error(response.status, bytes(body), retry_after=seconds_to_wait(response.headers))
        try:
            return msgspec.json.decode(body, type=form)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DecodeError(f"{path} answers with something that is no discovery document: {error}") from error
