"""The parts of an informer that stream its changes to readers; nothing of them runs without readers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from aioinformer.cache.lister import Selector
from aioinformer.errors import InformerStopped, UsageError
from aioinformer.exports import lazy_type
from aioinformer.informer.observed import ObservedInformer

if TYPE_CHECKING:
    from aioinformer.streams.changes import Changes
    from aioinformer.streams.hub import Hub
    from aioinformer.streams.hubs import Hubs
    from aioinformer.streams.views import ViewMaker
else:
    Hub = lazy_type("aioinformer.streams.hub", "Hub")
    Hubs = lazy_type("aioinformer.streams.hubs", "Hubs")
    ViewMaker = lazy_type("aioinformer.streams.views", "ViewMaker")

T = TypeVar("T")
V = TypeVar("V")


class StreamedInformer(ObservedInformer[T]):
    """An informer whose changes can be read as streams."""

    _hubs: Hubs | None = None

    @overload
    def changes(
        self,
        *,
        namespace: str | Iterable[str] | None = None,
        selector: Selector = "",
        view: None = None,
        after: str = "",
    ) -> Changes[str]: ...
    @overload
    def changes(
        self,
        *,
        namespace: str | Iterable[str] | None = None,
        selector: Selector = "",
        view: type[V],
        after: str = "",
    ) -> Changes[V]: ...
    @overload
    def changes(
        self,
        *,
        namespace: str | Iterable[str] | None = None,
        selector: Selector = "",
        view: Callable[[T], V | None],
        after: str = "",
    ) -> Changes[V]: ...

    def changes(
        self,
        *,
        namespace: str | Iterable[str] | None = None,
        selector: Selector = "",
        view: Callable[..., Any] | None = None,
        after: str = "",
    ) -> Any:  # as in the overloads; a program that reads no changes does not import their class
        """Return the changes of the selected objects, for `async with` and `async for`; see `Changes`.

        All readers of a view share its values and one log. A view whose value is equal to the last one is no change.
        If `after` is no cursor of this stream, or the log does not have what follows any more, the reader begins with a
        "reset". The log is kept for a minute after its last reader, and has up to 4 MiB of deletions.

        Args:
            namespace: a namespace, or several; None for all.
            selector: of labels: text, a mapping or a parsed selector.
            view: what a change has of an object: the result of a function, which leaves the object out if it returns
                None; or an instance of a msgspec, dataclass or pydantic class, whose fields have the values at their
                paths, as in `node: Annotated[str, "spec.nodeName"]`. None for the resourceVersion.
            after: the cursor of a change, to continue behind it.

        Raises:
            SelectorError: the selector is invalid.
            UsageError: the namespace or the view is invalid.
        """
        from aioinformer.streams.changes import Changes
        from aioinformer.streams.selection import selection_of
        from aioinformer.streams.views import view_maker

        selection = selection_of(namespace, selector)
        if selection.namespaces is not None and not self.resource.namespaced:
            raise UsageError(f"namespace: {self.resource.gvr} is cluster-scoped; leave it out")
        maker = view_maker(view, self.resource)
        return Changes(partial(self.enter_hub, ("value", view), maker), self.leave_hub, selection, after)

    def enter_hub(self, key: Hashable, maker: ViewMaker) -> Hub:
        """Return the hub of a view for one more reader, which must call `leave_hub` at its end.

        Args:
            key: identifies the view.
            maker: makes the views.

        Raises:
            InformerStopped: the informer has stopped.
        """
        from aioinformer.streams.hub import Hub
        from aioinformer.streams.hubs import Hubs

        if self._stopped:
            raise InformerStopped(f"{self.name} has stopped already, so nothing of it changes")
        if self._hubs is None:
            self._hubs = Hubs()
        return self._hubs.enter(
            key, lambda: Hub(self, self._indexer.store, self._objects.to_view, maker, self._stalls.timed)
        )

    def leave_hub(self, hub: Hub) -> None:
        """Count one reader less of a hub."""
        if self._hubs is not None:
            self._hubs.leave(hub)

    def _wake_readers(self) -> None:
        if self._hubs is not None:
            self._hubs.wake()

    def _end(self, failure: BaseException) -> None:
        super()._end(failure)
        if self._hubs is not None:
            self._hubs.end()
