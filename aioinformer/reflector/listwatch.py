"""List and watch requests: `ListWatch` for a resource of an API server, and requests that are sent ahead of time.

The next page of a list is requested while the current one is decoded, so neither waits for the other (`Prefetcher`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Self, TypeVar

from msgspec.structs import replace

from aioinformer.cache.objects.fields import selectable_value
from aioinformer.cache.objects.record import labels_of
from aioinformer.concurrency import is_ending
from aioinformer.errors import TransportError, UsageError
from aioinformer.functions import plain_function
from aioinformer.logs import get_logger
from aioinformer.reflector.options import ListOptions
from aioinformer.resources.keys import object_name
from aioinformer.resources.resource import Resource
from aioinformer.resources.scopes import check_namespace
from aioinformer.resources.selectors import FieldSelector, LabelSelector, field_selector_of, label_selector_of
from aioinformer.transport import HttpRequest, Response, Transport
from aioinformer.transport.clients import Connection, transport_of

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from aioinformer.transport import Response


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_log = get_logger("aioinformer.reflector")

# Headers, by whether the request is a watch.
_OBJECTS: Final = {watch: {"Accept": "application/json"} for watch in (False, True)}
_METADATA: Final = {
    False: {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"},
    True: {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"},
}


class ListerWatcher(Protocol[T_co]):
    """Lists and watches one collection. One method serves both, because both responses are read while they arrive.

    Attributes:
        resource: the resource to list.
    """

    @property
    def resource(self) -> Resource[T_co]:
        """The resource to list."""
        ...

    async def request(self, options: ListOptions) -> Response:
        """Send a list, or a watch if `options.watch`, and return when the head of the response has arrived.

        Raises:
            TransportError: the server was unreachable.
        """
        ...


class ListWatch(Generic[T]):
    """The usual ListerWatcher: a resource of an API server, in all namespaces or in one.

    Args:
        transport: sends requests to the server; of a `Connection`, its transport is used.
        resource: the resource to list.

        namespace: "" for all namespaces.
        label_selector: is applied by the server: a string, a mapping of labels, or a parsed selector.
        field_selector: is applied by the server: a string, a mapping of fields, or a parsed selector.
        tweak: changes the options of every list and watch in place, like client-go's TweakListOptions.

        metadata_only: request PartialObjectMetadata: objects consist of their metadata only.

    Attributes:
        namespace, label_selector, field_selector, metadata_only: as given; selectors as strings.

    Raises:
        SelectorError: a selector cannot be parsed.
        UsageError: a namespace is given for a cluster-scoped resource.
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
        # A string is sent as it was given.
        self._label_selector = label_selector if isinstance(label_selector, str) else str(labels)
        self._field_selector = field_selector if isinstance(field_selector, str) else str(fields)
        self._tweak = plain_function(tweak, "tweak")
        self._headers = _METADATA if metadata_only else _OBJECTS
        self.namespace = namespace
        self.label_selector = self._label_selector
        self.field_selector = self._field_selector
        self.metadata_only = metadata_only

    @property
    def resource(self) -> Resource[T]:
        """The resource to list."""
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
        """Return a copy that requests metadata only."""
        other = copy(self)
        other.metadata_only = True
        other._headers = _METADATA
        return other

    async def request(self, options: ListOptions) -> Response:
        """Send a list or a watch, with the selectors added."""
        options.label_selector = self._label_selector
        options.field_selector = self._field_selector
        if self._tweak is not None:
            self._tweak(options)
        return await self._transport.request(
            HttpRequest(
                self._path,
                tuple(options.to_query()),
                headers=self._headers[options.watch],
                late_head=options.watch,
                stream=options.watch,
                paced=True,
            )
        )

    def excludes(self, item: Any, *, whole: bool = True) -> str:
        """Return why an object in this state is not in the collection; "" if it is, or if only the server can know.

        Args:
            item: an object of any form; a view, or a mapping with the keys of the JSON, if it is whole.
            whole: it has all labels and fields.
        """
        if self.namespace and object_name(item).namespace != self.namespace:
            return f"it is not in namespace {self.namespace}"
        if not whole or self._tweak is not None:  # which may change the selectors
            return ""
        if not label_selector_of(self._label_selector).matches(labels_of(item)):
            return f"its labels do not match {self._label_selector}"
        for requirement in field_selector_of(self._field_selector).requirements:
            value = selectable_value(item, requirement.path, self._resource.model)
            if value is not None and (value == requirement.value) is requirement.negated:
                return f"its fields do not match {self._field_selector}"
        return ""

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self._resource.group_resource}{where}"


