"""Discovery: read the resources that a server serves.

A server with aggregated discovery needs two requests, one for each root. Their `Accept` header prefers the aggregated
document (v2, then v2beta1) and also accepts the legacy one, and the `kind` of the response shows which one came. An
older server is then read by one request for each group and version, a few at a time. Versions that fail are part of the
result. The roots are requested one after the other, and the first failure ends the attempt, so that a failing server
gets one request, not two.
"""

from __future__ import annotations

import asyncio
import random as random_module
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec

from aioinformer.backoff import Backoff, BackoffOptions
from aioinformer.backoff import retry_after as seconds_to_wait
from aioinformer.concurrency import TaskGroup
from aioinformer.errors import ApiError, DecodeError, TransportError
from aioinformer.resources import catalog
from aioinformer.resources.resource import Resource
from aioinformer.resources.restmapper import (
    DiscoveryIncomplete,
    ServedResources,
    ServedVersion,
    UnknownResource,
    parse_resource_name,
)
from aioinformer.transport import HttpRequest, Transport
from aioinformer.transport.clients import Connection, transport_of
from aioinformer.transport.list_parser import status_error
from aioinformer.transport.messages import hint_of

if TYPE_CHECKING:
    from collections.abc import Iterator


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


class Discovery:
    """The resources that a server serves, read at first use and cached.

    Tasks can share it: concurrent calls share one discovery.

    Args:
        transport: reaches the server.
        backoff: the backoff of `wait_for`; by default that of informers.
        random: returns numbers in [0, 1) for the jitter.

    Raises:
        UsageError: `transport` is no transport.
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
        """Return all resources of the server, in the order of its preference.

        A group or version that cannot be read does not raise; see `ServedResources.failures`.

        Args:
            refresh: read again, even if a result is cached.

        Raises:
            TransportError: the server was not reached.
            ApiError: the server answered with an error.
            DecodeError: the response is not a discovery document.
        """
        known = self._served
        async with self._asking:
            # A task that waited for the lock while another one read already has a fresh result.
            if self._served is None or (refresh and self._served is known):
                self._served = await self._ask()
            return self._served

    async def resolve(self, name: str, *, fresh: bool = False) -> Resource[Any]:
        """Return the resource that a name means on this server, with the rules of kubectl.

        A built-in resource named as group/version/plural needs no request. Otherwise the cached result is used, and the
        server is read again if the result lacks the name.

        Args:
            name: "pods", "po", "Pod", "deployments.apps", "deployments.v1.apps", "widgets.example.com",
                "apps/v1/deployments", "v1/pods" …
            fresh: read the server in any case, to be sure that it serves the resource now.

        Raises:
            UsageError: the text is not a valid name.
            UnknownResource: the server does not serve the resource.
            DiscoveryIncomplete: a part of the discovery failed that could have the resource.
            TransportError: the server was not reached.
            ApiError: the server answered with an error.
            DecodeError: the response is not a discovery document.
        """
        reading = parse_resource_name(name)[0]
        if not fresh:
            if reading.exact:
                builtin = catalog.find(reading.group or "", reading.version, reading.name)
            else:
                builtin = None
            if builtin is not None:
                return builtin
            if self._served is not None:
                with suppress(UnknownResource, DiscoveryIncomplete):
                    return self._served.resolve(name)
        return (await self.resources(refresh=True)).resolve(name)

    async def wait_for(
        self, name: str, report: Callable[[Exception, float], None], *, fresh: bool = False
    ) -> Resource[Any]:
        """Return the resource that a name means; retry until the server answers.

        Attempts follow the backoff and the server's `Retry-After`. A resource that the server does not serve may have
        been created just now: there is one more attempt, two seconds later.

        Args:
            report: called with each failure, and with the seconds until the next attempt.

        Raises:
            UsageError: the text is not a valid name.
            UnknownResource: the server does not serve the resource, in two attempts two seconds apart.
        """
        lacking = False
        while True:
            try:
                return await self.resolve(name, fresh=fresh)
            except UnknownResource as error:
                if lacking:
                    raise
                lacking = True
                delay = _UNKNOWN_AFTER
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
                # An API server may lack one of the two roots. A server that lacks both is not an API server.
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
            async with TaskGroup() as group_of_tasks:
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
        response = await self._transport.request(HttpRequest(path, headers={"Accept": accept}, total_timeout=_TIMEOUT))
        body = bytearray()
        try:
            async for chunk in response.chunks():
                body += chunk
                if len(body) > _LIMIT:
                    raise DecodeError(
                        f"{path}: the response has more than {_LIMIT} bytes; expected a discovery document"
                    )
        finally:
            await response.close()
        if response.status != 200:
            wait = seconds_to_wait(response.headers)
            raise status_error(response.status, bytes(body), retry_after=wait, hint=hint_of(response))
        try:
            return msgspec.json.decode(body, type=form)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DecodeError(f"{path}: the response is not a discovery document: {error}") from error


class Root(msgspec.Struct):
    """A document of a root; its `kind` decides which of the fields it has."""

    kind: str = ""
    items: tuple[_AggregatedGroup, ...] | None = ()
    groups: tuple[_Group, ...] | None = ()
    versions: tuple[str, ...] | None = ()

    def legacy(self) -> list[tuple[str, str]] | None:
        """Return groups and versions to read one by one, preferred first; None for an aggregated document.

        Raises:
            DecodeError: this is not a discovery document.
        """
        match self.kind:
            case "APIGroupDiscoveryList":
                return None
            case "APIVersions":
                return [("", version) for version in self.versions or ()]
            case "APIGroupList":
                return [(group.name, version) for group in self.groups or () for version in _by_preference(group)]
            case _:
                raise DecodeError(f"kind {self.kind[:40]!r} is not a discovery document")

    def aggregated(self) -> list[ServedVersion]:
        """Return the versions in an aggregated document, preferred first."""
        return [
            _aggregated(group.metadata.name, version) for group in self.items or () for version in group.versions or ()
        ]


class LegacyResources(msgspec.Struct):
    """A legacy document of one group and version."""

    resources: tuple[_LegacyResource, ...] | None = ()

    def served(self, group: str, version: str) -> ServedVersion:
        """Return the version that this document describes."""
        entries = self.resources or ()
        subresources: dict[str, list[str]] = {}
        for entry in entries:
            plural, slash, subresource = entry.name.partition("/")
            if slash:
                subresources.setdefault(plural, []).append(subresource)
        return ServedVersion(
            group,
            version,
            tuple(
                Resource(
                    group=group,
                    version=version,
                    plural=entry.name,
                    kind=entry.kind,
                    namespaced=entry.namespaced,
                    model=_model(group, version, entry.name),
                    singular=entry.singular_name or entry.kind.lower(),
                    short_names=entry.short_names or (),
                    subresources=tuple(sorted(subresources.get(entry.name, ()))),
                    verbs=entry.verbs or (),
                    categories=entry.categories or (),
                )
                for entry in entries
                if "/" not in entry.name
            ),
        )


class _Kind(msgspec.Struct, gc=False):
    group: str = ""
    version: str = ""
    kind: str = ""


class _Subresource(msgspec.Struct, gc=False):
    subresource: str = ""


class _AggregatedResource(msgspec.Struct, rename="camel"):
    resource: str
    response_kind: _Kind | None = None
    scope: str = "Namespaced"
    singular_resource: str = ""
    verbs: tuple[str, ...] | None = ()
    short_names: tuple[str, ...] | None = ()
    categories: tuple[str, ...] | None = ()
    subresources: tuple[_Subresource, ...] | None = ()


class _AggregatedVersion(msgspec.Struct):
    version: str
    resources: tuple[_AggregatedResource, ...] | None = ()
    freshness: str = "Current"


class _Metadata(msgspec.Struct):
    name: str = ""


class _AggregatedGroup(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    versions: tuple[_AggregatedVersion, ...] | None = ()


class _Version(msgspec.Struct):
    version: str = ""


class _Group(msgspec.Struct, rename="camel"):
    name: str
    versions: tuple[_Version, ...] | None = ()
    preferred_version: _Version | None = None


class _LegacyResource(msgspec.Struct, rename="camel"):
    name: str
    kind: str = ""
    namespaced: bool = False
    singular_name: str = ""
    verbs: tuple[str, ...] | None = ()
    short_names: tuple[str, ...] | None = ()
    categories: tuple[str, ...] | None = ()


def _aggregated(group: str, served: _AggregatedVersion) -> ServedVersion:
    # The server of a stale version does not answer, so that its list may be out of date.
    if served.freshness == "Current":
        failure = ""
    else:
        failure = "its server does not answer; the list may be out of date"
    return ServedVersion(
        group,
        served.version,
        tuple(
            Resource(
                group=group,
                version=served.version,
                plural=entry.resource,
                kind=entry.response_kind.kind,
                namespaced=entry.scope == "Namespaced",
                model=_model(group, served.version, entry.resource),
                singular=entry.singular_resource or entry.response_kind.kind.lower(),
                short_names=entry.short_names or (),
                subresources=tuple(sorted(part.subresource for part in entry.subresources or ())),
                verbs=entry.verbs or (),
                categories=entry.categories or (),
            )
            for entry in served.resources or ()
            # An entry without a kind has subresources only; servers of Kubernetes 1.26 and 1.27 send such entries.
            if entry.response_kind is not None
        ),
        failure,
    )


def _by_preference(group: _Group) -> Iterator[str]:
    preferred = group.preferred_version.version if group.preferred_version else ""
    versions = [entry.version for entry in group.versions or ()]
    if preferred in versions:
        yield preferred
    yield from (version for version in versions if version != preferred)


def _model(group: str, version: str, plural: str) -> str:
    builtin = catalog.find(group, version, plural)
    return builtin.model if builtin else ""


# Decoders are made here, by one thread: msgspec inspects a class at its first use, and two event loops in two threads
# may use it at the same time.
for _document in (Root, LegacyResources):
    msgspec.json.Decoder(_document)


_Document = TypeVar("_Document", Root, LegacyResources)
