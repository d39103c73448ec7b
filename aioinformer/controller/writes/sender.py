"""`RecordingSender`: checks the writes of a reconciler before they are sent, and records them afterwards."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from aioinformer.cache.objects.record import Record
from aioinformer.client.requests import APPLY
from aioinformer.client.retries import Sender, pause_before_repeating
from aioinformer.client.targets import VERBS, Target, target_of
from aioinformer.controller.writes.dry_run import pretend
from aioinformer.controller.writes.permits import WITH_UID, Fence, Leaving, PermittedWrite, with_uid
from aioinformer.errors import (
    AioinformerError,
    AlreadyExists,
    ApiError,
    ApiNotFound,
    OptionError,
    TransportError,
    UsageError,
    WriteOutcomeUnknown,
)
from aioinformer.logs import get_logger
from aioinformer.resources.resource import Resource
from aioinformer.transport import HttpRequest

if TYPE_CHECKING:
    from aioinformer.client.requests import Settings
    from aioinformer.controller.writes.permits import Permit
    from aioinformer.transport import Response

Begin: TypeAlias = Callable[[Target, HttpRequest], Callable[..., None]]
Cached: TypeAlias = Callable[[Target], Record | None]
Log: TypeAlias = logging.Logger | logging.LoggerAdapter[logging.Logger]
#: The least time between two questions to the permit about the same write, in seconds.
_LEAST: Final = 0.1


class UndeclaredWrite(UsageError):
    """A reconciler wrote what its controller does not declare in `writes`. The request was not sent."""


class WritePolicy:
    """What is checked before each write of a controller.

    Args:
        declared: resource -> verbs: "create", "update", "patch", "delete" and "deletecollection" for objects,
            "status/patch" and "scale/patch" for a subresource alone. None: nothing is checked.
        status_of: the resource of whose status the verbs for objects include the writes, as that of a controller has
            it; None for all of them.
        strict: an undeclared write raises. Otherwise it is sent, and a warning is logged for each resource and verb.
        dry_run: writes are logged, and not sent.
        show_values: the log of a dry run has the values of members, except those of Secrets.
        fence: called right before each attempt of a write, repetitions included, and when its bytes leave; see `Fence`.
        log: for warnings, and for the writes of a dry run, unless a client has its own.

    Attributes:
        dry_run, show_values, fence, log: as given.

    Raises:
        OptionError: there is no such verb.
    """

    def __init__(
        self,
        declared: Mapping[Resource[Any], Collection[str]] | None = None,
        *,
        status_of: Resource[Any] | None = None,
        strict: bool = False,
        dry_run: bool = False,
        show_values: bool = False,
        fence: Fence | None = None,
        log: Log | None = None,
    ) -> None:
        self.dry_run = dry_run
        self.show_values = show_values
        self.fence = fence
        self.log: Log = log or get_logger("aioinformer.controller")
        self._status_of = None if status_of is None else (status_of.group, status_of.plural)
        self._strict = strict
        self._warned: set[tuple[str, str]] = set()
        self._declared: set[tuple[str, str, str]] | None = None if declared is None else set()
        for resource, verbs in (declared or {}).items():
            for verb in (verbs,) if isinstance(verbs, str) else verbs:
                if verb.rpartition("/")[2] not in VERBS:
                    raise OptionError(f"writes: {resource.gvr} has {verb!r}; the verbs are {', '.join(VERBS)}")
                assert self._declared is not None
                self._declared.add((resource.group, resource.plural, verb))

    def check(self, target: Target, log: Log) -> None:
        """Check that a write is declared.

        Raises:
            UndeclaredWrite: it is not, and the policy is strict.
        """
        exact = f"{target.subresource}/{target.verb}" if target.subresource else target.verb
        # Other subresources, such as `scale` and `eviction`, are permissions that few controllers need.
        is_included = target.subresource == "status" and self._status_of in (None, (target.group, target.plural))
        verbs = (target.verb, exact) if is_included else (exact,)
        if self._declared is None or any((target.group, target.plural, verb) in self._declared for verb in verbs):
            return
        message = (
            f"{target} is not declared: add {exact!r} for {target.what.partition('/')[0]} to writes= of the controller"
        )
        if self._strict:
            raise UndeclaredWrite(message)
        if (target.what, exact) not in self._warned:
            self._warned.add((target.what, exact))
            log.warning("%s; it is sent, but the RBAC rules of the declaration do not permit it", message)


class RecordingSender(Sender):
    """Sends the requests of a reconciler's client.

    `begin` is called before each write and returns what is called after it: see `OwnWrites.begin` and `end`. `cached`
    returns the cached object of a target. The permit answers whether a write may leave; None: all may. The log is used
    instead of that of the policy.
    """

    def __init__(
        self, sender: Sender, policy: WritePolicy, begin: Begin, cached: Cached, permit: Permit | None, log: Log | None
    ) -> None:
        super().__init__(sender.transport, sender.random, sender.logged)
        self._policy = policy
        self._begin = begin
        self._cached = cached
        self._permit = permit
        self._log = log or policy.log

    def outside_ring(self) -> RecordingSender:
        """Return a sender whose writes need not belong to the ring."""
        permit = self._permit
        if permit is None or permit.outside_ring() is permit:
            return self
        return RecordingSender(self, self._policy, self._begin, self._cached, permit.outside_ring(), self._log)

    async def exchange(self, request: HttpRequest, settings: Settings, *, safe: bool) -> bytes:
        """Send a request as any sender, and record it if it is a write.

        Raises:
            UndeclaredWrite: the write is not declared, and was not sent.
            Exception: the permit raised this, and the write was not sent.
            AioinformerError: as any sender.
        """
        if request.method == "GET":
            return await super().exchange(request, settings, safe=safe)
        target = target_of(request)
        permit = self._permit
        if permit is None:
            return await self._exchange_write(request, settings, target, safe=safe)
        stored = None
        if target is not None:
            if permit.must_read(target, request):
                stored = await self._read(target, request, settings)
            if stored and target.subresource in WITH_UID:
                uid = _uid_in(stored)
            else:
                uid = permit.uid_of(target)
            if uid:
                request = with_uid(request, target, uid)
        # A dry run changes nothing, so it may be sent on old caches.
        write = PermittedWrite(permit, Leaving(target, request.body, stored), fresh=not settings.dry_run)
        permit.unanswered.add(write)
        try:
            return await self._exchange_write(replace(request, check=write), settings, target, safe=safe)
        finally:
            permit.unanswered.discard(write)

    async def _exchange_write(
        self, request: HttpRequest, settings: Settings, target: Target | None, *, safe: bool
    ) -> bytes:
        policy = self._policy
        check = request.check
        if target is None:
            if policy.dry_run:
                raise UsageError(f"dry run: {request.method} {request.path} is not sent, and has no known answer")
            return await super().exchange(request, settings, safe=safe)
        policy.check(target, self._log)
        if policy.dry_run:
            return await self._pretend(target, request)
        if settings.dry_run:
            return await super().exchange(request, settings, safe=safe)
        end = self._begin(target, request)
        try:
            answer = await super().exchange(request, settings, safe=safe)
        except BaseException as error:
            missing = isinstance(error, ApiNotFound) and error.details.get("name") == target.name
            either = missing and bool(target.subresource)  # the object or the subresource
            unsent = check is not None and check.unsent
            unknown = either or (not unsent and _must_be_read(error))
            end(unknown=unknown, missing=missing and not either)
            raise
        end(answer)
        return answer

    async def _read(self, target: Target, request: HttpRequest, settings: Settings) -> bytes | None:
        """Return the object that a write is about; None if there is none, and the write may make it."""
        if target.subresource:
            path = request.path.removesuffix(f"/{target.subresource}")
        else:
            path = request.path
        read = replace(request, path=path, method="GET", query=(), body=None, sending=None)
        try:
            return await super().exchange(read, settings, safe=True)
        except ApiNotFound as error:
            makes = target.verb == "update" or request.headers.get("Content-Type") == APPLY
            if not makes or error.name != target.name:  # perhaps the resource is not served at the moment
                raise
            return None

    async def _pretend(self, target: Target, request: HttpRequest) -> bytes:
        values = self._policy.show_values
        selectors = [(name, value) for name, value in request.query if name.endswith("Selector")]
        selected = "".join(f" with {name} {value}" if values else f" with a {name}" for name, value in selectors)
        what = f"dry run: {target}{selected} is not sent"
        try:
            cached = self._cached(target)
            answer, lines = await pretend(target, request, cached, self._exchange_once, values=values)
        except ApiError as error:
            self._log.info("%s, and would fail: %s", what, error)
            raise
        if lines:
            self._log.info("%s:", what)
        elif request.method in ("PUT", "PATCH"):
            self._log.info("%s; it changes nothing", what)
        else:
            self._log.info("%s", what)
        for line in lines:
            self._log.info("  %s", line)
        return answer

    async def open(self, request: HttpRequest) -> Response:
        """Send a request once. The permit is asked before each write, and again when its bytes leave.

        Raises:
            TransportError: the answer did not arrive in the time that the permit has granted.
            AioinformerError: as any sender.
        """
        check = request.check
        if not isinstance(check, PermittedWrite):
            return await super().open(request)
        check.unsent = True
        if (granted := check()) is None:
            return await super().open(request)
        limit = asyncio.timeout(granted)
        renewal = _Renewal(limit, granted, check)
        try:
            async with limit:
                return await super().open(request)
        except TimeoutError:
            if not limit.expired():
                raise
            late = TransportError(f"{request.method} {request.path}: no answer before the leadership ended")
            late.unsent = check.unsent
            if late.unsent:
                check.check_right()  # it says why the request is not sent any more
            raise late from None
        finally:
            renewal.timer.cancel()


class _Renewal:
    """Moves a time limit while the permit grants more time: a slow answer is awaited as long as the right lasts."""

    def __init__(self, limit: asyncio.Timeout, granted: float, write: PermittedWrite) -> None:
        self._limit = limit
        self._write = write
        self._loop = asyncio.get_running_loop()
        self.timer = self._loop.call_later(max(granted / 2, _LEAST), self._ask)

    def _ask(self) -> None:
        if self._limit.expired():
            return
        with suppress(AioinformerError):  # otherwise, the limit stays
            granted = self._write.check_right()
            self._limit.reschedule(None if granted is None else self._loop.time() + granted)
            self.timer = self._loop.call_later(max((granted or 0.0) / 2, _LEAST), self._ask)


def _uid_in(stored: bytes) -> str:
    return str(msgspec.json.decode(stored)["metadata"]["uid"])


def _must_be_read(error: BaseException) -> bool:
    """Return whether a write that failed may have been processed, or has shown that the cache lacks an object."""
    if isinstance(error, ApiError):
        processed = error.status >= 500 and pause_before_repeating(error, safe=False) is None
        return processed or isinstance(error, AlreadyExists)
    if isinstance(error, (TransportError, UsageError)):
        return isinstance(error, WriteOutcomeUnknown)
    return True  # a cancellation; an answer that is too large; an error of the transport
