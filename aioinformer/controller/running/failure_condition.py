"""Failures on the object, for programs that read its status: a condition that says whether it is reconciled.

A controller keeps what is to be written, the latest of each key, and one task writes it, by a field manager of its own.
These writes are no writes of a run: no run waits for them, and `only_condition_changed` drops their changes before they
run anything. They need the same rights as those of a run: the leadership, or the slot of the object.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec.structs import replace

from aioinformer.cache.objects.codec import ObjectType
from aioinformer.client.changes.conditions import set_condition
from aioinformer.client.changes.patches import document_of
from aioinformer.controller.writes.sender import RecordingSender, WritePolicy
from aioinformer.errors import AioinformerError, ApiError, ApiNotFound
from aioinformer.handlers.repeated import RepeatedErrors
from aioinformer.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.client.client import Client
    from aioinformer.client.retries import Sender
    from aioinformer.controller.declaration import Controller
    from aioinformer.controller.running.settings import Services
    from aioinformer.controller.writes.own_writes import OwnWrites
    from aioinformer.controller.writes.permits import Permit
    from aioinformer.resources.keys import ObjectName

SUCCEEDED: Final = "ReconcileSucceeded"
#: How many keys wait for a write, at most; the oldest ones are dropped, and written at their next failure.
_KEYS: Final = 4096

_log = get_logger("aioinformer.controller")


def failure_manager(controller: str) -> str:
    """Return the field manager of the conditions that say of objects of a controller that they fail."""
    return f"{controller}-failures"


class Wanted(NamedTuple):
    """What a condition is to say, and the right to write it."""

    status: str
    reason: str
    message: str
    permit: Permit


class FailureCondition:
    """Writes a condition of the objects of a controller.

    Args:
        controller: of the objects.
        kind: the type of the condition.
        stored: returns what the cache of the primary stores of a key.
    """

    def __init__(
        self,
        controller: Controller[Any],
        kind: str,
        services: Services,
        own: OwnWrites,
        stored: Callable[[ObjectName], Any],
    ) -> None:
        self._kind = kind
        self._marker = f'"{kind}"'.encode()
        self._name = controller.name
        self._resource = replace(controller.resource, decoder=None)
        self._to_view = ObjectType(self._resource).to_view
        self._client = services.client.with_options(field_manager=failure_manager(controller.name))
        self._policy = WritePolicy(dry_run=services.settings.dry_run, log=_log)
        self._own = own
        self._stored = stored
        self._errors = RepeatedErrors(_log)
        self._wanted: OrderedDict[ObjectName, Wanted] = OrderedDict()
        self._changed = asyncio.Event()
        #: Why no condition is written any more: the kind has no place for it, or a right is missing.
        self._hopeless = False

    def failed(self, key: ObjectName, reason: str, message: str, permit: Permit) -> None:
        """Let the condition of an object say that it is not reconciled, and why."""
        self._want(key, Wanted("False", reason, self._signed(message), permit))

    def succeeded(self, key: ObjectName, permit: Callable[[], Permit]) -> None:
        """Let the condition of an object say that it is reconciled, if it says that it is not."""
        self._wanted.pop(key, None)
        record = self._stored(key)
        if record is None or self._marker not in record.json:
            return
        found = self._present(self._to_view(record))
        # Another controller may reconcile the object, too, and fail.
        mine = found is not None and (found.get("message") or "").startswith(self._signed(""))
        if found is not None and mine and found.get("status") == "False":
            self._want(key, Wanted("True", SUCCEEDED, self._signed("the object is reconciled again"), permit()))

    async def run(self) -> None:
        """Write until cancelled."""
        try:
            while True:
                await self._changed.wait()
                while self._wanted:
                    key, wanted = self._wanted.popitem(last=False)
                    await self._write(key, wanted)
                self._changed.clear()
        finally:
            self._errors.close()

    def _signed(self, message: str) -> str:
        return f"controller {self._name}: {message}"

    def _want(self, key: ObjectName, wanted: Wanted) -> None:
        if self._hopeless:
            return
        self._wanted[key] = wanted
        if len(self._wanted) > _KEYS:
            self._wanted.popitem(last=False)
        self._changed.set()

    def _present(self, obj: Any) -> dict[str, Any] | None:
        status = document_of(obj).get("status") or {}
        conditions = status.get("conditions") or ()
        return next((dict(each) for each in conditions if each.get("type") == self._kind), None)

    async def _write(self, key: ObjectName, wanted: Wanted) -> None:
        record = self._stored(key)
        if record is None:
            return  # it is gone
        uid = record.uid
        start: Any = self._to_view(record) if record.is_whole else str(key)

        def change(obj: Any) -> Any:
            document = obj if type(obj) is dict else document_of(obj)
            metadata = document.get("metadata") or {}
            present = self._present(document) or {}
            says = (wanted.status, wanted.reason, metadata.get("generation"))
            said = (present.get("status"), present.get("reason"), present.get("observedGeneration"))
            if metadata.get("uid") != uid or says == said:
                return obj  # another object has the name now, or nothing is new
            part = set_condition(
                {"status": document.get("status")},
                self._kind,
                wanted.status,  # type: ignore[arg-type]
                wanted.reason,
                wanted.message,
                observed_generation=metadata.get("generation"),
            )
            return {**document, **part}

        try:
            await self._client_of(wanted.permit).resource(self._resource).status.edit(start, change)
        except ApiNotFound as error:
            if self._stored(key) is not None:
                self._give_up(f"it has no subresource `status`: {error}")
        except ApiError as error:
            if error.status == 403:
                self._give_up(f"grant `patch` of {self._resource.plural}/status: {error}")
            else:
                self._report(key, error)
        except (AioinformerError, OSError) as error:  # such as the end of the leadership
            self._report(key, error)
        except Exception as error:
            _log.exception("controller %s: %s cannot be written for %s", self._name, self._kind, key)
            self._report(key, error)

    def _client_of(self, permit: Permit) -> Client:
        def sender(inner: Sender) -> RecordingSender:
            return RecordingSender(inner, self._policy, _begin, self._own.cached, permit, _log)

        return self._client.with_sender(sender)

    def _give_up(self, why: str) -> None:
        self._hopeless = True
        self._wanted.clear()
        line = "controller %s writes no condition %s any more, before its next start: %s"
        _log.warning(line, self._name, self._kind, why)

    def _report(self, key: ObjectName, error: Exception) -> None:
        subject = f"the condition {self._kind} of controller {self._name}"
        line = "%s was not written for %s, and is at its next failure: %s"
        self._errors.report(subject, error, line, subject, key, error, level=logging.WARNING, key=str(key), lines=2)


def _begin(*_: object) -> Callable[..., None]:
    return _end


def _end(*_: object, **__: object) -> None:
    """No run waits for this write."""
