"""`ResourceClient`: reads and writes the objects of one resource."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack

from aioinformer.client import bodies
from aioinformer.client.lists import Listing, PageRequests, list_options
from aioinformer.client.requests import APPLY, JSON, PATCHES, delete_options, locate, namespace_in, place
from aioinformer.errors import OptionError, UsageError
from aioinformer.resources.scopes import check_namespace
from aioinformer.transport import Request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aioinformer.cache.objects.codec import ObjectType
    from aioinformer.client.bodies import Status
    from aioinformer.client.lists import Page
    from aioinformer.client.requests import PatchType, Propagation, Query, ReadOptions, Settings, Target, WriteOptions
    from aioinformer.client.retries import Sender
    from aioinformer.resources.resource import Resource
    from aioinformer.resources.selectors import FieldSelector, LabelSelector

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
        request = Request(self._path(target, namespace), query, headers=settings.headers())
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
        request = Request(path, query, method, settings.headers(content_type), body)
        return bodies.decode(await self._sender.exchange(request, settings, safe=settings.dry_run), self._objects)

    def _path(self, target: Target, namespace: str) -> str:
        found, name = locate(self.resource, self.namespace, target, namespace)
        path = self.resource.path(found, name)
        return f"{path}/{self._subresource}" if self._subresource else path


class ResourceClient(Verbs[T]):
    """Reads and writes the objects of one resource, without a cache.

    `client.core.v1.pods`, `client.resource(WIDGETS)` and `await client.resource_for(obj)` return one. What its methods
    return is what listers return: immutable objects that keep the bytes of the server.
    """

    __slots__ = ()

    def namespaced(self, namespace: str) -> Self:
        """Return a client of one namespace.

        Raises:
            UsageError: the resource is cluster-scoped, or the namespace is not a valid name.
        """
        if not namespace:
            raise UsageError('namespaced(""): name a namespace, or use the client itself for all namespaces')
        check_namespace(namespace)
        if not self.resource.namespaced:
            raise UsageError(f"{self.resource.gvr} is cluster-scoped, and has no namespaces")
        return type(self)(self._sender, self._settings, self.resource, self._objects, namespace)

    def list(
        self,
        label_selector: str | LabelSelector | Mapping[str, str] = "",
        field_selector: str | FieldSelector | Mapping[str, str] = "",
        *,
        namespace: str = "",
        page_size: int = 500,
        limit: int | None = None,
        resource_version: str = "",
        resource_version_match: str = "",
        **options: Unpack[ReadOptions],
    ) -> Listing[T]:
        """Return a list to read: `async for obj in pods.list()`, `await pods.list()`, or `pods.list().pages()`.

        The request is sent when the list is read. Without a namespace here or in the client, the objects of all
        namespaces are listed.

        Args:
            label_selector: applied by the server: a string, a mapping of labels, or a parsed selector.
            field_selector: applied by the server: a string, a mapping of fields, or a parsed selector.
            namespace: "" for that of the client.
            page_size: the number of objects in a page, 0 for one page.
            limit: the number of objects after which the list ends, None for all.
            resource_version: the list must not be older; "" for the current state, "0" for any.
            resource_version_match: "", "NotOlderThan" or "Exact".
            options: see `ReadOptions`. The timeout is that of each page.

        Raises:
            SelectorError: a selector does not parse.
            UsageError: an option is invalid.
        """
        first = list_options(label_selector, field_selector, page_size, resource_version, resource_version_match, limit)
        settings = self._settings.changed(options, "list()")
        path = self.resource.path(self._scope(namespace))
        return Listing(PageRequests(self._sender, settings, self.resource, path, self._objects), first, limit)

    async def create(self, obj: Any, *, namespace: str = "", **options: Unpack[WriteOptions]) -> T:
        """Create an object, and return what the server has stored.

        With `metadata.generateName` instead of a name, the server appends a random part.

        Args:
            obj: the object; see `aioinformer.client.bodies.encode`.
            namespace: its namespace, if nothing else names it.
            options: see `WriteOptions`.

        Raises:
            AlreadyExists: there is an object of this name.
            Invalid: the object breaks rules of its kind.
            ApiError: the server refused the request for another reason.
            WriteOutcomeUnknown: the answer was lost.
            TransportError: there is no answer, and nothing was created.
        """
        settings = self._settings.changed(options, "create()")
        path = self.resource.path(place(self.resource, self.namespace, namespace_in(obj), namespace))
        return await self._write("POST", path, bodies.encode(obj, self.resource), settings)

    async def delete(
        self,
        target: Target,
        *,
        namespace: str = "",
        propagation: Propagation | None = None,
        grace: int | None = None,
        uid: str = "",
        resource_version: str = "",
        **options: Unpack[WriteOptions],
    ) -> T | Status:
        """Delete an object.

        Args:
            target: `name`, `namespace/name`, or an object, of which only the name is used.
            namespace: of the object, if nothing else names it.
            propagation: what happens to the objects that it owns; None for the default of the resource.
            grace: seconds before the object is removed, 0 for at once; None for the default of the object.
            uid: delete only the object of this uid, and none that was created later under its name.
            resource_version: delete only this version.
            options: see `WriteOptions`.

        Returns:
            The object, if it exists until finalizers or its grace period end; otherwise a Status, or the last state of
            the object. Which of these comes for a complete deletion depends on the resource.

        Raises:
            ApiNotFound: there is no such object.
            Conflict: the object has another uid or version.
            ApiError: the server refused the request for another reason.
            WriteOutcomeUnknown: the answer was lost.
            TransportError: there is no answer, and nothing was deleted.
        """
        settings = self._settings.changed(options, "delete()")
        body = delete_options(propagation, grace, uid, resource_version, dry_run=settings.dry_run)
        answer = await self._delete(self._path(target, namespace), (), body, settings)
        return bodies.decode_or_status(answer, self._objects)

    async def delete_collection(
        self,
        label_selector: str | LabelSelector | Mapping[str, str] = "",
        field_selector: str | FieldSelector | Mapping[str, str] = "",
        *,
        namespace: str = "",
        propagation: Propagation | None = None,
        grace: int | None = None,
        **options: Unpack[WriteOptions],
    ) -> Page[T]:
        """Delete all objects that match the selectors, in one namespace or, for a cluster-scoped resource, everywhere.

        Args:
            label_selector: a string, a mapping of labels, or a parsed selector.
            field_selector: a string, a mapping of fields, or a parsed selector.
            namespace: "" for that of the client.
            propagation: what happens to the objects that they own; None for the default of the resource.
            grace: seconds before the objects are removed, 0 for at once; None for the defaults of the objects.
            options: see `WriteOptions`.

        Returns:
            The objects that the deletion was requested of. Empty if the server answers with a Status.

        Raises:
            UsageError: the resource is namespaced, and no namespace is given.
            ApiError: the server refused the request.
            WriteOutcomeUnknown: the answer was lost.
            TransportError: there is no answer, and nothing was deleted.
        """
        settings = self._settings.changed(options, "delete_collection()")
        selected = list_options(label_selector, field_selector, 0)
        body = delete_options(propagation, grace, "", "", dry_run=settings.dry_run)
        path = self.resource.path(place(self.resource, self.namespace, "", namespace))
        answer = await self._delete(path, tuple(selected.to_query()), body, settings)
        return bodies.decode_list(answer, self._objects)

    async def _delete(self, path: str, query: Query, body: dict[str, Any], settings: Settings) -> bytes:
        encoded = bodies.encode_plain(body) if body else None
        request = Request(path, query, "DELETE", settings.headers(JSON if body else ""), encoded)
        return await self._sender.exchange(request, settings, safe=settings.dry_run)

    def _scope(self, namespace: str) -> str:
        if namespace or self.namespace:
            return place(self.resource, self.namespace, "", namespace)
        return ""
