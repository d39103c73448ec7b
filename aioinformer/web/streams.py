"""Streams of changes to clients, without a framework: who may open one, and when all of them end.

```
request ── open ──▶ Opened ── bytes ──▶ the adapter of a framework, which writes them and waits until they are taken
                      ▲
        hubs ─────────┤ wake it: there are changes
        one timer ────┘ wakes it: a heartbeat, another look at the rights, the end; and cuts those that take nothing
```
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from aioinformer.authorization.users import NAMESPACES_AT_MOST, User, Who, permitted
from aioinformer.errors import AioinformerError, UsageError
from aioinformer.exports import lazy_type
from aioinformer.handlers.repeated import RepeatedErrors
from aioinformer.logs import get_logger
from aioinformer.resources.resource import Resource
from aioinformer.resources.scopes import check_namespace
from aioinformer.resources.selectors import label_selector_of
from aioinformer.streams.changes import secret
from aioinformer.streams.cursors import binding_of, read_cursor
from aioinformer.web import frames
from aioinformer.web.errors import BadStreamRequest, TooManyReaders
from aioinformer.web.opened import Feed, Opened, StreamRequest
from aioinformer.web.problems import Problem, problem

if TYPE_CHECKING:
    from aioinformer.client.client import Client
    from aioinformer.web.informers import Informers
else:
    Client = lazy_type("aioinformer.client.client", "Client")
    Informers = lazy_type("aioinformer.web.informers", "Informers")

_errors = RepeatedErrors(get_logger("aioinformer.web"))

#: Seconds between two looks at all streams.
_PERIOD: Final = 0.25
#: All who prove nothing are this user, so that their addresses tell them apart.
_ANONYMOUS: Final = "system:anonymous"
_PARAMETERS: Final = ("namespace", "resource", "selector", "after")


class StreamCore:
    """The streams of one path of a service: some resources, each with a view.

    Args:
        informers: which have the resources.
        views: of the resources: a function, a class, or None for names and versions.
        who: says who sends a request and what that user may see.
        per_user: so many streams of one user may be open.
        most: so many streams may be open in all.

    Raises:
        UsageError: a view is invalid, a resource has no informer, or `who` is missing.
    """

    def __init__(
        self,
        informers: Informers,
        views: Mapping[Resource[Any], Callable[..., Any] | None],
        *,
        who: Who,
        per_user: int = 20,
        most: int = 5000,
    ) -> None:
        if not views:
            raise UsageError("stream: name the resources and their views, as in {core_v1.PODS: Row}")
        if not all(callable(getattr(who, name, None)) for name in ("authenticate", "allows")):
            raise UsageError(
                f"stream: who={who!r} does not say who may see what; pass who=Rbac(audiences=[...]), or who=EVERYBODY "
                "if everybody may see all of it"
            )
        for name, limit in (("per_user", per_user), ("most", most)):
            if type(limit) is not int or limit < 1:
                raise UsageError(f"stream: {name} must be a number of streams, 1 or more, not {limit!r}")
        for resource in views:
            if resource not in informers.resources:
                raise UsageError(f"stream: {resource} is not among the resources of {informers!r}; pass it there, too")
        self._informers = informers
        self._makers = {resource: frames.event_maker(view, resource) for resource, view in views.items()}
        self._keys: dict[Resource[Any], Hashable] = {resource: ("events", view) for resource, view in views.items()}
        self._who = who
        self._per_user = per_user
        self._most = most
        self._readers: Counter[Hashable] = Counter()
        self._open: set[Opened] = set()
        self._timer: asyncio.TimerHandle | None = None
        informers.add_streams(self)

    @property
    def open_streams(self) -> int:
        """The number of open streams."""
        return len(self._open)

    def begin(self, client: Client) -> None:
        """Let `who` ask by the client of the informers, which have been started, unless it has one."""
        bind = getattr(self._who, "bind", None)
        if bind is not None:
            bind(client)

    def end_streams(self) -> None:
        """End all open streams. Those whose client takes nothing are cut off after a second."""
        for each in list(self._open):
            each.end()

    async def open(
        self,
        headers: Mapping[str, str],
        query: Sequence[tuple[str, str]],
        peer: str | None,
        *,
        abort: Callable[[], object] | None = None,
        is_closing: Callable[[], bool] | None = None,
    ) -> Opened | Problem:
        """Return the stream that a request asks for, or the answer that says why there is none.

        Args:
            headers: of the request, with names in lower case. `last-event-id` is a cursor.
            query: the parameters: `namespace` and `resource`, which may be repeated, `selector`, and `after`, a cursor.
            peer: the address of the other end of the connection, None if it is not known.
            abort: aborts the connection: called if the client takes nothing for too long.
            is_closing: returns whether the client has gone. Without it, and if the adapter is not cancelled then, a
                stream is open until something is sent.
        """
        try:
            user = await self._who.authenticate(headers, peer)
            request = self._request(headers, query)
            account: Hashable = (user, peer) if user.name == _ANONYMOUS else user
            self._enter(account)
        except AioinformerError as error:
            return problem(error)
        try:
            return await self._opened(user, account, request, abort, is_closing)
        except BaseException as error:
            self._leave(account)
            if isinstance(error, AioinformerError):
                return problem(error)
            raise

    async def _opened(self, user: User, account: Hashable, request: StreamRequest, *connection: Any) -> Opened:
        binding = self._binding(user, request)
        places = read_cursor(binding, request.after, len(request.resources))
        visible = []
        if places is not None:
            visible = [await self.visible(user, each, request.namespaces) for each in request.resources]
        if not any(each is None or each for each in visible):
            places = None
            await permitted(self._who, user, request.resources, request.namespaces)
        feeds: list[Feed] = []
        try:
            for resource in request.resources:
                feeds.append(self._feed(resource, request))
            stream = Opened(self, user, account, binding, feeds, *connection)
        except BaseException:
            for feed in feeds:
                feed.close()
            raise
        if places is not None:
            stream.go_on(places, visible)
        else:  # a client without a cursor may have a part of the first objects of an earlier stream
            stream.begin_anew()
        self._open.add(stream)
        if self._timer is None:
            self._look()
        return stream

    def _feed(self, resource: Resource[Any], request: StreamRequest) -> Feed:
        namespaces = request.namespaces if resource.namespaced else ()
        informer = self._informers.informer(resource)
        return Feed(resource, namespaces, request.selector, informer, self._keys[resource], self._makers[resource])

    def _request(self, headers: Mapping[str, str], query: Sequence[tuple[str, str]]) -> StreamRequest:
        """Return what a request asks for.

        Raises:
            BadStreamRequest: a parameter is unknown, repeated or invalid.
            SelectorError: the selector is invalid.
        """
        given: dict[str, list[str]] = {name: [] for name in _PARAMETERS}
        for name, value in query:
            if name not in given:
                raise BadStreamRequest(f"parameter {name!r} does not exist; there are {', '.join(_PARAMETERS)}")
            given[name].append(value)
        for name in ("selector", "after"):
            if len(given[name]) > 1:
                raise BadStreamRequest(f"parameter {name!r} may be there once")
        namespaces = sorted({each for each in given["namespace"] if each})
        if len(namespaces) > NAMESPACES_AT_MOST:
            raise BadStreamRequest(f"namespace: {len(namespaces)} are named, and at most {NAMESPACES_AT_MOST} may be")
        for each in namespaces:
            try:
                check_namespace(each, "namespace")
            except UsageError as error:
                raise BadStreamRequest(str(error)) from None
        return StreamRequest(
            self._resources(given["resource"]),
            tuple(namespaces),
            label_selector_of("".join(given["selector"])),
            headers.get("last-event-id") or "".join(given["after"]),
        )

    def _resources(self, names: list[str]) -> tuple[Resource[Any], ...]:
        known = tuple(self._makers)
        chosen = tuple(each for each in known if each.gvr in names or each.plural in names)
        for name in names:
            if not any(name in (each.gvr, each.plural) for each in known):
                raise BadStreamRequest(f"resource {name!r} is not in this stream; choose of {_names(known)}")
        return chosen if names else known

    def _binding(self, user: User, request: StreamRequest) -> bytes:
        """Return the key that signs the cursors of this user and this request."""
        of_user = (user.name, user.uid, repr(user.groups), repr(sorted(user.extra.items())))
        of_views = [f"{each.gvr} {id(self._makers[each])}" for each in request.resources]
        return binding_of(secret(), *of_user, repr(of_views), repr(request.namespaces), str(request.selector))

    def _enter(self, account: Hashable) -> None:
        if self._readers.total() >= self._most:
            raise TooManyReaders(f"there are {self._most} streams, and no more are allowed; try again later")
        if self._readers[account] >= self._per_user:
            raise TooManyReaders(
                f"this user has {self._per_user} streams, and no more are allowed; close one, or share one stream "
                "between the pages of the browser"
            )
        self._readers[account] += 1

    def _leave(self, account: Hashable) -> None:
        self._readers[account] -= 1
        if not self._readers[account]:
            del self._readers[account]

    def closed(self, stream: Opened, account: Hashable) -> None:
        """Forget a stream that has ended."""
        self._open.discard(stream)
        self._leave(account)
        if not self._open and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def visible(self, user: User, resource: Resource[Any], namespaces: tuple[str, ...]) -> frozenset[str] | None:
        """Return in which namespaces a user may see a resource now.

        Args:
            namespaces: the requested ones; () for all.

        Returns:
            None for all that were requested; otherwise those of them that the user may see.
        """
        if not resource.namespaced or not namespaces:
            return None if await self._allows(user, resource, None) else frozenset()
        seen = frozenset([each for each in namespaces if await self._allows(user, resource, each)])
        return None if len(seen) == len(namespaces) else seen

    async def _allows(self, user: User, resource: Resource[Any], namespace: str | None) -> bool:
        """Return whether a user may see a resource. What cannot be found out is refused."""
        try:
            return all([await self._who.allows(user, verb, resource, namespace) for verb in ("list", "watch")])
        except Exception as error:
            message = "%r: what a user may see was not found out, and is refused"
            _errors.report(f"{type(self._who).__name__}.allows", error, message, self)
            return False

    @property
    def rights_period(self) -> float:
        """Seconds after which a stream asks for its rights again."""
        return self._who.ttl / 2

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(_PERIOD, self._look)
        now = loop.time()
        for each in list(self._open):
            each.look(now)

    def __repr__(self) -> str:
        return f"<streams of {_names(tuple(self._makers))}, {len(self._open)} open>"


def _names(resources: tuple[Resource[Any], ...]) -> str:
    return ", ".join(each.gvr for each in resources)
