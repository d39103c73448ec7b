"""The next page of a list is asked for while this one is decoded, so that nobody waits for anybody."""

from __future__ import annotations

import asyncio
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from aioinformer.concurrency import is_ending
from aioinformer.errors import TransportError, UsageError
from aioinformer.functions import plain_function
from aioinformer.logs import get_logger
from aioinformer.resources.resource import Resource
from aioinformer.resources.scopes import check_namespace
from aioinformer.resources.selectors import FieldSelector, LabelSelector, field_selector_of, label_selector_of
from aioinformer.transport import Request, Response, Transport
from aioinformer.transport.clients import transport_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Self

    from aioinformer.reflector.options import ListOptions
    from aioinformer.transport import Response
    from aioinformer.transport.auth.credentials import Connection


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

# What is asked for, by whether it is a watch.
_OBJECTS = {watch: {"Accept": "application/json"} for watch in (False, True)}
_METADATA = {
    False: {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"},
    True: {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"},
}


class ListerWatcher(Protocol[T_co]):
    """Lists and watches one collection. One verb does both, since both are answers that arrive bit by bit.

    Attributes:
        resource: what is listed.
    """

    @property
    def resource(self) -> Resource[T_co]:
        """What is listed."""
        ...

    async def request(self, options: ListOptions) -> Response:
        """Sends a list, or a watch if `options.watch`, and returns when the head of the answer is there.

        Raises:
            TransportError: the server was not reached.
        """
        ...


class ListWatch(Generic[T]):
    """The usual ListerWatcher: a resource of an API server, in all namespaces or in one.

    Args:
        transport: reaches the server; a `Connection` stands for its transport.
        resource: what to list.

        namespace: "" for all namespaces.
        label_selector: applied by the server: text, a mapping of labels, or a parsed one.
        field_selector: applied by the server: text, a mapping of fields, or a parsed one.
        tweak: changes the options of every list and watch in place, as client-go's TweakListOptions.

        metadata_only: ask for PartialObjectMetadata: objects come without anything but their metadata.

    Raises:
        SelectorError: a selector does not parse.
        UsageError: a namespace for a resource that has none.
    """

    def __init__(
        self,
        transport: Transport | Connection,
        resource: Resource[T],
        # Selection
        namespace: str = "",
        label_selector: str | LabelSelector | Mapping[str, str] = "",
        field_selector: str | FieldSelector | Mapping[str, str] = "",
        tweak: Callable[[ListOptions], None] | None = None,
        # Form
        *,
        metadata_only: bool = False,
    ) -> None:
        if not isinstance(resource, Resource):
            raise UsageError(f"resource: expected a Resource, not {resource!r}; SharedInformerFactory takes names")
        check_namespace(namespace)
        if namespace and not resource.namespaced:
            raise UsageError(f"{resource.group_resource} is cluster-scoped: leave out namespace={namespace!r}")
        labels = label_selector_of(label_selector, "label_selector")
        fields = field_selector_of(field_selector, "field_selector")
        self._transport = transport_of(transport, "transport")
        self._resource = resource
        self._path = resource.path(namespace)
        # Text is sent as it was given.
        self._label_selector = label_selector if isinstance(label_selector, str) else str(labels)
        self._field_selector = field_selector if isinstance(field_selector, str) else str(fields)
        self._tweak = plain_function(tweak, "tweak")
        self._headers = _METADATA if metadata_only else _OBJECTS
        self.namespace = namespace
        self.label_selector, self.field_selector = self._label_selector, self._field_selector
        self.metadata_only = metadata_only

    @property
    def resource(self) -> Resource[T]:
        """What is listed."""
        return self._resource

    def __repr__(self) -> str:
        selection = [
            f"{name}={value}"
            for name, value in (
                ("namespace", self.namespace),
                ("label_selector", self._label_selector),
                ("field_selector", self._field_selector),
            )
            if value
        ]
        return f"<{type(self).__name__} {', '.join([self._resource.gvr, *selection])}>"

    def only_metadata(self) -> Self:
        """The same, but for metadata alone."""
        other = copy(self)
        other.metadata_only, other._headers = True, _METADATA
        return other

    async def request(self, options: ListOptions) -> Response:
        """Sends a list or a watch, with the selection added."""
        options.label_selector = self._label_selector
        options.field_selector = self._field_selector
        if self._tweak is not None:
            self._tweak(options)
        return await self._transport.request(
            Request(
                self._path,
                tuple(options.to_query()),
                headers=self._headers[options.watch],
                late_head=options.watch,
            )
        )

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self._resource.group_resource}{where}"


def check_lister_watcher(given: Any) -> None:
    """Do nothing if this can list and watch a resource.

    Raises:
        UsageError: it cannot; the message says how to make a ListWatch of it, if that is possible.
    """
    if isinstance(getattr(given, "resource", None), Resource) and callable(getattr(given, "request", None)):
        return
    kind = (
        "None" if given is None else f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
    )
    raise UsageError(
        f"lister_watcher: expected what lists and watches a resource, ListWatch(transport, resource), not {kind}; "
        "a SharedInformerFactory makes it of a transport, a Connection, an ApiClient or a URL"
    )


_log = get_logger("aioinformer.reflector")


async def closed(close: Callable[[], Awaitable[None]], name: str) -> None:
    """Close a response. If its transport fails to do so, log that, and go on.

    Args:
        close: closes it.
        name: of who had it, for the log.
    """
    try:
        await close()
    except (Exception, asyncio.CancelledError) as error:
        if is_ending(error, asyncio.current_task()):
            raise
        _log.error("%s: a response could not be closed", name, exc_info=error)


class Prefetcher:
    """Sends requests, one of which may be sent before its turn.

    Args:
        lister_watcher: what to ask.
        name: of the task that waits for the answer.
    """

    def __init__(self, lister_watcher: ListerWatcher[Any], name: str) -> None:
        self._lister_watcher = lister_watcher
        self._name = name
        self._options: ListOptions | None = None
        self._task: asyncio.Task[Response | Exception] | None = None

    def start(self, options: ListOptions, tasks: asyncio.TaskGroup) -> None:
        """Sends a request whose turn will come, unless one is on its way already."""
        if self._task is None:
            self._options = options
            self._task = tasks.create_task(self._send(options), name=self._name)

    async def request(
        self, options: ListOptions, tasks: asyncio.TaskGroup, patience: float | None = None
    ) -> Response | None:
        """Return the response to a request: the one that is under way, if it is the same.

        Args:
            options: of the request.
            tasks: owns the task that waits for the response.
            patience: seconds to wait for it, None for no limit. After that None is returned, the request stays under
                way, and `response()` waits on.

        Raises:
            Exception: what the request came to.
        """
        if self._task is None or options != self._options:
            await self.discard()
            self.start(options, tasks)
        return await self.response(patience)

    async def response(self, patience: float | None) -> Response | None:
        """Return the response to the request that is under way; None if it does not come in so many seconds.

        Raises:
            Exception: what the request came to.
        """
        task = self._task
        assert task is not None, "no request is under way"
        await asyncio.wait({task}, timeout=patience)
        if not task.done():
            return None
        self._task = None
        answer = task.result()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def discard(self) -> None:
        """Lets go of what is on its way: its turn does not come."""
        task = self._task
        if task is None:
            return
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and not isinstance(answer := task.result(), Exception):
            await closed(answer.close, self._name)
        self._task = None  # not before: who is cancelled meanwhile discards it again

    async def _send(self, options: ListOptions) -> Response | Exception:
        try:
            return await self._lister_watcher.request(replace(options))  # which may be changed on the way
        except Exception as error:  # it is told when its turn comes
            return error
        except asyncio.CancelledError as error:  # of something that the request awaited, unless it is this task's
            if is_ending(error, asyncio.current_task()):
                raise
            return TransportError("something that the request waited for was cancelled")
