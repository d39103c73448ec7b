"""`Client`: reads and writes the objects of one API server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack, overload

import msgspec

from aioinformer.cache.objects.codec import BodyDecoder, ObjectType
from aioinformer.cache.objects.views import View, view_resource
from aioinformer.client import bodies
from aioinformer.client.accessors import Accessors
from aioinformer.client.bodies import RawAnswer
from aioinformer.client.requests import JSON, FieldValidation, Impersonation, Settings, WriteOptions
from aioinformer.client.resource_client import ResourceClient
from aioinformer.client.retries import Sender, new_request
from aioinformer.errors import OptionError, UsageError
from aioinformer.exports import lazy_type
from aioinformer.resources import catalog
from aioinformer.resources.discovery import Discovery
from aioinformer.resources.resource import path_segment
from aioinformer.resources.restmapper import ServedResources, UnknownResource
from aioinformer.resources.scopes import check_namespace
from aioinformer.resources.types_of_objects import declared_type, type_of
from aioinformer.transport import Transport
from aioinformer.transport.clients import Connection, transport_of

if TYPE_CHECKING:
    from aioinformer.client.applying import ApplyReport
    from aioinformer.resources.resource import Resource
else:
    ApplyReport = lazy_type("aioinformer.client.applying", "ApplyReport")

T = TypeVar("T")
V = TypeVar("V", bound=View)

_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")


class Client(Accessors):
    """Reads and writes the objects of one API server, without a cache.

        client = Client(transport, field_manager="shop-operator")
        pod = await client.core.v1.pods.get("shop/web-0")

    Every built-in resource is an attribute path, `client.apps.v1.deployments`; `resource` and `resource_for` return the
    clients of all others. The client has no connection of its own: you close the transport.

    Args:
        transport: sends the requests; a `Connection` or a transport.
        namespace: the namespace of all namespaced resources, "" for any.
        field_manager: the name under which the server records who set which field; None for one that the server makes
            of the User-Agent. `apply` requires it.
        timeout: seconds for each call, with all waits and repetitions; None for no limit.
        dry_run: process all writes, and store nothing.
        field_validation: what the server does about unknown and duplicate fields: "Ignore", "Warn" or "Strict"; None
            for its default, "Warn". Warnings are logged.
        impersonate: the user as whom requests are processed, by name or as `Impersonation`.
        retry: wait for a server that is starting or has too much to do, and repeat the request where that is safe.

    Attributes:
        transport: sends the requests.
        namespace: the namespace of all namespaced resources, "" for any.

    Raises:
        UsageError: an argument is invalid.
    """

    def __init__(
        self,
        transport: Transport | Connection,
        *,
        namespace: str = "",
        field_manager: str | None = None,
        timeout: float | None = 30.0,
        dry_run: bool = False,
        field_validation: FieldValidation | None = None,
        impersonate: Impersonation | str | None = None,
        retry: bool = True,
    ) -> None:
        check_namespace(namespace)
        settings = Settings(timeout, impersonate, retry, dry_run, field_manager, field_validation)
        self.transport = transport_of(transport)
        self.namespace = namespace
        self._discovery = Discovery(self.transport)
        #: How the objects of each resource are read; shared by all copies of this client.
        self._objects: dict[Resource[Any], ObjectType[Any]] = {}
        self._set_up(Sender(self.transport), settings)

    def _set_up(self, sender: Sender, settings: Settings) -> None:
        self._sender = sender
        self._settings = settings
        self._known: dict[Resource[Any], ResourceClient[Any]] = {}

    def __repr__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"<{type(self).__name__} of {self.transport!r}{where}>"

    @property
    def field_manager(self) -> str:
        """The name under which the server records who set which field; "" for one that the server makes up."""
        return self._settings.field_manager or ""

    def with_options(self, *, namespace: str | None = None, **options: Unpack[WriteOptions]) -> Client:
        """Return a client with other options. What is omitted is as in this client.

        Args:
            namespace: the namespace of all namespaced resources, "" for any; None for that of this client.
            options: see `WriteOptions`.

        Raises:
            UsageError: an option is invalid.
        """
        found = self.namespace if namespace is None else namespace
        check_namespace(found)
        return self._copy(found, self._sender, self._settings.changed(options, "with_options()"))

    def with_sender(self, wrap: Callable[[Sender], Sender]) -> Client:
        """Return a client whose requests another sender sends, as those that record writes.

        Args:
            wrap: called with the sender of this client; returns that of the new one.
        """
        return self._copy(self.namespace, wrap(self._sender), self._settings)

    def outside_ring(self) -> Client:
        """Return a client for writes that do not belong to the ring of the manager, such as to one summary object.

        In a run of a controller that shares a ring, other clients write only while this replica owns the slot of the
        run's object, and no other objects of the controller's resource whose slots it does not own. This one does not
        check that, so several replicas may write at the same time: use preconditions. Elsewhere, it changes nothing.
        """
        return self._copy(self.namespace, self._sender.outside_ring(), self._settings)

    def _copy(self, namespace: str, sender: Sender, settings: Settings) -> Client:
        other = object.__new__(type(self))
        other.transport = self.transport
        other.namespace = namespace
        other._discovery = self._discovery
        other._objects = self._objects
        other._set_up(sender, settings)
        return other

    @overload
    async def resource_for(self, obj: V, decoder: None = None) -> ResourceClient[V]: ...
    @overload
    async def resource_for(self, obj: Any, decoder: BodyDecoder[T]) -> ResourceClient[T]: ...
    @overload
    async def resource_for(self, obj: Any, decoder: None = None) -> ResourceClient[Any]: ...

    async def resource_for(self, obj: Any, decoder: BodyDecoder[Any] | None = None) -> ResourceClient[Any]:
        """Return the client of the resource of an object, by its `apiVersion` and `kind`.

        A resource that is not built in is found by discovery, once for each client.

        Args:
            obj: a view, a mapping with the keys of the JSON, an object with the attributes `api_version` and `kind`, or
                one of a class of `custom_resource`, which is then the class of what is returned.
            decoder: as for `resource`.

        Raises:
            UsageError: the object does not state its type.
            UnknownResource: the server has no resource of this type.
            ApiError: the server refused the discovery.
            TransportError: the server was not reached.
        """
        if isinstance(obj, View):
            return self.resource(view_resource(obj), decoder)
        api_version, kind = type_of(obj)
        if not api_version:
            raise UsageError(f"{type(obj).__name__} does not state apiVersion and kind; use client.resource(resource)")
        if decoder is None and declared_type(type(obj))[0]:
            decoder = type(obj)
        group, _, version = api_version.rpartition("/")
        found = catalog.by_kind(group, version, kind) or await self._discovered(group, version, kind)
        return self.resource(found, decoder)

    async def edit(
        self, obj: T, change: Callable[[T], Any], *, attempts: int = 5, **options: Unpack[WriteOptions]
    ) -> T:
        """Change an object of any resource by a function; see `ResourceClient.edit`, which also has the errors.

        Args:
            obj: a view, or another object that `resource_for` accepts.
            change: returns the new state of its argument, or an awaitable of it.
            attempts: how many patches to send before a conflict is raised.
            options: see `WriteOptions`.

        Raises:
            UsageError: the object does not state its type.
            UnknownResource: the server has no resource of this type.
            ApiError, TransportError: as `resource_for`.
        """
        client = await self.resource_for(obj)
        edited: T = await client.edit(obj, change, attempts=attempts, **options)
        return edited

    async def apply_all(
        self,
        objects: Iterable[Any],
        *,
        namespace: str = "",
        force: bool = False,
        wait: float = 60.0,
        **options: Unpack[WriteOptions],
    ) -> ApplyReport:
        """Apply objects on the server: namespaces, definitions, all others, and at last webhooks and API services.

            report = await client.apply_all(load_manifests("deploy/"))

        After the definitions, the call waits until the server serves their resources. An object that the server
        refuses does not keep the others from being applied; after a server that does not answer, no more is sent.
        Fields that other field managers own are a conflict, unless you take them over by `force`.

        Args:
            objects: bodies with `apiVersion` and `kind`, as `load_manifests` and `WIDGETS.crd()` return them.
            namespace: of objects that state none, and are namespaced.
            force: take over fields that other field managers own.
            wait: seconds to wait for the definitions. In a dry run, there is no wait.
            options: see `WriteOptions`. The timeout is that of each request. A field manager is required, here or in
                the client.

        Returns:
            What was created, changed, or left unchanged.

        Raises:
            ApplyFailed: an object was not applied. Its `report` says which, why, and what has become of the others.
            UsageError: there is no field manager, or an object lacks `apiVersion`, `kind` or `metadata`. Nothing was
                sent.
        """
        from aioinformer.client.applying import apply_all

        settings = self._settings.changed(options, "apply_all()")
        return await apply_all(self, settings, objects, namespace, wait, force=force, **options)

    async def discover(self) -> ServedResources:
        """Return the resources that the server has now.

        Raises:
            ApiError: the server refused the discovery.
            TransportError: the server was not reached.
        """
        return await self._discovery.resources(refresh=True)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
        accept: str = f"{JSON}, */*",
        fresh: bool = False,
        **options: Unpack[WriteOptions],
    ) -> RawAnswer:
        """Send a request of your own, with the credentials, repetitions and errors of all others.

            version = (await client.request("GET", "/version")).json()

        Args:
            method: "GET", "POST", "PUT", "PATCH" or "DELETE".
            path: absolute and not quoted, without a query: "/apis/metrics.k8s.io/v1beta1/nodes".
            query: the parameters, not quoted.
            body: bytes to send unchanged, or anything that has a JSON form; None for no body.
            content_type: of the body.
            accept: the content types that the server may answer with.
            fresh: whether the request uses a new connection, which a balancer may lead to another server.
            options: see `WriteOptions`. Their parameters are added to the query of all methods but "GET"; a dry run
                is also added to the body of a "DELETE", beside which the server ignores the query.

        Raises:
            UsageError: the path contains an empty segment, "." or "..", the body has no JSON form, or that of a
                "DELETE" in a dry run is no mapping.
            ApiError, WriteOutcomeUnknown, TransportError: as every write; see `ResourceClient`.
        """
        settings = self._settings.changed(options, "request()")
        if method not in _METHODS:
            raise OptionError(f"method must be one of {', '.join(_METHODS)}, not {method!r}")
        first, *segments = path.split("/")
        if first or not segments:
            raise UsageError(f'path: expected an absolute path such as "/version", not {path!r}')
        end = "/" if not segments[-1] else ""
        quoted = "".join(f"/{path_segment(each, 'path')}" for each in (segments[:-1] if end else segments)) + end
        if method == "DELETE" and body is not None and settings.dry_run:
            if not isinstance(body, Mapping):
                raise UsageError("request(): in a dry run, the body of a DELETE must be a mapping, which gets dryRun")
            body = {**body, "dryRun": ["All"]}
        raw = body if body is None or isinstance(body, bytes) else bodies.encode_unchecked(body)
        reads = method == "GET"
        more = (*(query or {}).items(), *(() if reads else settings.write_query()))
        request = new_request(settings, method, quoted, more, raw, content_type, accept=accept)
        request = msgspec.structs.replace(request, fresh=fresh)
        answer = await self._sender.exchange(request, settings, safe=reads or settings.dry_run)
        status = 0 if request.sending is None else request.sending.status
        return bodies.RawAnswer(status or 200, answer)

    async def _discovered(self, group: str, version: str, kind: str) -> Resource[Any]:
        for refresh in (False, True):
            for resource in await self._discovery.resources(refresh=refresh):
                if (resource.group, resource.version, resource.kind) == (group, version, kind):
                    return resource
        raise UnknownResource(f"{kind}.{version}.{group}" if group else f"{kind}.{version}")

    def _make(self, resource: Resource[Any], decoder: BodyDecoder[Any] | None) -> ResourceClient[Any]:
        objects: ObjectType[Any] | None = self._objects.get(resource) if decoder is None else None
        if objects is None:
            objects = ObjectType(resource, decoder)
            if decoder is None:
                self._objects[resource] = objects
        namespace = self.namespace if resource.namespaced else ""
        return ResourceClient(self._sender, self._settings, resource, objects, namespace)
