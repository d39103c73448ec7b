"""`ResourceClient`: reads and writes the objects of one resource."""

from __future__ import annotations

import builtins
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, Unpack

import msgspec

from aioinformer.cache.objects.codec import ObjectType
from aioinformer.cache.objects.views import json_of
from aioinformer.client import bodies
from aioinformer.client.bodies import Status
from aioinformer.client.changes.applied import creation_manager
from aioinformer.client.changes.ownership import managed_fields_upgrade
from aioinformer.client.lists import Listing, Page, PageRequests, list_options
from aioinformer.client.requests import (
    Body,
    Propagation,
    ReadOptions,
    Target,
    WriteOptions,
    delete_options,
    namespace_in,
    place,
)
from aioinformer.client.retries import new_request
from aioinformer.client.subresources import ObjectMethods
from aioinformer.errors import ApiNotFound, Conflict, UsageError
from aioinformer.reflector.options import ReflectorOptions
from aioinformer.reflector.pager import read_watch
from aioinformer.reflector.watch_events import ObjectEvent, RecordDecoder
from aioinformer.resources.keys import object_name
from aioinformer.resources.scopes import check_namespace
from aioinformer.resources.selectors import FieldSelector, LabelSelector
from aioinformer.transport import HttpRequest, Sending

if TYPE_CHECKING:
    from aioinformer.client.requests import Query, Settings

T = TypeVar("T")

#: A quiet collection has no events: how long a watch may be silent has no limit that anything could reach.
_WATCHING: Final = ReflectorOptions(idle_timeout=1e9)
#: How often an upgrade of managed fields is tried while others change the object.
_ATTEMPTS: Final = 5


