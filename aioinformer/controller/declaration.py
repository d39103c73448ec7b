"""Declare controllers: `Controller`, and the decorator `controller`. A declaration is checked when it is made."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from typing import Any, Final, Generic, TypedDict, TypeVar, Unpack

from aioinformer.client.targets import VERBS
from aioinformer.controller.inputs.keys import keys_in
from aioinformer.controller.inputs.mapping import Owns, Primary, Watch
from aioinformer.controller.inputs.predicates import Change, Predicate
from aioinformer.controller.inputs.sources import Every, Source, source_of
from aioinformer.controller.request import Reconciler, UndecodableHandler
from aioinformer.controller.writes.ledger import Ledger
from aioinformer.errors import OptionError, UsageError
from aioinformer.functions import async_function, function_name
from aioinformer.informer.options import InformerOptions
from aioinformer.reflector.options import check_seconds
from aioinformer.resources.keys import ObjectName
from aioinformer.resources.resource import Resource
from aioinformer.workqueue.requests.outcomes import QueueOptions

T = TypeVar("T")

#: A name is part of log lines, metrics, task names and the name of the field manager.
NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")

#: The verbs of resources. A type variable, because mypy refuses `READS | EVENTS` where a mapping is expected.
Writes = TypeVar("Writes", bound="Mapping[Resource[Any], Iterable[str]]")


class ControllerOptions(TypedDict, Generic[Writes], total=False):
    """The keyword arguments of `Controller`, which describes them."""

    owns: Iterable[Resource[Any] | Owns[Any]]
    watches: Iterable[Watch[Any]]
    sources: Iterable[Source | Every | AsyncIterable[Any]]
    when: Predicate | Callable[[Change], Any] | None
    workers: int
    timeout: float | None
    queue: QueueOptions | None
    brake: bool
    writes: Writes | None
    elected: bool
    max_staleness: float | None
    informer: InformerOptions[Any] | None


class Controller(Generic[T]):
    """A reconciler, and what makes it run: the declaration that a `Manager` runs.

    A declaration may run again after its manager has stopped. It runs in one manager at a time. The methods of the
    manager concern its run: `enqueue`, `parked`, `retry_parked` and `snapshot`.

    Args:
        name: unique in the manager; for logs, metrics, Events, and as the field manager of its writes.
        resource: the primary resource: the reconciler runs for its objects.
        reconcile: an async function of a `Request`. It returns None or a `Result`.

        owns: resources whose objects the primary's objects own: a change of one runs its owner.
        watches: resources whose objects map to keys of the primary.
        sources: other causes: async iterables of keys, and timers, which replace the resyncs of the manager.
        when: which adds and updates of the primary run the reconciler; by default, those that change its content.

        workers: how many keys are reconciled at the same time.
        timeout: seconds for each attempt, after which it is cancelled and retried; None for no limit. An attempt that
            runs on for twice the timeout, and at least ten minutes, fails the liveness of the manager.
        queue: backoff, limits and fairness.
        brake: whether runs of a key are 1 to 30 s apart once it is proven that its own writes cause them in a loop. A
            change that the controller has not made itself ends that.
        writes: what the reconciler may write: resource -> verbs, such as "patch", or "status/patch" and "scale/patch"
            for a subresource alone. For the primary, "patch" and "update" include its status, for `set_status`.
            `aioinformer check` makes the roles of them. None: its writes are not checked.

        elected: whether only the leader runs it, if the manager has leader election.
        max_staleness: seconds for which the cache of an input may not have followed the server, until `request.client`
            sends no delete, and `finalizing` no cleanup; None for that of the manager.
        informer: options of the primary's informer; see `InformerOptions`.

    Attributes:
        name: as given.
        resource: as given.
        owns: as `Owns`.
        watches: as given.
        sources: as given.
        undecodable_handler: see `undecodable`; None if there is none.
        ledger: what a run leaves for the next one; managers use it.

    Raises:
        UsageError: an argument is invalid; the message names it, and says what to pass.
    """

    def __init__(
        self,
        name: str,
        resource: Resource[T],
        reconcile: Reconciler[T],
        *,
        # Causes
        owns: Iterable[Resource[Any] | Owns[Any]] = (),
        watches: Iterable[Watch[Any]] = (),
        sources: Iterable[Source | Every | AsyncIterable[Any]] = (),
        when: Predicate | Callable[[Change], Any] | None = None,
        # Runs
        workers: int = 4,
        timeout: float | None = None,
        queue: QueueOptions | None = None,
        brake: bool = True,
        writes: Writes | None = None,
        # Operation
        elected: bool = True,
        max_staleness: float | None = None,
        informer: InformerOptions[Any] | None = None,
    ) -> None:
        if not NAME.fullmatch(str(name)):
            raise OptionError(
                f"Controller: name must be up to 63 letters, digits, '-', '_' and '.', such as 'widgets', not {name!r}"
            )
        self.name = name
        where = f"controller {name}"
        self.resource: Resource[T] = _checked_resource(resource, f"{where}: resource")
        self.reconcile: Reconciler[Any] = async_function(reconcile, where, "reconcile", "request")
        self.owns: tuple[Owns[Any], ...] = tuple(
            each if isinstance(each, Owns) else Owns(_checked_resource(each, f"{where}: owns"))
            for each in checked_list(owns, f"{where}: owns", "[CONFIG_MAPS]")
        )
        self.watches: tuple[Watch[Any], ...] = tuple(
            _checked_watch(each, f"{where}: watches")
            for each in checked_list(watches, f"{where}: watches", "[Watch(SECRETS, to=…)]")
        )
        self.sources = tuple(map(source_of, checked_list(sources, f"{where}: sources", "[Every(600)]")))
        if type(workers) is not int or workers < 1:
            raise OptionError(f"{where}: workers must be a number, 1 or more, not {workers!r}")
        self.workers = workers
        if timeout is not None:
            check_seconds(timeout, f"{where}: timeout")
            if not timeout:
                raise OptionError(f"{where}: timeout must be more than 0 seconds, or None for no limit")
        self.timeout = timeout
        if queue is not None and not isinstance(queue, QueueOptions):
            raise UsageError(f"{where}: queue must be QueueOptions(…), not {queue!r}")
        self.queue = queue or QueueOptions()
        if not isinstance(brake, bool):
            raise OptionError(f"{where}: brake must be True or False, not {brake!r}")
        self.brake = brake
        self.writes = checked_writes(writes, f"{where}: writes")
        if not isinstance(elected, bool):
            raise OptionError(f"{where}: elected must be True or False, not {elected!r}")
        self.elected = elected
        if max_staleness is not None:
            check_seconds(max_staleness, f"{where}: max_staleness")
        self.max_staleness = max_staleness
        if informer is not None and not isinstance(informer, Mapping):
            raise UsageError(f"{where}: informer must be a mapping such as {{'namespace': 'shop'}}, not {informer!r}")
        if informer is not None and {"when", "resync_period"} & set(informer):
            raise UsageError(
                f"{where}: informer takes neither when nor resync_period; pass when to the controller, and a period as "
                "sources=[Every(seconds)]"
            )
        self.when = when
        self.informer: InformerOptions[Any] = {**informer} if informer else {}
        self._primary: Primary[T] = Primary(resource, when=when, **self.informer)
        owned = [each.resource.gvr for each in self.owns]
        if twice := [gvr for gvr in owned if owned.count(gvr) > 1]:
            raise UsageError(f"{where}: owns has {twice[0]} more than once; name each resource once")
        self.undecodable_handler: UndecodableHandler | None = None
        self.ledger = Ledger()

    def primary(self) -> Primary[T]:
        """Return the input of the primary's objects, always the same one."""
        return self._primary

    def undecodable(self, handler: UndecodableHandler) -> UndecodableHandler:
        """Run a function for objects that the class, the decoder or the transform of the primary refuses: a decorator.

            @widgets.undecodable
            async def release(request, error): ...

        Its runs are runs of the key, under the same rules as those of the reconciler, which does not run for such an
        object. `request.object` is the object as the server has it now, as a mapping with the keys of the JSON, and
        `error` the `DecodeError`. Helpers such as `finalizing` work with this request. The function runs again for each
        version that cannot be decoded.

        Without a handler, the key is parked, the object gets a Warning Event `Undecodable`, and the manager is not
        ready.

        Raises:
            UsageError: the handler is not an async function of two arguments, or there is one already.
        """
        where = f"controller {self.name}"
        if self.undecodable_handler is not None:
            raise UsageError(f"{where}: undecodable has a handler already, {function_name(self.undecodable_handler)}")
        self.undecodable_handler = async_function(handler, where, "undecodable", "request", "error")
        return handler

    def key_of(self, key: Any) -> ObjectName:
        """Return the name that a key, an `ObjectName` or an object of the primary stands for.

        Raises:
            UsageError: it does not fit the resource.
        """
        try:
            [name] = keys_in(key, self.resource, "", f"controller {self.name}: the caller")
        except (UsageError, ValueError) as error:
            if isinstance(key, (str, ObjectName)):
                shown = repr(str(key))
            else:
                shown = f"an object of type {type(key).__name__}"
            scope, form = ("namespaced", "namespace/name") if self.resource.namespaced else ("cluster-scoped", "name")
            raise UsageError(
                f"controller {self.name}: {shown} is no key of {self.resource.group_resource}, which are {scope}; pass "
                f"{form!r}, an ObjectName, or an object with these in its metadata"
            ) from error
        return name

    def __repr__(self) -> str:
        return f"<controller {self.name} of {self.resource.gvr}>"


