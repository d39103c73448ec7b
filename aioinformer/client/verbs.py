"""`Verbs`: the requests that objects and their subresources have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, Unpack

import msgspec

from aioinformer.cache.objects.codec import ObjectType
from aioinformer.client import bodies, targets
from aioinformer.client.changes import drift
from aioinformer.client.changes.applied import Applied, difference
from aioinformer.client.changes.editing import Live, check_members, check_stored, edit
from aioinformer.client.changes.ownership import creation_moved
from aioinformer.client.changes.patches import check_whole, document_of
from aioinformer.client.requests import (
    APPLY,
    JSON,
    PATCHES,
    Body,
    PatchType,
    ReadOptions,
    Settings,
    Target,
    WriteOptions,
    locate,
)
from aioinformer.client.retries import Sender, new_request
from aioinformer.errors import ApiError, ApiNotFound, Conflict, Invalid, OptionError, UsageError, explained
from aioinformer.resources.keys import metadata_field, metadata_of
from aioinformer.resources.resource import Resource

if TYPE_CHECKING:
    from aioinformer.client.requests import Query

T = TypeVar("T")

_OWN_FORMER: Final = (
    "the field manager {!r} has written these fields before without an apply: upgrade_managed_fields() makes them "
    "applied ones, and force=True takes over what this apply states"
)

#: What the server says of an object that was read, and is applied as a whole.
_NOT_NIL: Final = "metadata.managedFields must be nil"
_WHOLE: Final = (
    "an apply states the fields that you own: pass these, with the name, instead of a whole object that was read; to "
    "change such an object, use edit() or replace()"
)


class Verbs(Generic[T]):
    """The requests that objects and their subresources have in common.

    Args:
        resource: the resource, whose paths are used.
        objects: makes the objects that are returned.
        namespace: the namespace of the objects, "" for any.
        subresource: the subresource, "" for the objects themselves.
        form: the resource that bodies belong to; `resource` by default.
    """

    __slots__ = ("_form", "_objects", "_sender", "_settings", "_subresource", "namespace", "resource")

    def __init__(
        self,
        sender: Sender,
        settings: Settings,
        resource: Resource[Any],
        objects: ObjectType[T],
        namespace: str = "",
        subresource: str = "",
        form: Resource[Any] | None = None,
    ) -> None:
        self._sender = sender
        self._settings = settings
        self._objects = objects
        self._subresource = subresource
        self._form = form or resource
        self.resource = resource
        self.namespace = namespace

    def __repr__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        part = f"/{self._subresource}" if self._subresource else ""
        return f"<{type(self).__name__} of {self.resource.gvr}{part}{where}>"

    async def get(
        self, target: Target, *, namespace: str = "", resource_version: str = "", **options: Unpack[ReadOptions]
    ) -> T:
        """Return an object as the server has it now.

        Args:
            target: `name`, `namespace/name`, or an object to read again.
            namespace: its namespace, if nothing else names it.
            resource_version: "0" allows the server to answer from its cache, which may be older.
            options: see `ReadOptions`.

        Raises:
            ApiNotFound: there is no such object.
            ApiError: the server refused the request.
            TransportError: there is no answer.
            DecodeError: the answer is not an object.
        """
        settings = self._settings.changed(options, "get()")
        query = (("resourceVersion", resource_version),) if resource_version else ()
        request = new_request(settings, "GET", self._path(target, namespace), query)
        return bodies.decode(await self._sender.exchange(request, settings, safe=True), self._objects)

    async def get_or_none(
        self, target: Target, *, namespace: str = "", resource_version: str = "", **options: Unpack[ReadOptions]
    ) -> T | None:
        """Return an object as the server has it now, None if the server says that it does not exist.

        A server that does not serve the resource also answers 404. That is no proof that the object does not exist, and
        is raised.

        The arguments are those of `get`.

        Raises:
            ApiNotFound: the server does not say that this object is missing.
            AioinformerError: as `get`.
        """
        _, name = locate(self.resource, self.namespace, target, namespace)
        try:
            return await self.get(target, namespace=namespace, resource_version=resource_version, **options)
        except ApiNotFound as error:
            if error.name != name:
                raise
            return None

    async def replace(self, obj: Body[T], *, namespace: str = "", **options: Unpack[WriteOptions]) -> T:
        """Replace an object by another state of it, and return what the server has stored.

        If `metadata.resourceVersion` is set, the server refuses the write unless the object still has this version. It
        removes what `obj` lacks, such as fields that the object has and its class does not: `edit` keeps them.

        Args:
            obj: the whole object; see `aioinformer.client.bodies.encode`.
            namespace: its namespace, if nothing else names it.
            options: see `WriteOptions`.

        Raises:
            UsageError: a cache has only a part of the object: the server would delete the rest.
            Conflict: the object has changed since this version.
            ApiNotFound: there is no such object.
            Invalid: the object breaks rules of its kind.
            ApiError, WriteOutcomeUnknown, TransportError: as every write; see `ResourceClient`.
        """
        check_whole(obj, "replace()")
        settings = self._settings.changed(options, "replace()")
        writing = self._write("PUT", self._path(obj, namespace), bodies.encode(obj, self._form), settings)
        del obj  # it may be a Secret, and a traceback could show it
        return await writing

    async def patch(
        self,
        target: Target,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        type: PatchType = "merge",
        *,
        namespace: str = "",
        **options: Unpack[WriteOptions],
    ) -> T:
        """Change an object, and return what the server has stored.

        Args:
            target: `name`, `namespace/name`, or an object, of which only the name is used.
            patch: a mapping for "merge" and "strategic", a sequence of operations for "json".
            type: "merge" (RFC 7386; lists are replaced as a whole), "json" (RFC 6902), or "strategic", which merges
                some lists of built-in kinds by key. Custom resources do not support the latter.
            namespace: of the object, if nothing else names it.
            options: see `WriteOptions`.

        Raises:
            Conflict: the patch contains `metadata.resourceVersion`, and the object has another version.
            ApiNotFound: there is no such object.
            Invalid: the result breaks rules of its kind.
            ApiError, WriteOutcomeUnknown, TransportError: as every write; see `ResourceClient`.
            OptionError: there is no such type of patch.
            UsageError: the patch has another form than its type.
        """
        settings = self._settings.changed(options, "patch()")
        content_type = PATCHES.get(type)
        if content_type is None:
            raise OptionError(f"type must be one of {', '.join(PATCHES)}, not {type!r}")
        body = bodies.encode_unchecked(patch)
        if body[:1] != (b"[" if type == "json" else b"{"):
            expected = "a sequence of operations" if type == "json" else "a mapping"
            raise UsageError(f"a patch of type {type!r} is {expected}")
        writing = self._write("PATCH", self._path(target, namespace), body, settings, content_type)
        del body, patch  # a traceback could show them
        return await writing

    async def apply(
        self, obj: Body[T], *, force: bool = False, namespace: str = "", **options: Unpack[WriteOptions]
    ) -> T:
        """Apply an object on the server (server-side apply), and return what the server has stored.

        The server sets the fields in `obj`, creates the object if it does not exist, and removes fields that the same
        field manager applied before and that `obj` lacks.

        Args:
            obj: the fields to set, with name. A whole object that was read is refused: with its
                `metadata.managedFields`, the server refuses it, and without them, the apply would own every field.
            force: take over fields that other field managers own.
            namespace: of the object, if nothing else names it.
            options: see `WriteOptions`. A field manager is required, here or in the client.

        Raises:
            UsageError: there is no field manager.
            Conflict: another field manager owns one of the fields; or this one does, since it has created, replaced,
                patched or edited them before: `upgrade_managed_fields` makes them applied ones.
            Invalid: the result breaks rules of its kind.
            ApiError, WriteOutcomeUnknown, TransportError: as every write; see `ResourceClient`.
        """
        settings = self._settings.changed(options, "apply()")
        manager = settings.manager("apply()")
        query = (("force", "true"),) if force else ()
        path = self._path(obj, namespace)
        writing = self._write("PATCH", path, bodies.encode(obj, self._form), settings, APPLY, query)
        del obj  # a traceback could show it
        try:
            return await writing
        except Conflict as error:
            if all(each.manager != manager for each in error.conflicts):
                raise
            raise explained(error, _OWN_FORMER.format(manager)) from None
        except ApiError as error:
            if _NOT_NIL not in str(error):
                raise
            raise explained(error, _WHOLE) from None

    async def apply_if_changed(
        self,
        obj: Body[T],
        cached: T | None,
        *,
        force: bool = False,
        namespace: str = "",
        **options: Unpack[WriteOptions],
    ) -> Applied[T]:
        """Apply an object on the server, unless the cached object proves that this would change nothing.

        The proof is the set of fields that the server has recorded for the field manager in the cached object, and
        equal values in all of them. In any doubt, the request is sent; so always if the cache stores no whole objects
        (`storage="stripped"`, "projection" and "metadata"). A cache that is behind proves it for an earlier state; the
        event that brings it up to date calls your handlers again.

        The request has the uid of the cached object: if another object has the name now, or none, nothing is written.
        The first change of an object that `apply_new` has created needs a request more: it makes the fields of the
        creation applied ones, so that those leave the object that `obj` lacks.

        Args:
            obj: as for `apply`.
            cached: the object in the cache; None if it is not there.
            force: as for `apply`.
            namespace: as for `apply`.
            options: as for `apply`.

        Raises:
            Conflict: another object has the name now, or none; or another field manager owns one of the fields.
            UsageError: as `apply`, as all further errors.
        """
        settings = self._settings.changed(options, "apply_if_changed()")
        manager = settings.manager("apply_if_changed()")
        found, _ = locate(self.resource, self.namespace, obj, namespace)
        document = msgspec.json.decode(bodies.encode(obj, self._form))
        if cached is None:
            reason = "dry run" if settings.dry_run else "the object is not in the cache"
            return Applied(await self.apply(obj, force=force, namespace=namespace, **options), False, reason)
        reason = "dry run"
        if not settings.dry_run:
            reason = difference(document, document_of(cached), manager, found, self._subresource)
        if not reason:
            return Applied(cached, True, "")
        document["metadata"].setdefault("uid", metadata_field(metadata_of(cached), "uid", "uid"))
        try:
            if not (self._subresource or settings.dry_run) and (moved := creation_moved(cached, manager)):
                await self.patch(document, moved, namespace=namespace, **options)
            return Applied(await self.apply(document, force=force, namespace=namespace, **options), False, reason)
        except (ApiNotFound, Invalid) as error:
            if error.name if isinstance(error, ApiNotFound) else "metadata.uid" in error.fields:
                raise Conflict(409, "Conflict", error.message) from error
            if not isinstance(error, Invalid) or not force or self._subresource or settings.dry_run:
                raise
            refusal = error
        taken_back = await self._take_back(document, refusal, manager, namespace, **options)
        return Applied(taken_back, False, reason)

    async def _take_back(
        self, document: dict[str, Any], refusal: Invalid, manager: str, namespace: str, **options: Unpack[WriteOptions]
    ) -> T:
        """Apply a refused configuration again, once the elements whose key somebody has changed are applied ones."""
        found = drift.duplicates(refusal)
        if not found:
            raise refusal
        settings = self._settings.changed(options, "apply_if_changed()")
        request = new_request(settings, "GET", self._path(document, namespace))
        live = msgspec.json.decode(await self._sender.exchange(request, settings, safe=True))
        if live["metadata"].get("uid") != document["metadata"]["uid"]:
            raise Conflict(409, "Conflict", "another object has the name now")
        patch, reason = drift.repair(document, live, manager, found)
        if patch is None:
            raise explained(refusal, reason) if reason else refusal
        await self.patch(document, patch, namespace=namespace, **options)
        return await self.apply(document, force=True, namespace=namespace, **options)

    async def edit(
        self,
        target: T | str,
        change: Callable[[T], Any],
        *,
        namespace: str = "",
        attempts: int = 5,
        **options: Unpack[WriteOptions],
    ) -> T:
        """Change an object by a function, and return what the server has stored.

        The function is called with the object, and returns the new state. The difference is sent as a minimal patch,
        with the version of the object as a precondition: nothing is written that the function has not seen. After a
        conflict, the function is called again, with the live object. If it changes nothing, no request is sent.

            await pods.edit(pod, lambda pod: pod.evolve({"metadata": {"labels": {"seen": "yes"}}}))

        Use `status.edit` for the status of resources where it is a subresource.

        Args:
            target: the object, as a lister or this client has returned it; or a name, for the live object. The live one
                is also read first if a cache has only a part of the object (`storage="projection"` and "metadata", or a
                transform has changed it), and before a list of anything but a view is written: an object of a class of
                your own, or a mapping, may lack elements, or members of them. Members that the class lacks are kept.
            change: returns the new state of its argument, such as `evolve` makes it, or an awaitable of it. It may be
                called several times.
            namespace: of the object, if nothing else names it.
            attempts: how many patches to send before a conflict is raised.
            options: see `WriteOptions`. The timeout is for all requests together, without the time of the function.

        Raises:
            Conflict: there was one in each attempt, or another object has the name now.
            ApiNotFound: there is no such object.
            Invalid: the new state breaks rules of its kind.
            UsageError: the function did not return a state of this object, or changed what this request does not store,
                such as a status that is a subresource. If only the answer shows that, the rest has been written.
            ApiError, WriteOutcomeUnknown, TransportError: as every write; see `ResourceClient`.
            Exception: the function raised this.
        """
        settings = self._settings.changed(options, "edit()")
        whole = self if self._form is not self.resource else self._of_whole_objects()

        def limited_to(seconds: float | None) -> Settings:
            return settings if seconds == settings.timeout else replace(settings, timeout=seconds)

        async def read(current: Any, seconds: float | None) -> Live[T]:
            limited = limited_to(seconds)
            request = new_request(limited, "GET", whole._path(current, namespace))
            raw = await self._sender.exchange(request, limited, safe=True)
            metadata = targets.read(raw).metadata
            return Live(bodies.decode(raw, self._objects), metadata.uid, metadata.resource_version, raw)

        async def write(current: T, patch: dict[str, Any], seconds: float | None) -> T:
            limited = limited_to(seconds)
            body = bodies.encode_plain(patch)
            stored = await self._write("PATCH", self._path(current, namespace), body, limited, PATCHES["merge"])
            if not self._subresource:
                check_stored(self.resource, patch, current, stored)
            return stored

        return await edit(
            target,
            change,
            read=read,
            write=write,
            check=partial(check_members, self.resource, self._subresource),
            attempts=attempts,
            timeout=settings.timeout,
        )

    def _of_whole_objects(self) -> Verbs[T]:
        return Verbs(self._sender, self._settings, self.resource, self._objects, self.namespace)

    async def _write(
        self, method: str, path: str, body: bytes, settings: Settings, content_type: str = JSON, more: Query = ()
    ) -> T:
        query = (*settings.write_query(), *more)
        request = new_request(settings, method, path, query, body, content_type)
        del body  # a traceback could show it; the repr of the request does not
        return bodies.decode(await self._sender.exchange(request, settings, safe=settings.dry_run), self._objects)

    def _path(self, target: object, namespace: str) -> str:
        found, name = locate(self.resource, self.namespace, target, namespace)
        path = self.resource.path(found, name)
        return f"{path}/{self._subresource}" if self._subresource else path