def check_lister_watcher(given: Any) -> None:
    """Check that an argument can list and watch a resource.

    Raises:
        UsageError: it cannot. The message shows how to make a ListWatch.
    """
    if isinstance(getattr(given, "resource", None), Resource) and callable(getattr(given, "request", None)):
        return
    kind = type(given).__name__
    if given is None:
        kind = "None"
    elif isinstance(given, type):
        kind = f"the class {given.__name__}"
    raise UsageError(
        f"lister_watcher: expected a ListerWatcher such as ListWatch(transport, resource), not {kind}; "
        "a SharedInformerFactory makes one from a transport, a Connection, an ApiClient or a URL"
    )


async def close_response(close: Callable[[], Awaitable[None]], name: str) -> None:
    """Close a response. If its transport fails to do so, log the error.

    Args:
        close: closes the response.
        name: of its owner, for the log.
    """
    try:
        await close()
    except (Exception, asyncio.CancelledError) as error:
        if is_ending(error, asyncio.current_task()):
            raise
        _log.error("%s: a response could not be closed", name, exc_info=error)


class Prefetcher:
    """Send requests one at a time. A request may be sent ahead of time, before its response is needed.

    Args:
        lister_watcher: sends the requests.
        name: of the reflector, for tasks and logs.
    """

    __slots__ = ("_lister_watcher", "_name", "_options", "_task")

    def __init__(self, lister_watcher: ListerWatcher[Any], name: str) -> None:
        self._lister_watcher = lister_watcher
        self._name = name
        self._options: ListOptions | None = None
        self._task: asyncio.Task[Response | Exception] | None = None

    def start(self, options: ListOptions, tasks: asyncio.TaskGroup) -> None:
        """Send a request ahead of time, unless a request is in progress."""
        if self._task is None:
            self._options = options
            self._task = tasks.create_task(self._send(options), name=f"{self._name}: next page")

    async def request(
        self, options: ListOptions, tasks: asyncio.TaskGroup, patience: float | None = None
    ) -> Response | None:
        """Return the response to a request. If this request was sent ahead of time, it is not sent again.

        Args:
            options: of the request.
            tasks: owns the task that waits for the response.
            patience: seconds to wait for the response, None for no limit. After that, None is returned, the request
                continues, and `response()` waits again.

        Raises:
            Exception: the error of the request.
        """
        if self._task is None or options != self._options:
            await self.discard()
            self.start(options, tasks)
        return await self.response(patience)

    async def response(self, patience: float | None) -> Response | None:
        """Return the response to the request in progress; None if it does not come within `patience` seconds.

        Raises:
            Exception: the error of the request.
        """
        task = self._task
        assert task is not None, "no request is in progress"
        await asyncio.wait({task}, timeout=patience)
        if not task.done():
            return None
        self._task = None
        answer = task.result()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def discard(self) -> None:
        """Cancel the request in progress, if any, and close its response."""
        task = self._task
        if task is None:
            return
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and not isinstance(answer := task.result(), Exception):
            await close_response(answer.close, self._name)
        self._task = None  # only now: if the caller is cancelled meanwhile, its cleanup discards the request again

    async def _send(self, options: ListOptions) -> Response | Exception:
        try:
            return await self._lister_watcher.request(replace(options))  # a copy: a tweak function may change it
        except Exception as error:  # is raised when the response is needed
            return error
        except asyncio.CancelledError as error:  # something that the request awaits may have been cancelled
            if is_ending(error, asyncio.current_task()):
                raise
            return TransportError("the request failed: a task or future that it awaited was cancelled")