def controller(
    resource: Resource[T], *, name: str = "", **options: Unpack[ControllerOptions[Writes]]
) -> Callable[[Reconciler[T]], Controller[T]]:
    """Return a decorator that makes a `Controller` of an async function, named after it.

        @controller(WIDGETS, owns=[CONFIG_MAPS])
        async def widgets(request): ...

    Args:
        resource: the primary resource.
        name: instead of that of the function.
        options: see `Controller`.

    Raises:
        UsageError: an argument is invalid.
    """
    given: Any = resource
    if inspect.isfunction(given):
        raise UsageError("controller: write the resource in the decorator: @manager.controller(WIDGETS)")
    _checked_resource(resource, "controller: resource")

    def declare(reconcile: Reconciler[T]) -> Controller[T]:
        return Controller(name or getattr(reconcile, "__name__", ""), resource, reconcile, **options)

    return declare


def _checked_resource(resource: Any, argument: str) -> Resource[Any]:
    if not isinstance(resource, Resource):
        raise UsageError(f"{argument}: expected a Resource such as core_v1.CONFIG_MAPS, not {resource!r}")
    resource.require("list", "watch")
    return resource


def checked_list(items: Any, argument: str, example: str) -> list[Any]:
    """Return the items of an argument that must be iterable, and is not a text or a mapping.

    Raises:
        UsageError: it is something else; the message has the example.
    """
    if isinstance(items, (str, bytes, Mapping)) or not isinstance(items, Iterable):
        raise UsageError(f"{argument} must be a list, not {items!r}; write {example}")
    return list(items)


def _checked_watch(watch: Any, argument: str) -> Watch[Any]:
    if not isinstance(watch, Watch):
        raise UsageError(f"{argument}: expected a Watch, not {watch!r}; write Watch(SECRETS, to=…)")
    return watch


def checked_writes(writes: Any, argument: str) -> dict[Resource[Any], tuple[str, ...]] | None:
    """Return the verbs of each resource that something declares to write; None if it declares nothing.

    Raises:
        UsageError: it is no mapping of resources to verbs.
    """
    if writes is None:
        return None
    example = '{CONFIG_MAPS: ("create", "patch")}'
    if not isinstance(writes, Mapping):
        raise UsageError(f"{argument} must be a mapping of resources to verbs, not {writes!r}; write {example}")
    checked = {}
    for resource, verbs in writes.items():
        if not isinstance(resource, Resource):
            raise UsageError(f"{argument}: expected a Resource, not {resource!r}; write {example}")
        found = checked_list(verbs, f"{argument}[{resource.gvr}]", example)
        for verb in found:
            if str(verb).rpartition("/")[2] not in VERBS:
                raise OptionError(f"{argument}[{resource.gvr}]: there is no verb {verb!r}, only {', '.join(VERBS)}")
        checked[resource] = tuple(found)
    return checked
