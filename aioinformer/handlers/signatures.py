"""The types of handlers: what `add_event_handler` accepts, for type checkers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar

from aioinformer.handlers.notifications import ResourceEventHandlerDetailedFuncs, ResourceEventHandlerFuncs
from aioinformer.resources.keys import DeletedFinalStateUnknown

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class HandlesAdds(Protocol[T_contra]):
    """An object with a method for added objects."""

    def on_add(self, obj: T_contra, /) -> Any:
        """Handle a new object."""


class HandlesAddsInDetail(Protocol[T_contra]):
    """An object with a method for added objects that wants to know whether they are in the initial list."""

    def on_add(self, obj: T_contra, /, is_in_initial_list: bool) -> Any:
        """Handle a new object."""


class HandlesUpdates(Protocol[T_contra]):
    """An object with a method for changed objects."""

    def on_update(self, old: T_contra, new: T_contra, /) -> Any:
        """Handle a changed object, or a resync of it."""


class HandlesDeletes(Protocol[T_contra]):
    """An object with a method for deleted objects."""

    def on_delete(self, obj: T_contra | DeletedFinalStateUnknown[T_contra], /) -> Any:
        """Handle a deletion: the last state of the object, or a tombstone."""


#: An object with at least one of the three methods.
Handler: TypeAlias = (
    HandlesAdds[T]
    | HandlesAddsInDetail[T]
    | HandlesUpdates[T]
    | HandlesDeletes[T]
    | ResourceEventHandlerFuncs[T]
    | ResourceEventHandlerDetailedFuncs[T]
)
#: A function for deleted objects.
DeleteFunction: TypeAlias = Callable[[T | DeletedFinalStateUnknown[T]], Any]
