"""Subresources, and the methods of `ResourceClient` that use them.

A subresource is a part of an object with a path of its own: `status`, `scale`, and those that start something, such as
`eviction`. Methods of `ResourceClient` for which a subresource is needed raise `UsageError` if the resource is known
not to have it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, TypeVar, Unpack, cast

from aioinformer.cache.objects.codec import BodyDecoder, ObjectType
from aioinformer.client import bodies
from aioinformer.client.bodies import Status
from aioinformer.client.logs import log_query, read_lines
from aioinformer.client.requests import Body, Propagation, ReadOptions, Target, WriteOptions, delete_options, locate
from aioinformer.client.retries import new_request
from aioinformer.client.verbs import Verbs
from aioinformer.errors import UsageError
from aioinformer.models import authentication_v1, autoscaling_v1, core_v1
from aioinformer.resources.resource import Resource, path_segment
from aioinformer.transport import HttpRequest, Sending

T = TypeVar("T")
S = TypeVar("S")

_SCALE: Final[Resource[autoscaling_v1.Scale]] = Resource("autoscaling", "v1", "scales", "Scale", model="V1Scale")
_TOKEN_REQUEST: Final[Resource[authentication_v1.TokenRequest]] = Resource(
    "authentication.k8s.io", "v1", "tokenrequests", "TokenRequest", model="AuthenticationV1TokenRequest"
)
#: The types of bodies and answers of subresources. All other subresources of built-in kinds have that of the object.
FORMS: Final[Mapping[str, Resource[Any]]] = {
    "scale": _SCALE,
    "token": _TOKEN_REQUEST,
    "eviction": Resource("policy", "v1", "evictions", "Eviction", model="V1Eviction"),
    "binding": Resource("", "v1", "bindings", "Binding", model="V1Binding"),
}


class Subresource(Verbs[T]):
    """Reads and writes one subresource of the objects of a resource. Not every subresource has every verb."""

    __slots__ = ()

    async def create(
        self, target: Target, body: Body[T], *, namespace: str = "", **options: Unpack[WriteOptions]
    ) -> T | Status:
        """Send a body to the subresource (POST), and return the answer.

        Args:
            target: `name`, `namespace/name`, or an object, of which only the name is used.
            body: an object of the subresource's type.
            namespace: of the object, if nothing else names it.
            options: see `WriteOptions`.

        Raises:
            ApiError, WriteOutcomeUnknown, TransportError: as every write; see `ResourceClient`.
        """
        settings = self._settings.changed(options, "create()")
        path = self._path(target, namespace)
        raw = bodies.encode(body, self._form)
        lane = "token" if self._subresource == "token" else ""
        request = new_request(settings, "POST", path, settings.write_query(), raw, lane=lane)
        answer = await self._sender.exchange(request, settings, safe=settings.dry_run)
        return bodies.decode_or_status(answer, self._objects)


class ObjectMethods(Verbs[T]):
    """The subresources of objects, and the methods that use them."""

    __slots__ = ()

    @property
    def status(self) -> Subresource[T]:
        """The status of objects: get, replace, patch and apply change nothing but the status."""
        return self._part("status", self._objects, self.resource)

    @property
    def scale(self) -> Subresource[autoscaling_v1.Scale]:
        """The number of replicas, in the same form for all resources that have it.

        Raises:
            UsageError: the resource is known not to have it.
        """
        return self.subresource("scale")

    @property
    def ephemeral_containers(self: ObjectMethods[core_v1.Pod]) -> Subresource[core_v1.Pod]:
        """The ephemeral containers of pods.

        Raises:
            UsageError: the resource is known not to have it.
        """
        return self._part("ephemeralcontainers", self._objects, self.resource)

    def subresource(
        self, name: str, form: Resource[Any] | None = None, decoder: BodyDecoder[Any] | None = None
    ) -> Subresource[Any]:
        """Return a subresource by its name, as in URLs.

        Args:
            name: such as "resize".
            form: the type of bodies and answers, if it is not that of the object, and the subresource is not built in.
            decoder: as for `Client.resource`.

        Raises:
            UsageError: the resource is known not to have it.
        """
        form = form or FORMS.get(name)
        if form is None and decoder is None:
            return self._part(name, self._objects, self.resource)
        form = form or self.resource
        return self._part(name, ObjectType(form, decoder), form)

    async def evict(
        self: ObjectMethods[core_v1.Pod],
        target: Target,
        *,
        namespace: str = "",
        propagation: Propagation | None = None,
        grace: int | None = None,
        uid: str = "",
        resource_version: str = "",
        **options: Unpack[WriteOptions],
    ) -> Status:
        """Delete a pod if its disruption budget permits that. The arguments are those of `ResourceClient.delete`.

        Raises:
            TooManyRequests: the disruption budget does not permit it now.
            ApiNotFound: there is no such pod.
            ApiError, WriteOutcomeUnknown, TransportError: as every write; see `ResourceClient`.
            UsageError: an option or the name is invalid.
        """
        settings = self._settings.changed(options, "evict()")
        found, name = locate(self.resource, self.namespace, target, namespace)
        body: dict[str, Any] = {"metadata": {"name": name, "namespace": found}}
        if deletion := delete_options(propagation, grace, uid, resource_version, dry_run=settings.dry_run):
            body["deleteOptions"] = deletion
        return await self._start("eviction", found, name, body, options)

    async def bind(
        self: ObjectMethods[core_v1.Pod],
        target: Target,
        node: str,
        *,
        namespace: str = "",
        **options: Unpack[WriteOptions],
    ) -> Status:
        """Assign a pod to a node, as a scheduler does.

        Args:
            target: `name`, `namespace/name`, or an object, of which only the name is used.
            node: the name of the node.
            namespace: of the pod, if nothing else names it.
            options: see `WriteOptions`.

        Raises:
            Conflict: the pod has a node.
            ApiNotFound: there is no such pod.
            ApiError, WriteOutcomeUnknown, TransportError: as every write; see `ResourceClient`.
            UsageError: an option or a name is invalid.
        """
        found, name = locate(self.resource, self.namespace, target, namespace)
        path_segment(node, "node")
        to = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"metadata": {"name": name, "namespace": found}, "target": to}
        return await self._start("binding", found, name, body, options)

    async def create_token(
        self: ObjectMethods[core_v1.ServiceAccount],
        target: Target,
        *,
        namespace: str = "",
        audiences: Sequence[str] = (),
        seconds: int | None = None,
        bound_to: Mapping[str, str] | None = None,
        **options: Unpack[WriteOptions],
    ) -> authentication_v1.TokenRequest:
        """Return a new token of a service account, in `status.token`.

        Args:
            target: `name`, `namespace/name`, or an object, of which only the name is used.
            namespace: of the service account, if nothing else names it.
            audiences: for whom the token is valid, () for the API server.
            seconds: for how long it is valid; None for the server's default.
            bound_to: the object with which the token ends: `apiVersion`, `kind`, `name` and `uid`.
            options: see `WriteOptions`.

        Raises:
            ApiNotFound: there is no such service account.
            ApiError, WriteOutcomeUnknown, TransportError: as every write; see `ResourceClient`.
            UsageError: an option or the name is invalid.
        """
        spec: dict[str, Any] = {"audiences": list(audiences)}
        if seconds is not None:
            spec["expirationSeconds"] = seconds
        if bound_to is not None:
            spec["boundObjectRef"] = dict(bound_to)
        made = await self.subresource("token").create(target, {"spec": spec}, namespace=namespace, **options)
        return cast("authentication_v1.TokenRequest", made)

    async def logs(
        self: ObjectMethods[core_v1.Pod],
        target: Target,
        container: str = "",
        *,
        namespace: str = "",
        follow: bool = False,
        previous: bool = False,
        tail: int | None = None,
        since: float | datetime | None = None,
        timestamps: bool = False,
        limit_bytes: int | None = None,
        **options: Unpack[ReadOptions],
    ) -> AsyncGenerator[str]:
        """Yield the lines of a container's log, without line ends.

        If you stop before the end, close the generator, e.g. with `contextlib.aclosing`. A line of more than 1 MiB
        comes in several pieces. Bytes that are not UTF-8 are replaced.

        Args:
            target: `name`, `namespace/name`, or an object, of which only the name is used.
            container: the container; "" for the only one.
            namespace: of the pod, if nothing else names it.
            follow: go on with new lines until the container ends. The server may answer only with the first line, so
                there is no timeout, and the request is not repeated.
            previous: the log of the container's previous run.
            tail: begin with the last so many lines, None for all.
            since: begin so many seconds ago, or at this time.
            timestamps: begin each line with the time at which it was written.
            limit_bytes: end after so many bytes.
            options: see `ReadOptions`. The timeout is that of the beginning of the answer.

        Raises:
            ApiError: the server refused the request; a container that has not started has no log.
            TransportError: there is no answer, or it was cut.
            UsageError: an option or the name is invalid.
        """
        settings = self._settings.changed(options, "logs()")
        if follow:
            settings = replace(settings, timeout=None, retry=False)
        self._require("log")
        query = log_query(container, follow, previous, tail, since, timestamps, limit_bytes)
        headers = settings.headers("", "*/*")
        path = f"{self._path(target, namespace)}/log"
        request = HttpRequest(path, query, headers=headers, late_head=follow, paced=True, sending=Sending())
        response = await self._sender.persist(lambda: self._sender.open(request), request, settings, safe=True)
        async for line in read_lines(response):
            yield line

    async def _start(
        self, name: str, namespace: str, target: str, body: dict[str, Any], options: WriteOptions
    ) -> Status:
        answer = await self.subresource(name).create(target, body, namespace=namespace, **options)
        return answer if isinstance(answer, Status) else Status("Success")

    def _part(self, name: str, objects: ObjectType[S], form: Resource[Any]) -> Subresource[S]:
        path_segment(name, "subresource")
        self._require(name)
        return Subresource(self._sender, self._settings, self.resource, objects, self.namespace, name, form)

    def _require(self, name: str) -> None:
        resource = self.resource
        if (resource.verbs or resource.subresources) and name not in resource.subresources:
            raise UsageError(f"{resource.gvr} has no subresource {name!r}, only {', '.join(resource.subresources)}")
