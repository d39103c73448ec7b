"""A service with streams, on collections in memory."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from aioinformer import SharedIndexInformer
from aioinformer.authorization import EVERYBODY, Unauthenticated, User
from aioinformer.web import Opened, Problem, StreamCore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer import Resource
    from tests.support.collection import Collection


class Rights:
    """A `Who` that decides by a set: (user, resource, namespace), with "*" for all namespaces."""

    ttl = 10.0

    def __init__(self, *rights: tuple[str, str, str]) -> None:
        self.rights = set(rights)
        self.asked = 0
        self.error: Exception | None = None

    async def authenticate(self, headers: Mapping[str, str], peer: str | None) -> User:
        name = headers.get("authorization", "")
        if not name:
            raise Unauthenticated("no token: send one as Authorization: Bearer TOKEN")
        return User(name)

    async def allows(self, user: User, verb: str, resource: Resource[Any], namespace: str | None) -> bool:
        self.asked += 1
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return any((user.name, resource.plural, each) in self.rights for each in ("*", namespace))

    async def allows_path(self, user: User, verb: str, path: str) -> bool:
        return False


class Service:
    """The informers of a service, on collections in memory."""

    def __init__(self, **collections: Collection) -> None:
        self.collections = collections
        self.resources = tuple(each.resource for each in collections.values())
        self.running = {each.resource: SharedIndexInformer(each) for each in collections.values()}
        self.cores: list[StreamCore] = []

    def add_streams(self, core: StreamCore) -> None:
        self.cores.append(core)

    def informer(self, resource: Resource[Any]) -> SharedIndexInformer[Any]:
        return self.running[resource]

    async def __aenter__(self) -> Service:
        self._stack = AsyncExitStack()
        for informer in self.running.values():
            await self._stack.enter_async_context(informer)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def core(self, views: Any = None, **options: Any) -> StreamCore:
        given: Any = self
        return StreamCore(given, views or dict.fromkeys(self.resources), **{"who": EVERYBODY, **options})


async def asked(core: StreamCore, user: str = "", peer: str = "", after: str = "", **query: str) -> Opened | Problem:
    headers = {name: value for name, value in (("authorization", user), ("last-event-id", after)) if value}
    pairs = [(name, each) for name, value in query.items() for each in value.split("|")]
    return await core.open(headers, pairs, peer or None)
