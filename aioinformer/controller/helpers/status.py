"""`set_status`: conditions and other members of the status, as one patch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from aioinformer.cache.objects.encoding import checked_json
from aioinformer.cache.objects.views import View, json_of
from aioinformer.client.changes.conditions import Condition, conditions_in, with_condition
from aioinformer.client.changes.editing import StatusNotStored
from aioinformer.client.changes.patches import document_of, is_same
from aioinformer.controller.helpers.objects import as_mapping, from_document, keeps, whole_objects
from aioinformer.controller.request import Request
from aioinformer.errors import ApiNotFound, Conflict, UsageError
from aioinformer.resources.keys import metadata_field, metadata_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.controller.answers import StatusAnswers
    from aioinformer.resources.resource import Resource

T = TypeVar("T")

#: `set_status` fills them in: other values of them alone are no reason for a write.
_FILLED_IN: Final = ("observedGeneration", "lastTransitionTime")


async def set_status(request: Request[T], conditions: Sequence[Condition] = (), /, **members: Any) -> T | None:
    """Set conditions and other members of the status of the request's object, by one patch.

        ready = Condition("Ready", "True", "AllThere", "3 of 3 are there")
        await set_status(request, [ready], replicas=3)

    No request is sent if nothing changes. Each condition, and the status itself, gets the `observedGeneration` that the
    run has seen, if the object has a `metadata.generation`. `lastTransitionTime` changes only if the status of the
    condition does. Other conditions and members are kept, also those that another client writes at the same time: the
    patch has the version of the object as precondition, and after a conflict it is made again from the live object.

    The status may be a subresource or a part of the object; if the resource does not state it, the answers of the
    server do, and also if that changes. In the latter case, writing it changes the generation, which
    `observedGeneration` takes into account.

    If the server stores another value of a member, or none because it is empty or not in the schema, the member is not
    sent again before the object has another generation, the member another value, or ten minutes have passed. The
    client logs warnings of the server. If the cache or the user's class leaves out a part of the status, the live
    object is read before.

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
        DecodeError: the class of the request's object cannot read the answer.
    """
    if request.object is None:
        raise UsageError(f"set_status: {request.key} is gone; return from the reconciler if request.object is None")
    cached = request.as_stored()
    document = _read(cached)
    if cached is request.object and isinstance(cached, View):
        generation = document["metadata"].get("generation")
    else:
        generation = metadata_field(metadata_of(request.object), "generation", "generation")
    known = request.context.status_answers
    status = _Status(conditions, members, generation, known)
    changed = status.in_subresource(document)
    if not keeps(request, {"status": changed.get("status") or {}}):
        start: Any = str(request.key)
        status.uid = (document.get("metadata") or {}).get("uid") or ""
    elif changed is document:
        return request.object
    else:
        start = as_mapping(cached)
    try:
        stored = await _write(request, start, status, known)
    except ApiNotFound as error:
        if not error.name:  # the resource is not served at the moment, as during the start of a server
            raise
        return None
    status.note_answer(stored)
    written = from_document(request, stored)
    request.object = written
    return written


async def _write(request: Request[Any], start: Any, status: _Status, known: StatusAnswers) -> Any:
    """Write the status as a subresource or as a part of the object, and return the object.

    The answer shows whether that was right. If not, the server is asked which one it is, and the other one is written.
    """
    resource = known.served.get(request.resource.gvr, request.resource)
    is_stated = bool(resource.verbs or resource.subresources)
    is_subresource = "status" in resource.subresources or not is_stated

    async def write(resource: Resource[Any], *, as_subresource: bool) -> Any:
        objects = whole_objects(request, resource)
        if as_subresource:
            return await objects.status.edit(start, status.in_subresource)
        return await objects.edit(start, status.in_object)

    try:
        return await write(resource, as_subresource=is_subresource)
    except ApiNotFound as error:  # the object or the subresource is missing
        if not is_subresource:
            raise
        await whole_objects(request).get(str(request.key))
        failure: ApiNotFound | StatusNotStored = error
    except StatusNotStored as error:  # there is a subresource now, or the schema lacks the members
        failure = error
    for each in await request.client.discover():
        if each.gvr == resource.gvr:
            known.served[each.gvr] = each
            if ("status" in each.subresources) != is_subresource:
                return await write(each, as_subresource=not is_subresource)
    if isinstance(failure, StatusNotStored):
        return failure.stored
    raise failure


class _Seen(msgspec.Struct, gc=False):
    uid: str | None = None
    generation: int | None = None


class _WithStatus(msgspec.Struct, gc=False):
    metadata: _Seen
    status: dict[str, Any] | None = None


_decode_status: Final = msgspec.json.Decoder(_WithStatus).decode


def _read(cached: Any) -> dict[str, Any]:
    """Return the JSON of an object; of a view, only what a status depends on."""
    if isinstance(cached, View):
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found = _decode_status(json_of(cached))
            return {
                "metadata": {"uid": found.metadata.uid, "generation": found.metadata.generation},
                "status": found.status,
            }
    return document_of(cached)


class _Status:
    """The status to be written.

    Attributes:
        uid: of the object, if it is read by its name, which another one may have; "" otherwise.
    """

    def __init__(
        self, conditions: Sequence[Condition], members: Mapping[str, Any], generation: int | None, known: StatusAnswers
    ) -> None:
        self.uid = ""
        self._conditions = conditions
        self._members = msgspec.json.decode(checked_json(members))
        self._generation = generation
        self._known = known
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
        document = obj if type(obj) is dict else document_of(obj)
        if self.uid and document["metadata"].get("uid") != self.uid:
            raise Conflict(409, "Conflict", "another object has the name now")
        known = document.get("status") or {}
        wanted = {**known}
        for each in self._conditions:
            seen = generation if each.observed_generation is None else each.observed_generation
            since = each.last_transition_time or self._now
            reason = each.reason or ""
            message = each.message or ""
            conditions = with_condition(
                conditions_in(wanted),
                each.type,
                each.status,
                reason,
                message,
                observed_generation=seen,
                now=since,
            )
            if conditions is not None:
                wanted["conditions"] = conditions
        wanted |= self._members
        if generation is not None and "observedGeneration" not in self._members:
            wanted["observedGeneration"] = generation
        wanted = {name: value for name, value in wanted.items() if value is not None}
        if is_same(wanted, known):  # the most frequent case
            return obj
        stored = _by_path(wanted)  # what the server would store, by what it has stored before
        for path, (sent, answered) in self._known.of(document.get("metadata") or {}).members.items():
            if path in stored and (path[-1] in _FILLED_IN or is_same(stored[path], sent)):
                stored[path] = answered
        if is_same(_stated(stored), _stated(_by_path(known))):
            return obj
        self._sent = wanted
        return {**document, "status": wanted}

    def note_answer(self, stored: Any) -> None:
        """Note what the server has stored otherwise than it was sent. The client logs the warnings of the server."""
        document = document_of(stored)
        sent, found = (_by_path(each) for each in (self._sent, document.get("status") or {}))
        other = {path: (value, found.get(path)) for path, value in sent.items() if not is_same(value, found.get(path))}
        if other:
            self._known.note(document["metadata"], other)


def _by_path(status: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    """Return the members of a status by name, and those of each condition by type and name."""
    found: dict[tuple[str, ...], Any] = {(name,): value for name, value in status.items() if name != "conditions"}
    for each in status.get("conditions") or ():
        found |= {(each.get("type", ""), name): value for name, value in each.items()}
    return found


def _stated(members: Mapping[tuple[str, ...], Any]) -> dict[tuple[str, ...], Any]:
    return {path: value for path, value in members.items() if value is not None}
