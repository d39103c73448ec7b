"""`set_status`: conditions and other members of the status, as one patch."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from aioinformer.cache.objects.changes import encoded
from aioinformer.client.changes.conditions import set_condition
from aioinformer.client.changes.patches import document_of, is_same
from aioinformer.controller.helpers.objects import as_mapping, from_document, keeps, whole_objects
from aioinformer.errors import ApiNotFound, UsageError
from aioinformer.resources.keys import metadata_field, metadata_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aioinformer.client.changes.conditions import Condition
    from aioinformer.controller.request import Request
    from aioinformer.transport import Transport

T = TypeVar("T")


async def set_status(request: Request[T], conditions: Sequence[Condition] = (), /, **members: Any) -> T | None:
    """Set conditions and other members of the status of the request's object, by one patch.

        ready = Condition("Ready", "True", "AllThere", "3 of 3 are there")
        await set_status(request, [ready], replicas=3)

    No request is sent if nothing changes. Each condition, and the status itself, gets the `observedGeneration` that the
    run has seen, if the object has a `metadata.generation`. `lastTransitionTime` changes only if the status of the
    condition does. Other conditions and members are kept, also those that another client writes at the same time: the
    patch has the version of the object as precondition, and after a conflict it is made again from the live object.

    The status may be a subresource or a part of the object; if the resource does not state it, the first answer of the
    server does. In the latter case, writing it changes the generation, which `observedGeneration` takes into account.

    If the schema of the server drops a member, the client logs the warning of the server, and the absence of the member
    does not count as a change. If the user's class leaves out a part of the status, the live object is read before.

    Args:
        request: of the reconciler. Its `object` is then the written object.
        conditions: to set. What they leave out is filled in, as above.
        members: of the status, with the names of the JSON. A value replaces the former one as a whole; None removes it.

    Returns:
        The object as it is stored; None if it is gone.

    Raises:
        UsageError: the request has no object, or a condition is invalid.
        Conflict: there was one in each attempt, or another object has the name now.
        Invalid: the status breaks rules of its kind.
        ApiError: the server refused the patch for another reason.
        WriteOutcomeUnknown: the answer was lost.
        TransportError: there is no answer, and nothing was written.
    """
    if request.object is None:
        raise UsageError(f"set_status: {request.key} is gone; return from the reconciler if request.object is None")
    generation = metadata_field(metadata_of(request.object), "generation", "generation")
    known = _known.setdefault(request.client.transport, _Known())
    status = _Status(conditions, members, generation, known.dropped.setdefault(request.resource.gvr, set()))
    whole = as_mapping(request.object)
    changed = status.in_subresource(whole)
    start = whole if keeps(request, {"status": document_of(changed).get("status") or {}}) else str(request.key)
    if changed is start:
        return request.object
    try:
        stored = await _write(request, start, status, known)
    except ApiNotFound as error:
        if not error.name:  # the resource is not served at the moment, as during the start of a server
            raise
        return None
    status.note_dropped(stored)
    request.object = written = from_document(request, stored)
    return written


async def _write(request: Request[Any], start: Any, status: _Status, known: _Known) -> Any:
    """Write the status as a subresource or as a part of the object, and return the object."""
    objects, resource = whole_objects(request), request.resource
    is_subresource = known.is_subresource.get(resource.gvr)
    if is_subresource is None and (resource.verbs or resource.subresources):
        is_subresource = "status" in resource.subresources
    if is_subresource is not False:
        try:
            return await objects.status.edit(start, status.in_subresource)
        except ApiNotFound:
            if is_subresource:
                raise
        # The object or the subresource is missing.
        served = await request.client.resource_for({"apiVersion": resource.api_version, "kind": resource.kind})
        is_subresource = known.is_subresource[resource.gvr] = "status" in served.resource.subresources
    return await objects.edit(start, status.in_object)


class _Known:
    """What the answers of a server have shown, by resource."""

    def __init__(self) -> None:
        self.is_subresource: dict[str, bool] = {}
        self.dropped: dict[str, set[tuple[str, ...]]] = {}  # paths in the status; conditions have no index


_known: WeakKeyDictionary[Transport, _Known] = WeakKeyDictionary()


class _Status:
    """The status to be written."""

    def __init__(
        self,
        conditions: Sequence[Condition],
        members: Mapping[str, Any],
        generation: int | None,
        dropped: set[tuple[str, ...]],
    ) -> None:
        self._conditions = conditions
        self._members = msgspec.json.decode(encoded(members))
        self._generation = generation
        self._dropped = dropped
        self._now = datetime.now(UTC)
        self._sent: dict[str, Any] = {}

    def in_subresource(self, obj: Any) -> Any:
        """Return the object with the status; the object itself if nothing changes."""
        return self._set(obj, self._generation)

    def in_object(self, obj: Any) -> Any:
        """Do the same for an object whose generation grows with each change of its status."""
        changed = self._set(obj, self._generation)
        if changed is obj or changed["metadata"].get("generation") != self._generation or self._generation is None:
            return changed
        return self._set(obj, self._generation + 1)

    def _set(self, obj: Any, generation: int | None) -> Any:
        new = obj
        for each in self._conditions:
            seen = generation if each.observed_generation is None else each.observed_generation
            since = each.last_transition_time or self._now
            reason, message = each.reason or "", each.message or ""
            new = set_condition(new, each.type, each.status, reason, message, observed_generation=seen, now=since)
        document = document_of(new)
        wanted = {**(document.get("status") or {}), **self._members}
        if generation is not None and "observedGeneration" not in self._members:
            wanted["observedGeneration"] = generation
        wanted = {name: value for name, value in wanted.items() if value is not None}
        if is_same(self._stored_part(wanted), self._stored_part(document_of(obj).get("status") or {})):
            return obj
        self._sent = wanted
        return {**document, "status": wanted}

    def _stored_part(self, status: dict[str, Any]) -> dict[str, Any]:
        """Return a status without the members that the server drops."""
        found = {name: value for name, value in status.items() if (name,) not in self._dropped and value is not None}
        if isinstance(found.get("conditions"), list):
            found["conditions"] = [
                {name: value for name, value in each.items() if ("conditions", name) not in self._dropped}
                for each in found["conditions"]
            ]
        return found

    def note_dropped(self, stored: Any) -> None:
        """Note the members that were sent and that the answer lacks. The client logs the warnings of the server."""
        found = document_of(stored).get("status") or {}
        self._dropped |= {(name,) for name in self._sent if name not in found}
        answered = {each.get("type"): each for each in found.get("conditions") or ()}
        for each in self._sent.get("conditions") or ():
            kept = answered.get(each.get("type"), each)
            self._dropped |= {("conditions", name) for name, value in each.items() if value and name not in kept}
