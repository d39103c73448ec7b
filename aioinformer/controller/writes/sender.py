"""`RecordingSender`: checks the writes of a reconciler before they are sent, and records them afterwards."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from aioinformer.client.retries import Sender, pause_before_repeating
from aioinformer.controller.writes.dry_run import pretend
from aioinformer.controller.writes.targets import VERBS, target_of
from aioinformer.errors import USER_ERRORS, ApiError, OptionError, TransportError, UsageError, WriteOutcomeUnknown
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    import logging
    from collections.abc import AsyncIterator, Callable, Collection, Mapping

    from aioinformer.client.requests import Settings
    from aioinformer.controller.writes.own_writes import OwnWrites
    from aioinformer.controller.writes.targets import Target
    from aioinformer.resources.keys import ObjectName
    from aioinformer.resources.resource import Resource
    from aioinformer.transport import Request, Response


class UndeclaredWrite(UsageError):
    """A reconciler wrote what `writes=` of its controller does not declare. Nothing was sent."""


class WritePolicy:
    """What is checked before each write of a controller.

    Args:
        declared: resource -> verbs ("create", "update", "patch", "delete", "deletecollection"), which include those of
            subresources; or a subresource and a verb, "status/patch". None: nothing is checked.
        strict: an undeclared write raises; otherwise a warning is logged, one for each verb and resource.
        dry_run: writes are logged and not sent.
        fence: called right before each attempt of a write, repetitions included. It raises if the write must not be
            sent, and may return the number of seconds after which it must be asked again while the write is under way.
        log: for warnings, and for the writes of a dry run.

    Attributes:
        dry_run: as given.
        fence: as given.
        log: as given.

    Raises:
        OptionError: there is no such verb.
    """

    def __init__(
        self,
        declared: Mapping[Resource[Any], Collection[str]] | None = None,
        *,
        strict: bool = False,
        dry_run: bool = False,
        fence: Callable[[], float | None] | None = None,
        log: logging.Logger | logging.LoggerAdapter[Any] | None = None,
    ) -> None:
        self.dry_run = dry_run
        self.fence = fence
        self.log = log or get_logger("aioinformer.controller")
        self._strict = strict
        self._declared: set[tuple[str, str, str]] | None = None
        self._warned: set[tuple[str, str]] = set()
        if declared is not None:
            self._declared = set()
            for resource, verbs in declared.items():
                for verb in _checked(resource, verbs):
                    self._declared.add((resource.group, resource.plural, verb))

    def check(self, target: Target) -> None:
        """Check that a write is declared.

        Raises:
            UndeclaredWrite: it is not, and the policy is strict.
        """
        declared = self._declared
        if declared is None or (target.group, target.plural, target.verb) in declared:
            return
        verb = f"{target.subresource}/{target.verb}" if target.subresource else target.verb
        if target.subresource and (target.group, target.plural, verb) in declared:
            return
        message = f"{target} is not declared: add {verb!r} to writes= of the controller, for {target.what}"
        if self._strict:
            raise UndeclaredWrite(message)
        if (target.what, verb) not in self._warned:
            self._warned.add((target.what, verb))
            self.log.warning("%s; it is sent, and will be refused if the permissions follow the declaration", message)


def _checked(resource: Resource[Any], verbs: Collection[str]) -> Collection[str]:
    if isinstance(verbs, str):
        raise OptionError(f"writes: expected a tuple of verbs for {resource.gvr}, not {verbs!r}")
    for verb in verbs:
        if verb.rpartition("/")[2] not in VERBS:
            raise OptionError(f"writes: {resource.gvr} has no verb {verb!r}; the verbs are {', '.join(VERBS)}")
    return verbs


class RecordingSender(Sender):
    """Sends the requests of a reconciler's client.

    Args:
        sender: of the client; has the transport and the warnings that were logged.
        writes: records the writes, and has the policy that is checked before each of them.
        key: of the run.
        fence: instead of that of the policy.
    """

    def __init__(
        self, sender: Sender, writes: OwnWrites, key: ObjectName, fence: Callable[[], float | None] | None = None
    ) -> None:
        super().__init__(sender.transport, logged=sender.logged)
        self._writes = writes
        self._key = key
        self._policy = writes.policy
        self._fence = fence or writes.policy.fence

    async def exchange(self, request: Request, settings: Settings, *, safe: bool) -> bytes:
        """Send a request as any sender, and record it if it is a write.

        Raises:
            UndeclaredWrite: the write is not declared. It was not sent.
            Exception: the fence raised this. The write was not sent.
            AioinformerError: as any sender.
        """
        target = None if request.method == "GET" else target_of(request)
        if target is None:
            return await super().exchange(request, settings, safe=safe)
        self._policy.check(target)
        if self._policy.dry_run:
            self._policy.log.info("dry run: %s, %d bytes, is not sent", target, len(request.body or b""))
            return await pretend(target, request, self._writes.cached(target), self._exchange_once)
        if settings.dry_run:
            return await super().exchange(request, settings, safe=safe)
        flight = self._writes.begin(self._key, target, request)
        if flight is None:
            return await super().exchange(request, settings, safe=safe)
        try:
            answer = await super().exchange(request, settings, safe=safe)
        except BaseException as error:
            unknown, missing = _may_be_processed(error), _is_missing(error, target)
            self._writes.end(self._key, flight, unknown=unknown, missing=missing)
            raise
        self._writes.end(self._key, flight, answer)
        return answer

    async def open(self, request: Request) -> Response:
        """Send a request once. The fence is called before each write."""
        if self._fence is None or request.method == "GET":
            return await super().open(request)
        async with _while_permitted(self._fence):
            return await super().open(request)


@asynccontextmanager
async def _while_permitted(fence: Callable[[], float | None]) -> AsyncIterator[None]:
    """Run the block while a fence permits it. The fence is called again when the time that it has granted is over.

    Raises:
        Exception: the fence raised this, before the block or while it ran.
    """
    loop = asyncio.get_running_loop()
    refusal: BaseException | None = None
    timer: asyncio.TimerHandle | None = None

    def check() -> None:
        nonlocal refusal, timer
        timer = None
        try:
            seconds = fence()
        except USER_ERRORS as error:
            refusal = error
            limit.reschedule(loop.time())
        else:
            if seconds is not None:
                timer = loop.call_later(seconds, check)

    seconds = fence()
    try:
        async with asyncio.timeout(None) as limit:
            if seconds is not None:
                timer = loop.call_later(seconds, check)
            yield
    except TimeoutError:
        if refusal is None:
            raise
        raise refusal from None
    finally:
        if timer is not None:
            timer.cancel()


def _may_be_processed(error: BaseException) -> bool:
    """Return whether the server may have processed a write that ended with this error."""
    if isinstance(error, ApiError):
        return error.status >= 500 and pause_before_repeating(error, safe=False) is None
    if isinstance(error, (TransportError, UsageError)):
        return isinstance(error, WriteOutcomeUnknown)
    return True  # a cancellation; an answer that is too large; an error of the transport


def _is_missing(error: BaseException, target: Target) -> bool:
    """Return whether the server has answered that it does not have the object."""
    return (
        isinstance(error, ApiError)
        and (error.status, error.reason) == (404, "NotFound")
        and bool(target.name)
        and not target.subresource
        and error.details.get("name") == target.name
    )