class ResourceClient(ObjectMethods[T]):
    """Reads and writes the objects of one resource, without a cache.

    `client.core.v1.pods`, `client.resource(WIDGETS)` and `await client.resource_for(obj)` return one. What its methods
    return is what listers return: immutable objects that keep the bytes of the server.

    Every request raises `ApiError`, or a subclass of it, if the server refuses it. Without an answer, it raises
    `TransportError`, and nothing was written; only if the answer to a write was lost, it raises `WriteOutcomeUnknown`.
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

    async def watch(
        self,
        label_selector: str | LabelSelector | Mapping[str, str] = "",
        field_selector: str | FieldSelector | Mapping[str, str] = "",
        *,
        namespace: str = "",
        resource_version: str = "",
        seconds: int | None = None,
        **options: Unpack[ReadOptions],
    ) -> AsyncGenerator[ObjectEvent[T]]:
        """Yield the changes of one watch, without a cache. It ends when the server ends the watch, after minutes.

        Use an informer for all that must not miss a change. If you stop before the end, close the generator, e.g. with
        `contextlib.aclosing`; that closes the response.

        Args:
            label_selector: as for `list`.
            field_selector: as for `list`.
            namespace: as for `list`.
            resource_version: yield the changes after it. With "", the objects that exist come first, as ADDED.
            seconds: the server ends the watch after this time; None for its default.
            options: see `ReadOptions`. The timeout is that of the beginning of the answer, as are the repetitions.

        Raises:
            Expired: the server no longer has the changes after this version: list again.
            ApiError: the server refused the request, or ended the watch with an error.
            TransportError: there is no answer, or it was cut.
            DecodeError: an object cannot be read.
            SelectorError: a selector does not parse.
            UsageError: an option or the namespace is invalid.
        """
        settings = self._settings.changed(options, "watch()")
        selected = list_options(label_selector, field_selector, 0, resource_version)
        selected.watch = True
        selected.timeout_seconds = seconds or 0
        path = self.resource.path(self._scope(namespace))
        query = tuple(selected.to_query())
        request = HttpRequest(path, query, headers=settings.headers(), late_head=True, stream=True, sending=Sending())
        response = await self._sender.persist(lambda: self._sender.open(request), request, settings, safe=True)
        decoder = RecordDecoder(self._objects.on_arrival if self._objects.decodes_early else None)
        async with aclosing(read_watch(response, selected, decoder, _WATCHING)) as events:
            async for event in events:
                if event.record is not None:
                    yield ObjectEvent(event.type, self._objects.to_view(event.record))

    async def create(self, obj: Body[T], *, namespace: str = "", **options: Unpack[WriteOptions]) -> T:
        """Create an object, and return what the server has stored.

        With `metadata.generateName` instead of a name, the server appends a random part.

        Args:
            obj: the object; see `aioinformer.client.bodies.encode`.
            namespace: its namespace, if nothing else names it.
            options: see `WriteOptions`.

        Raises:
            AlreadyExists: there is an object of this name.
            Invalid: the object breaks rules of its kind.
            ApiError, WriteOutcomeUnknown, TransportError: as every write; see `ResourceClient`.
        """
        settings = self._settings.changed(options, "create()")
        path = self.resource.path(place(self.resource, self.namespace, namespace_in(obj), namespace))
        writing = self._write("POST", path, bodies.encode(obj, self.resource), settings)
        del obj  # it may be a Secret, and a traceback could show it
        return await writing

    async def apply_new(self, obj: Any, *, namespace: str = "", **options: Unpack[WriteOptions]) -> T:
        """Create an object that is applied from now on, and return what the server has stored.

        Unlike `apply`, it never changes an object that exists. `apply_if_changed` goes on with the object as if it were
        applied: it sends nothing for the same configuration, and fields that a later one lacks leave the object. For
        this, the server records the creation under the name of the field manager, with `:created-` and a digest of the
        configuration.

        Args:
            obj: the object, with a name.
            namespace: its namespace, if nothing else names it.
            options: see `WriteOptions`. A field manager is required, here or in the client.

        Raises:
            UsageError: there is no field manager.
            AlreadyExists: there is an object of this name; further errors as `create`.
        """
        manager = self._settings.changed(options, "apply_new()").manager("apply_new()")
        options["field_manager"] = creation_manager(manager, msgspec.json.decode(bodies.encode(obj, self.resource)))
        return await self.create(obj, namespace=namespace, **options)

    async def upgrade_managed_fields(
        self,
        target: Target,
        managers: Collection[str] = (),
        *,
        namespace: str = "",
        subresource: str = "",
        **options: Unpack[WriteOptions],
    ) -> T:
        """Make the fields of an object that managers have updated applied fields of the client's field manager.

        Use it once when a program changes from `create`, `replace`, `patch` and `edit` to `apply`. Fields that the
        managers have written, and that the applies do not state, leave the object with the next apply; without this,
        they stay for ever. Nothing but `metadata.managedFields` changes, in exactly the version that was read. No
        request but the read is sent if the managers have updated nothing. It is client-go's `UpgradeManagedFields`.

        Args:
            target: `name`, `namespace/name`, or an object. The live object is read.
            managers: whose updates to move; by default those of the client's field manager. Name others only if they
                are former names of this program.
            namespace: of the object, if nothing else names it.
            subresource: move what was updated through this subresource, such as "status".
            options: see `WriteOptions`. With `dry_run=True`, the result shows what would be stored.

        Raises:
            UsageError: there is no field manager, or `managers` is a text.
            ApiNotFound: there is no such object.
            Conflict: others have changed the object between each of five reads and the writes.
            ApiError, WriteOutcomeUnknown, TransportError: as every write; see `ResourceClient`.
        """
        to, moved, whole = self._upgrade("upgrade_managed_fields()", managers, options)
        conflicts = 0
        while True:
            live = await whole.get(target, namespace=namespace)
            patch = managed_fields_upgrade(live, moved, to, subresource=subresource)
            if patch is None:
                return bodies.decode(json_of(live), self._objects)
            try:
                return await self.patch(target, patch, namespace=namespace, **options)
            except Conflict:
                conflicts += 1
                if conflicts == _ATTEMPTS:
                    raise

    async def upgrade_all_managed_fields(
        self,
        managers: Collection[str] = (),
        label_selector: str | LabelSelector | Mapping[str, str] = "",
        field_selector: str | FieldSelector | Mapping[str, str] = "",
        *,
        namespace: str = "",
        subresource: str = "",
        **options: Unpack[WriteOptions],
    ) -> builtins.list[T]:
        """Do as `upgrade_managed_fields` for all objects that match the selectors, one after another.

        An object that is deleted meanwhile is left out. An error ends the call; the objects before it stay upgraded,
        and a second call sends nothing for them.

        Args:
            managers: as for `upgrade_managed_fields`.
            label_selector: as for `list`.
            field_selector: as for `list`.
            namespace: as for `list`.
            subresource: as for `upgrade_managed_fields`.
            options: see `WriteOptions`. The timeout is that of each object. With `dry_run=True`, nothing is stored.

        Returns:
            The objects that have changed, as they are stored; with `dry_run=True`, those that would.

        Raises:
            UsageError, Conflict, ApiError, WriteOutcomeUnknown, TransportError: as `upgrade_managed_fields`.
        """
        to, moved, whole = self._upgrade("upgrade_all_managed_fields()", managers, options)
        changed = []
        async for each in whole.list(label_selector, field_selector, namespace=namespace):
            if managed_fields_upgrade(each, moved, to, subresource=subresource) is None:
                continue
            key = str(object_name(each))
            try:
                changed.append(await self.upgrade_managed_fields(key, moved, subresource=subresource, **options))
            except ApiNotFound as error:
                if not error.name:  # the resource is not served at the moment
                    raise
        return changed

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
            ApiError, WriteOutcomeUnknown, TransportError: as every write; see `ResourceClient`.
            UsageError: an option or the name is invalid.
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
            label_selector: as for `list`.
            field_selector: as for `list`.
            namespace: as for `list`.
            propagation: what happens to the objects that they own; None for the default of the resource.
            grace: seconds before the objects are removed, 0 for at once; None for the defaults of the objects.
            options: see `WriteOptions`.

        Returns:
            The objects that the deletion was requested of. Empty if the server answers with a Status.

        Raises:
            UsageError: the resource is namespaced, and no namespace is given.
            ApiError, WriteOutcomeUnknown, TransportError: as every write; see `ResourceClient`.
        """
        settings = self._settings.changed(options, "delete_collection()")
        selected = list_options(label_selector, field_selector, 0)
        body = delete_options(propagation, grace, "", "", dry_run=settings.dry_run)
        path = self.resource.path(place(self.resource, self.namespace, "", namespace))
        answer = await self._delete(path, tuple(selected.to_query()), body, settings)
        return bodies.decode_list(answer, self._objects)

    def _upgrade(
        self, caller: str, managers: Collection[str], options: WriteOptions
    ) -> tuple[str, Collection[str], ResourceClient[Any]]:
        """Return the manager of the applies, those whose updates are moved, and a client with all managed fields."""
        settings = self._settings.changed(options, caller)
        to = settings.manager(caller)
        if isinstance(managers, str):
            raise UsageError(f"{caller}: managers is a list of names, not the text {managers!r}")
        objects: ObjectType[Any] = ObjectType(msgspec.structs.replace(self.resource, decoder=None))
        return to, managers or (to,), ResourceClient(self._sender, settings, self.resource, objects, self.namespace)

    async def _delete(self, path: str, query: Query, body: dict[str, Any], settings: Settings) -> bytes:
        encoded = bodies.encode_plain(body) if body else None
        request = new_request(settings, "DELETE", path, query, encoded)
        return await self._sender.exchange(request, settings, safe=settings.dry_run)

    def _scope(self, namespace: str) -> str:
        if namespace or self.namespace:
            return place(self.resource, self.namespace, "", namespace)
        return ""
