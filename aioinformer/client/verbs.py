"""`Verbs`: the requests that objects and their subresources have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from aioinformer.client import bodies
from aioinformer.client.requests import APPLY, JSON, PATCHES, locate
from aioinformer.client.retries import new_request
from aioinformer.errors import OptionError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aioinformer.cache.objects.codec import ObjectType
    from aioinformer.client.requests import PatchType, Query, ReadOptions, Settings, Target, WriteOptions
    from aioinformer.client.retries import Sender
    from aioinformer.resources.resource import Resource

T = TypeVar("T")


class Verbs(Generic[T]):
    """The requests that objects and their subresources have in common.

    Args:
        sender: sends the requests.
        settings: of the requests.
        resource: the resource, whose paths are used.
        objects: makes the objects that are returned.
        namespace: the namespace of the objects, "" for any.
        subresource: the subresource, "" for the objects themselves.
        form: the resource that bodies belong to; `resource` by default.

    Attributes:
        resource: the resource.
        namespace: the namespace of the objects, "" for any.
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

    async def replace(self, obj: Any, *, namespace: str = "", **options: Unpack[WriteOptions]) -> T:
        """Replace an object by another state of it, and return what the server has stored.

        If `metadata.resourceVersion` is set, the server refuses the write unless the object still has this version.

        Args:
            obj: the whole object; see `aioinformer.client.bodies.encode`.
            namespace: its namespace, if nothing else names it.
            options: see `WriteOptions`.

        Raises:
            Conflict: the object has changed since this version.
            ApiNotFound: there is no such object.
            Invalid: the object breaks rules of its kind.
            ApiError: the server refused the request for another reason.
            WriteOutcomeUnknown: the answer was lost.
            TransportError: there is no answer, and nothing was written.
        """
        settings = self._settings.changed(options, "replace()")
        return await self._write("PUT", self._path(obj, namespace), bodies.encode(obj, self._form), settings)

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
            ApiError: the server refused the request for another reason.
            WriteOutcomeUnknown: the answer was lost.
            TransportError: there is no answer, and nothing was written.
        """
        settings = self._settings.changed(options, "patch()")
        content_type = PATCHES.get(type)
        if content_type is None:
            raise OptionError(f"type must be one of {', '.join(PATCHES)}, not {type!r}")
        body = bodies.encode_plain(patch)
        if body[:1] != (b"[" if type == "json" else b"{"):
            expected = "a sequence of operations" if type == "json" else "a mapping"
            raise UsageError(f"a patch of type {type!r} is {expected}")
        return await self._write("PATCH", self._path(target, namespace), body, settings, content_type)

    async def apply(self, obj: Any, *, force: bool = False, namespace: str = "", **options: Unpack[WriteOptions]) -> T:
        """Apply an object on the server (server-side apply), and return what the server has stored.

        The server sets the fields in `obj`, creates the object if it does not exist, and removes fields that the same
        field manager applied before and that `obj` lacks.

        Args:
            obj: the fields to set, with name.
            force: take over fields that other field managers own.
            namespace: of the object, if nothing else names it.
            options: see `WriteOptions`. A field manager is required, here or in the client.

        Raises:
            UsageError: there is no field manager.
            Conflict: another field manager owns one of the fields.
            Invalid: the result breaks rules of its kind.
            ApiError: the server refused the request for another reason.
            WriteOutcomeUnknown: the answer was lost.
            TransportError: there is no answer, and nothing was written.
        """
        settings = self._settings.changed(options, "apply()")
        if not settings.field_manager:
            raise UsageError('apply() needs a field manager: pass field_manager="…" here or to the client')
        query = (("force", "true"),) if force else ()
        path, body = self._path(obj, namespace), bodies.encode(obj, self._form)
        return await self._write("PATCH", path, body, settings, APPLY, query)

    async def _write(
        self, method: str, path: str, body: bytes, settings: Settings, content_type: str = JSON, more: Query = ()
    ) -> T:
        query = (*settings.write_query(), *more)
        request = new_request(settings, method, path, query, body, content_type)
        return bodies.decode(await self._sender.exchange(request, settings, safe=settings.dry_run), self._objects)

    def _path(self, target: Target, namespace: str) -> str:
        found, name = locate(self.resource, self.namespace, target, namespace)
        path = self.resource.path(found, name)
        return f"{path}/{self._subresource}" if self._subresource else path
