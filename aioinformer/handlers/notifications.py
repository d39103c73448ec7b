"""Notifications, and the handlers that users write for them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from aioinformer.errors import UsageError
from aioinformer.logs import get_logger
from aioinformer.resources.keys import DeletedFinalStateUnknown

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

_log = get_logger("aioinformer.handlers")


class AddNotification(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object is new in the cache, or to the handler."""

    obj: T
    is_in_initial_list: bool = False


class UpdateNotification(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object has a new version, or a resync delivers it again (then both are the same)."""

    old: T
    new: T


class DeleteNotification(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object was deleted. `obj` is its last state, or a tombstone if the deletion was missed."""

    obj: T | DeletedFinalStateUnknown[T]


Notification: TypeAlias = AddNotification[T] | UpdateNotification[T] | DeleteNotification[T]


class ResourceEventHandler(Protocol[T_contra]):
    """The methods of a handler. Each may be a coroutine function.

    If `on_add` has a second parameter `is_in_initial_list`, it is passed, too.
    """

    def on_add(self, obj: T_contra, /) -> Any:
        """Handle a new object."""

    def on_update(self, old: T_contra, new: T_contra, /) -> Any:
        """Handle a changed object, or a resync of it."""

    def on_delete(self, obj: Any, /) -> Any:
        """Handle a deletion: the last state of the object, or a `DeletedFinalStateUnknown`."""


class ResourceEventHandlerFuncs(msgspec.Struct, Generic[T], frozen=True):
    """A handler of functions, which may be coroutine functions. Notifications without a function are dropped.

    Attributes:
        on_add: (obj), or (obj, is_in_initial_list) if it has a parameter of that name.
        on_update: (old, new)
        on_delete: (obj), which may be a `DeletedFinalStateUnknown`.
    """

    on_add: Callable[..., Any] | None = None
    on_update: Callable[[T, T], Any] | None = None
    on_delete: Callable[[Any], Any] | None = None


class ResourceEventHandlerDetailedFuncs(msgspec.Struct, Generic[T], frozen=True):
    """As `ResourceEventHandlerFuncs`, with the detailed form of `on_add`.

    Attributes:
        on_add: (obj, is_in_initial_list)
        on_update: (old, new)
        on_delete: (obj), which may be a `DeletedFinalStateUnknown`.
    """

    on_add: Callable[[T, bool], Any] | None = None
    on_update: Callable[[T, T], Any] | None = None
    on_delete: Callable[[Any], Any] | None = None


class HandlerWrapper:
    """A handler that passes notifications to another handler.

    Attributes:
        handler: the other handler.
    """

    __slots__ = ()

    handler: Any


class FilteringResourceEventHandler(HandlerWrapper, msgspec.Struct, Generic[T], frozen=True):
    """Pass on notifications of objects that a filter accepts.

    An update after which the filter accepts an object that it refused before is delivered as an add, and the opposite
    as a delete.

    Attributes:
        filter_func: object -> whether it is accepted. For tombstones, it is called with the last known object.
        handler: receives the notifications.
    """

    filter_func: Callable[[T], bool]
    handler: Any


#: Calls a handler with one notification; the caller awaits the result if it is awaitable.
Delivery: TypeAlias = Callable[[Any], Any]


def _no_handler(handler: Any) -> str:
    if isinstance(handler, ResourceEventHandlerFuncs | ResourceEventHandlerDetailedFuncs):
        return "there is no handler: pass at least one function as on_add, on_update or on_delete"
    if inspect.isroutine(handler):
        named = handler.__name__
        return f"the function {named} is not a handler: say when to call it, as in on_add={named}"
    return f"{type(handler).__name__} is not a handler: pass on_add, on_update or on_delete, or an object that has them"


def delivery_to(handler: Any) -> Delivery:
    """Return the function that calls a handler with a notification.

    Raises:
        UsageError: the handler has none of the three methods, or its filter is a coroutine function.
    """
    if isinstance(handler, FilteringResourceEventHandler):
        if inspect.iscoroutinefunction(handler.filter_func):  # its unawaited result would count as true
            raise UsageError("filter_func must be a plain function; await in the handler instead")
        return _filtered(handler.filter_func, delivery_to(handler.handler))
    methods = {name: getattr(handler, name, None) for name in ("on_add", "on_update", "on_delete")}
    for name, method in methods.items():
        if method is not None and not callable(method):
            raise UsageError(f"handler.{name}: expected a function, not {type(method).__name__}")
    on_add, on_update, on_delete = methods.values()
    if not any(methods.values()):
        raise UsageError(_no_handler(handler))
    detailed = isinstance(handler, ResourceEventHandlerDetailedFuncs) or _wants_flag(on_add)
    _check_call("on_add", on_add, 2 if detailed else 1, "obj, or obj and is_in_initial_list")
    _check_call("on_update", on_update, 2, "old and new")
    _check_call("on_delete", on_delete, 1, "obj")

    def deliver(notification: Notification[Any]) -> Any:
        if isinstance(notification, UpdateNotification):
            return on_update(notification.old, notification.new) if on_update is not None else None
        if isinstance(notification, DeleteNotification):
            return on_delete(notification.obj) if on_delete is not None else None
        if on_add is None:
            return None
        if detailed:
            return on_add(notification.obj, notification.is_in_initial_list)
        return on_add(notification.obj)

    return deliver


def _check_call(name: str, function: Any, count: int, arguments: str) -> None:
    if function is None:
        return
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # built-in functions may have no signature
        return
    try:
        signature.bind(*[None] * count)
    except TypeError:
        raise UsageError(f"handler.{name}{signature} cannot be called with its arguments: {arguments}") from None


def _wants_flag(on_add: Any) -> bool:
    if on_add is None:
        return False
    try:
        return "is_in_initial_list" in inspect.signature(on_add).parameters
    except (TypeError, ValueError):  # built-in functions may have no signature
        return False


def _filtered(passes: Callable[[Any], bool], deliver: Delivery) -> Delivery:
    def filtered(notification: Notification[Any]) -> Any:
        if isinstance(notification, UpdateNotification):
            old = notification.old
            new = notification.new
            before = passes(old)
            after = passes(new)
            if before and after:
                return deliver(notification)
            if after:
                return deliver(AddNotification(new, False))
            return deliver(DeleteNotification(old)) if before else None
        obj = notification.obj
        seen = obj.obj if isinstance(obj, DeletedFinalStateUnknown) else obj
        return deliver(notification) if seen is None or passes(seen) else None

    return filtered
