"""The inputs of a controller in effect: their informers, and the handlers that enqueue requests."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from aioinformer.cache.objects.refusals import TOO_DEEP
from aioinformer.concurrency import create_task
from aioinformer.controller.inputs.mapping import Enqueue, Input, Owns, Primary
from aioinformer.controller.inputs.sources import Every
from aioinformer.errors import AioinformerError, DecodeError, UsageError
from aioinformer.informer.options import merge_indexers
from aioinformer.logs import get_logger
from aioinformer.reflector.state import Phase
from aioinformer.resources.keys import ObjectName, split_meta_namespace_key
from aioinformer.ring.informers import RingInformers
from aioinformer.workqueue.requests.causes import LOW_PRIORITY, NORMAL_PRIORITY, Cause
from aioinformer.workqueue.requests.outcomes import by_namespace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aioinformer.controller.declaration import Controller
    from aioinformer.controller.inputs.loops import LoopDetector
    from aioinformer.factory.pool import ControllerInformers
    from aioinformer.handlers.registration import HandlerRegistration
    from aioinformer.informer.shared_informer import SharedIndexInformer
    from aioinformer.resources.resource import Resource

_log = get_logger("aioinformer.controller")

#: Seconds that a cancelled task of a user has to end, before it is named in the log and not awaited any more.
CLEANING_UP: Final = 10.0
#: Seconds without all first lists before the log says what a controller waits for.
PATIENCE: Final = 10.0

_REMEDIES: Final = {
    Phase.NOT_FOUND: "apply the CustomResourceDefinition, and compare the version with `kubectl api-resources`",
    Phase.FORBIDDEN: "grant `list` and `watch`; `aioinformer check` prints the roles",
    Phase.UNAUTHORIZED: "check the credentials",
}


class InputEnded(AioinformerError):
    """An informer or a source of a controller has ended, so the controller cannot go on."""


class Attached(msgspec.Struct, frozen=True):
    """One input in effect."""

    input: Input[Any]
    informer: SharedIndexInformer[Any]
    registration: HandlerRegistration[Any]


class Inputs:
    """The inputs of one running controller. `add` is called with each key, its cause and its priority.

    Before that, `note_deleted` is called with the key and the uid of each object of the primary that is gone, if it is
    set before `attach`.
    """

    def __init__(
        self,
        controller: Controller[Any],
        informers: ControllerInformers,
        add: Enqueue,
        loops: LoopDetector,
        ignored_condition: str = "",
    ) -> None:
        self._ignored_condition = ignored_condition
        self.note_deleted: Callable[[ObjectName, str], object] | None = None
        self._controller = controller
        self._informers = informers
        self._enqueue = add
        self._loops = loops
        self._acquired: list[SharedIndexInformer[Any]] = []
        self._attached: list[Attached] = []
        #: The primary's objects whose last version cannot be decoded: key -> why, and the version.
        self.undecodable: dict[str, tuple[str, str]] = {}
        #: The namespaces of the primary's informer; None for all.
        self._namespaces: frozenset[str] | None = None

    async def attach(self) -> None:
        """Acquire the informers, and register the handlers. Start the informers afterwards.

        Raises:
            UsageError: the options of an informer contradict those of another controller. Nothing is attached.
        """
        declared = self._controller
        primary = declared.primary()
        try:
            for each in (primary, *declared.owns, *declared.watches):
                informer = self._acquire(each)
                self._acquired.append(informer)
                for indexed, indexers in ((informer, each.indexers()), (self.primary, each.primary_indexers())):
                    if missing := merge_indexers(indexed.get_indexer(), indexers):
                        # It may be large: another controller has filled it.
                        await indexed.add_indexers_in_slices(missing)
                gone = self.note_deleted if each is primary else None
                registration = each.attach(
                    informer,
                    self.primary,
                    self._add,
                    loops=self._loops,
                    on_gone=gone,
                    ignored_condition=self._ignored_condition,
                )
                if declared.queue.group is by_namespace and not each.calls_users():
                    registration.call_at_once()  # saves 6 % of the CPU from a lone event over TLS to an empty run
                self._attached.append(Attached(each, informer, registration))
        except UsageError as error:
            await self.detach()
            raise type(error)(f"controller {declared.name}: {error}") from error
        except BaseException:
            await self.detach()
            raise
        self._namespaces = _namespaces_of(self.primary)
        self.primary.undecodable_handlers.append(self._on_undecodable)
        for key, reason in self.primary.undecodable().items():
            if not reason.endswith(TOO_DEEP):  # its latest version is in the cache, and runs as any other
                self._on_undecodable(key, reason, "")

    def _acquire(self, each: Input[Any]) -> SharedIndexInformer[Any]:
        if self.note_deleted is None or not isinstance(self._informers, RingInformers):
            return self._informers.acquire(each.resource, each.options)
        part: Literal["", "slots", "owned"] = ""
        if isinstance(each, Primary):
            part = "slots"
        elif isinstance(each, Owns) and each.controller_only:
            part = "owned"
        return self._informers.acquire(each.resource, each.options, part)

    async def detach(self) -> None:
        """Remove the handlers, and release the informers. May be repeated."""
        attached = self._attached
        self._attached = []
        if self._acquired and self._on_undecodable in self.primary.undecodable_handlers:
            self.primary.undecodable_handlers.remove(self._on_undecodable)
        for each in attached:
            each.informer.remove_event_handler(each.registration)
        while self._acquired:
            await self._informers.release(self._acquired.pop())

    @property
    def primary(self) -> SharedIndexInformer[Any]:
        """The informer of the primary's objects."""
        return self._acquired[0]

    def informers(self) -> list[SharedIndexInformer[Any]]:
        """Return the informers of all inputs, each one once."""
        return list(dict.fromkeys(self._acquired))

    def includes(self, key: ObjectName) -> bool:
        """Return whether the informer watches the namespace of a key. If not, a missing object may well exist."""
        return self._namespaces is None or not key.namespace or key.namespace in self._namespaces

    def keys(self) -> Iterator[ObjectName]:
        """Return the keys of the objects of the primary, those that cannot be decoded included."""
        cached = self.primary.get_indexer().list_keys() if self._acquired else ()
        return map(split_meta_namespace_key, {**dict.fromkeys(cached), **self.undecodable})

    def counts(self, what: Literal["errors", "lost"]) -> dict[str, int]:
        """Return a count of each input."""
        counts: Counter[str] = Counter()
        for each in self._attached:
            counts[str(each.input)] += getattr(each.input, what)
        return dict(counts)

    def lost_keys(self) -> dict[str, str]:
        """Return the last object of each input for whose change no keys were found in the end."""
        return {str(each.input): each.input.lost_key for each in self._attached if each.input.lost_key}

    def has(self, key: ObjectName | str) -> bool:
        """Return whether the object of a key exists, as far as is known. One that cannot be decoded does."""
        if not self._acquired or self.primary.get_indexer().store.item(str(key)) is not None:
            return True
        try:
            self.primary.check_absent(str(key))
        except DecodeError:
            return True
        return False

    def freshness(self, limit: float | None) -> Callable[[], None]:
        """Return a function that raises `Stale` if a cache has not followed the server for more than `limit` seconds.

        It does not keep the controller in memory. None is no limit.
        """
        return partial(_check_fresh, self._acquired, limit)

    def attached(self) -> tuple[Attached, ...]:
        """Return all inputs in effect, the primary first."""
        return tuple(self._attached)

    def informers_of(self, group: str, plural: str) -> list[SharedIndexInformer[Any]]:
        """Return the informers of a resource, in any version."""
        resources = ((each.informer, each.input.resource) for each in self._attached)
        return [informer for informer, each in resources if (each.group, each.plural) == (group, plural)]

    def of(
        self, wanted: Resource[Any] | Input[Any], kind: type[Input[Any]] = Input, *, owned: bool = False
    ) -> Attached:
        """Return an input, or the one of a resource; of several, the one in `owns` if `owned`.

        Raises:
            UsageError: there is none, since a read starts no watch; or several of the resource have different caches.
        """
        known = [each for each in self._attached if isinstance(each.input, kind)]
        name = self._controller.name
        if isinstance(wanted, Input):
            found = [each for each in known if each.input is wanted]
            if found:
                return found[0]
            raise UsageError(f"controller {name} does not have this {wanted.described()}: add it to owns or watches")
        found = [each for each in known if each.input.resource.gvr == wanted.gvr]
        if owned:
            found = [each for each in found if isinstance(each.input, Owns)] or found
        if len({each.informer for each in found}) > 1:
            choices = ", ".join(each.input.described() for each in found)
            raise UsageError(
                f"controller {name} has several inputs of {wanted.gvr} with different caches: {choices}; pass one of "
                "these declarations instead of the resource"
            )
        if found:
            return found[0]
        where = "owns or watches" if kind is Input else kind.__name__.lower()
        names = ", ".join(each.input.resource.gvr for each in known)
        what = "inputs" if kind is Input else where
        others = f" ({what}: {names})" if names else ""
        raise UsageError(f"controller {name} does not watch {wanted.gvr}{others}: add it to {where}")

    # Running.

    async def follow(self, on_synced: Callable[[], None], resync_period: float) -> None:
        """Run the sources and the resyncs until cancelled.

        `on_synced` is called when all objects of the first lists are enqueued. A `resync_period` of 0 is none, and a
        controller with a timer has only that.

        Raises:
            Exception: an informer or a source ended with it.
        """
        name = f"controller {self._controller.name}"
        tasks = [create_task(_until_end(each), name=f"{name}: {each.informer.name}") for each in self._attached]
        sources = self._controller.sources
        if resync_period and not any(isinstance(source, Every) for source in sources):
            sources = (*sources, Every(resync_period))
        for source in sources:
            running = source.run(self._add, self.keys, self._controller.resource)
            tasks.append(create_task(running, name=f"{name}: source {source.name}"))
        syncs = create_task(self._wait_for_sync(on_synced), name=f"{name}: sync")
        left: set[asyncio.Task[None]] = {*tasks, syncs}
        try:
            while True:
                ended, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    task.result()  # a source may end, and an informer may not
        finally:
            for task in left:
                task.cancel()
            if left:
                _, left = await asyncio.wait(left, timeout=CLEANING_UP)
            for task in left:
                _log.error("%s did not end within %g s of its cancellation: abandoned", task.get_name(), CLEANING_UP)

    def waits_for(self) -> list[str]:
        """Return the inputs that have not synced, with the states of their informers."""
        waiting = [each for each in self._attached if not each.registration.has_synced()]
        return [f"{each.informer.name}: {each.informer.state}" for each in waiting]

    async def _wait_for_sync(self, on_synced: Callable[[], None]) -> None:
        log_wait = asyncio.get_running_loop().call_later(PATIENCE, self._log_wait)
        try:
            await asyncio.sleep(0)  # the informers send their requests
            for each in self._attached:
                each.informer.build_decoders()  # otherwise, the first run would, and seem to block the event loop
            for each in self._attached:
                await each.registration.wait_for_sync()
        finally:
            log_wait.cancel()
        sizes = (f"{len(each.informer.get_indexer())} {each.input.resource.plural}" for each in self._attached)
        _log.info("controller %s has synced: %s", self._controller.name, ", ".join(sizes))
        on_synced()

    def _log_wait(self) -> None:
        remedies = [_REMEDIES.get(each.informer.state.phase, "") for each in self._attached]
        hint = "".join(f"; {remedy}" for remedy in dict.fromkeys(remedies) if remedy)
        line = "controller %s waits, and begins by itself once all inputs have synced: %s%s"
        _log.warning(line, self._controller.name, ", ".join(self.waits_for()), hint)

    def _on_undecodable(self, key: str, reason: str, version: str) -> None:
        """Run the key of an object that cannot be decoded, or can be again."""
        known = self.undecodable.pop(key, None)
        if reason and key:  # no key stands for all objects without a readable name
            self.undecodable[key] = reason, version
            handled = self._controller.undecodable_handler is not None
            if known is not None and known[0] == reason and (known[1] == version or not handled):
                return
        elif known is None or (self.primary.get_indexer().store.item(key) is None and self.has(key)):
            return  # what is on its way into the cache runs its key by itself
        cause = Cause("updated", self._controller.resource.group_resource, key)
        priority = NORMAL_PRIORITY if self.primary.has_synced() else LOW_PRIORITY
        name = split_meta_namespace_key(key)
        self._loops.saw_other(name)
        self._add(name, cause, priority)

    def _add(self, key: ObjectName, cause: Cause, priority: int) -> None:
        if self.includes(key):
            self._enqueue(key, cause, priority)


def _check_fresh(informers: list[SharedIndexInformer[Any]], limit: float | None) -> None:
    if limit is not None:
        for informer in informers:
            informer.check_fresh(limit)


async def _until_end(attached: Attached) -> None:
    await attached.registration.wait_for_end()
    raise InputEnded(f"{attached.informer.name} has ended: {attached.informer.state}")


def _namespaces_of(informer: SharedIndexInformer[Any]) -> frozenset[str] | None:
    several: frozenset[str] | None = getattr(informer, "namespaces", None)
    if several is not None:
        return several
    one = informer.snapshot()["scope"]["namespace"]
    return frozenset({one}) if one else None
