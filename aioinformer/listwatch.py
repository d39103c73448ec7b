"""What to ask the server for a collection: the seam between the machinery and the network."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from aioinformer.errors import UsageError
from aioinformer.notifications import plain_function
from aioinformer.resources import Resource
from aioinformer.scopes import check_namespace
from aioinformer.selectors import FieldSelector, LabelSelector, field_selector_of, label_selector_of
from aioinformer.transport import Request, Response, Transport
from aioinformer.transport.clients import transport_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from aioinformer.options import ListOptions
    from aioinformer.transport.credentials import Connection

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
