"""What to ask the server for a collection: the seam between the machinery and the network."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from aioinformer.errors import UsageError
from aioinformer.selectors import parse_field_selector, parse_label_selector
from aioinformer.transport import Request, Response, Transport

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from aioinformer.options import ListOptions
    from aioinformer.resources import Resource

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
        transport: reaches the server.
        resource: what to list.

        namespace: "" for all namespaces.
        label_selector: applied by the server.
        field_selector: applied by the server.
        tweak: changes the options of every list and watch in place, as client-go's TweakListOptions.

        metadata_only: ask for PartialObjectMetadata: objects come without anything but their metadata.

    Raises:
        SelectorError: a selector does not parse.
        UsageError: a namespace for a resource that has none.
    """

    def __init__(
        self,
        transport: Transport,
        resource: Resource[T],
        # Selection
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        tweak: Callable[[ListOptions], None] | None = None,
        # Form
        *,
        metadata_only: bool = False,
    ) -> None:
        if namespace and not resource.namespaced:
            raise UsageError(f"{resource.group_resource} is cluster-scoped: leave out namespace={namespace!r}")
        parse_label_selector(label_selector)
        parse_field_selector(field_selector)
        self._transport = transport
        self._resource = resource
        self._path = resource.path(namespace)
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._tweak = tweak
        self._headers = _METADATA if metadata_only else _OBJECTS
        self.namespace = namespace
        self.label_selector, self.field_selector = str(label_selector), str(field_selector)
        self.metadata_only = metadata_only

    @property
    def resource(self) -> Resource[T]:
        """What is listed."""
        return self._resource

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
            Request(self._path, tuple(options.to_query()), headers=self._headers[options.watch])
        )

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self._resource.group_resource}{where}"
