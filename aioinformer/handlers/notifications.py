"""What listeners are told, and what handlers users may write for it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from aioinformer.errors import UsageError
from aioinformer.logs import get_logger
from aioinformer.resources.keys import DeletedFinalStateUnknown

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

_log = get_logger("aioinformer.handlers")


class AddNotification(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object is new to the cache, or to the handler."""

    obj: T
    is_in_initial_list: bool = False


class UpdateNotification(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object has a new version, or is told again by a resync (then both are the same)."""

    old: T
    new: T


class DeleteNotification(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object is gone; its last state, or a tombstone if that was missed."""

    obj: T | DeletedFinalStateUnknown[T]


Notification: TypeAlias = AddNotification[T] | UpdateNotification[T] | DeleteNotification[T]


class ResourceEventHandler(Protocol[T_contra]):
    """What an object needs to be a handler; each method may be a coroutine function.

    `on_add` may take a second argument, `is_in_initial_list`; then it is given.
    """

    def on_add(self, obj: T_contra, /) -> Any:
        """An object is new."""
        ...

    def on_update(self, old: T_contra, new: T_contra, /) -> Any:
        """An object changed, or is told again by a resync."""
        ...

    def on_delete(self, obj: Any, /) -> Any:
        """An object is gone: its last state, or a `DeletedFinalStateUnknown`."""
        ...


@dataclass(frozen=True, slots=True)
class ResourceEventHandlerFuncs(Generic[T]):
    """A handler of functions, sync or async; those left out are not told anything.

    Attributes:
        on_add: (obj), or (obj, is_in_initial_list) if it has a parameter of that name.
        on_update: (old, new)
        on_delete: (obj), which may be a `DeletedFinalStateUnknown`.
    """

    on_add: Callable[..., Any] | None = None
    on_update: Callable[[T, T], Any] | None = None
    on_delete: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class ResourceEventHandlerDetailedFuncs(Generic[T]):
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
    """A handler that passes notifications on to another one.

    Attributes:
        handler: the other one.
    """

    __slots__ = ()

    handler: Any


@dataclass(frozen=True, slots=True)
class FilteringResourceEventHandler(HandlerWrapper, Generic[T]):
    """Passes on what concerns objects that the filter lets through (CTL-07).

    An update that makes an object pass is an add, one that makes it fail is a delete.

    Attributes:
        filter_func: object -> whether it passes; for tombstones, asked about their last known object.
        handler: told of those that do.
    """

    filter_func: Callable[[T], bool]
    handler: Any


#: What makes one notification into a call; awaits what the call returns if it can be awaited.
Delivery: TypeAlias = Callable[[Any], Any]


def _no_handler(handler: Any) -> str:
    if isinstance(handler, ResourceEventHandlerFuncs | ResourceEventHandlerDetailedFuncs):
        return "there is no handler: give at least one function as on_add, on_update or on_delete"
    if inspect.isroutine(handler):
        named = handler.__name__
        return f"the function {named} is no handler by itself: say when to call it, as in on_add={named}"
    return f"{type(handler).__name__} is no handler: give on_add, on_update or on_delete, or an object that has them"


def delivery_to(handler: Any) -> Delivery:
    """The function that hands a notification to a handler; what it returns is to be awaited if that is possible.

    Raises:
        UsageError: the handler has none of the three methods, or a filter that is a coroutine function.
    """
    if isinstance(handler, FilteringResourceEventHandler):
        if inspect.iscoroutinefunction(handler.filter_func):  # what it returns unawaited would count as true
            raise UsageError("filter_func must be a plain function; whatever has to wait belongs in the handler")
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
        raise UsageError(f"handler.{name}{signature} cannot be called: it is given {arguments}") from None


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
            old, new = notification.old, notification.new
            before, after = passes(old), passes(new)
            if before and after:
                return deliver(notification)
            if after:
                return deliver(AddNotification(new, False))
            return deliver(DeleteNotification(old)) if before else None
        obj = notification.obj
        seen = obj.obj if isinstance(obj, DeletedFinalStateUnknown) else obj
        return deliver(notification) if seen is None or passes(seen) else None

    return filtered


_F = TypeVar("_F", bound="Callable[..., Any] | None")
