"""`apply_set`: apply the objects that belong to an owner, and delete those that no longer do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from aioinformer.cache.objects.changes import evolve
from aioinformer.cache.objects.views import View
from aioinformer.client.changes.owners import controller_of, set_controller_reference
from aioinformer.errors import AioinformerError, ApiNotFound, Conflict, NotFound, UsageError
from aioinformer.resources.keys import ObjectName, metadata_field, metadata_of, object_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from aioinformer.cache.lister import Lister
    from aioinformer.controller.request import Request
    from aioinformer.resources.resource import Resource

#: How the objects of a set are known: by their controller, or by labels.
By: TypeAlias = "Literal['owner'] | Mapping[str, str]"


class ForeignObject(AioinformerError):
    """An object of a set exists already, and belongs to someone else. It is not changed."""


class AppliedSet(NamedTuple):
    """The result of `apply_set`.

    Attributes:
        objects: what the server has stored, in the order of the set. An object that is being deleted is not applied.
        sent: how many of them were sent to the server; the others needed no request.
        leaving: the objects that were deleted or are being deleted, as resource and key. While there are any, the
            cleanup of an owner is not complete.
    """

    objects: list[Any]
    sent: int
    leaving: list[tuple[Resource[Any], ObjectName]]


async def apply_set(
    request: Request[Any],
    objects: Iterable[Any],
    *,
    resources: Sequence[Resource[Any]],
    by: By = "owner",
    force: bool = True,
) -> AppliedSet:
    """Apply a set of objects on the server (server-side apply), and delete the rest of what the request's object has.

        children = [config_map_for(widget), deployment_for(widget)]
        await apply_set(request, children, resources=[core_v1.CONFIG_MAPS, apps_v1.DEPLOYMENTS])

    The set is complete: a cached object that belongs to the owner and is not in the set is deleted. Objects that do not
    belong to the owner are neither changed nor deleted: before the first write, each name of the set must be free or
    belong to the owner. The server is asked about names that are not in the cache.

    Order: all checks; then the objects, one by one, in the order of the set; then the deletions, in the reverse order
    of `resources`. An error ends the call: nothing is deleted before all is applied. No request is sent for an object
    whose cached state has all fields of the set already.

    Args:
        request: of the reconciler. Its client has the field manager.
        objects: with apiVersion, kind and name; without a namespace, they are in that of the owner.
        resources: of all objects that the set may ever have. Each is an input of the controller.
        by: "owner" for a controller reference to the request's object; or labels for all objects of the set, which no
            other objects have, such as {"example.com/tenant": request.name}. With labels, objects may be in any
            namespace. The server does not delete them with their owner: apply the empty set when it is being deleted.
        force: take over fields that other field managers own.

    Raises:
        ForeignObject: a name of the set is taken; nothing was written.
        UsageError: the request has no object, an object is in the set twice or of another resource, or the owner is
            being deleted and the set is not empty; nothing was written.
        ApiError: the server refused a request.
        WriteOutcomeUnknown: the answer to a write was lost.
        TransportError: there is no answer.
    """
    owner = _Owner(request, by)
    wanted: dict[tuple[Resource[Any], ObjectName], Any] = {}
    for obj in objects:
        resource = _resource_of(obj, resources)
        made = owner.mark(obj, resource)
        if wanted.setdefault((resource, object_name(made)), made) is not made:
            raise UsageError(f"apply_set: {resource.gvr} {object_name(made)} is in the set twice")
    if wanted and owner.is_being_deleted:
        raise UsageError(f"apply_set: {request.key} is being deleted; apply the empty set, or nothing")
    owned = {resource: {object_name(each): each for each in owner.objects(resource)} for resource in resources}
    known = {place: await owner.find(*place, owned[place[0]]) for place in wanted}
    applied = []
    for place, obj in wanted.items():
        if not _is_leaving(known[place]):
            client = request.client.resource(place[0])
            applied.append(await client.apply_if_changed(obj, known[place], force=force))
    leaving = []
    for resource in reversed(resources):
        for key, obj in owned[resource].items():
            if (resource, key) not in wanted or _is_leaving(obj):
                leaving.append((resource, key))
            if (resource, key) not in wanted and not _is_leaving(obj):
                await _delete(request, resource, obj)
    return AppliedSet([each.object for each in applied], sum(not each.skipped for each in applied), leaving)


class _Owner:
    """Knows which objects belong to the object of a request, by a controller reference or by labels."""

    def __init__(self, request: Request[Any], by: By) -> None:
        if by == "owner" and request.object is None:
            raise UsageError(f"apply_set: {request.key} is gone; the server deletes what it owned")
        self._request = request
        self._labels = by if isinstance(by, Mapping) else None
        if not self._labels and by != "owner":
            raise UsageError(f'apply_set: by must be "owner" or labels, not {by!r}')
        self.is_being_deleted = request.object is None or _is_leaving(request.object)

    def mark(self, obj: Any, resource: Resource[Any]) -> Any:
        """Return an object of the set with its namespace, and with what shows its owner."""
        namespace = self._request.namespace
        if resource.namespaced and namespace and not metadata_field(metadata_of(obj), "namespace", "namespace"):
            obj = evolve(obj, {"metadata": {"namespace": namespace}})
        if self._labels is None:
            return set_controller_reference(obj, self._request.reference)
        return evolve(obj, {"metadata": {"labels": self._labels}})

    def _lister(self, resource: Resource[Any]) -> Lister[Any]:
        return self._request._context.lister(resource, owned=True)  # other inputs may have a part of the objects

    def objects(self, resource: Resource[Any]) -> list[Any]:
        """Return the cached objects of the owner."""
        if self._labels is None:
            return self._request.owned(resource)
        return self._lister(resource).list(self._labels)

    async def find(self, resource: Resource[Any], key: ObjectName, owned: Mapping[ObjectName, Any]) -> Any:
        """Return the object of a name in the set; None if there is none.

        Raises:
            ForeignObject: it does not belong to the owner.
        """
        if key in owned:
            return owned[key]
        try:
            found = self._lister(resource).get(str(key))
        except NotFound:
            try:
                found = await self._request.client.resource(resource).get(str(key))
            except ApiNotFound as error:
                if not error.name:  # the resource is not served at the moment
                    raise
                return None
        if self._has(found):
            return found
        controller = controller_of(found)
        whose = f"its controller is {controller.kind} {controller.name}" if controller else "it is not of this set"
        raise ForeignObject(f"{resource.group_resource} {key} exists, and {whose}; delete it, or choose another name")

    def _has(self, obj: Any) -> bool:
        if self._labels is None:
            controller = controller_of(obj)
            return controller is not None and controller.uid == self._request.reference.uid
        labels = metadata_field(metadata_of(obj), "labels", "labels") or {}
        return all(labels.get(name) == value for name, value in self._labels.items())


def _resource_of(obj: Any, resources: Iterable[Resource[Any]]) -> Resource[Any]:
    if isinstance(obj, Mapping) and not isinstance(obj, View):
        stated = obj.get("apiVersion"), obj.get("kind")
    else:
        stated = getattr(obj, "api_version", None), getattr(obj, "kind", None)
    for each in resources:
        if (each.api_version, each.kind) == stated:
            return each
    raise UsageError(
        f"apply_set: an object of apiVersion {stated[0]!r} and kind {stated[1]!r} is of none of the resources "
        f"{', '.join(each.gvr for each in resources)}"
    )


def _is_leaving(obj: Any) -> bool:
    return obj is not None and bool(metadata_field(metadata_of(obj), "deletion_timestamp", "deletionTimestamp"))


async def _delete(request: Request[Any], resource: Resource[Any], obj: Any) -> None:
    """Delete this object, and none of another uid."""
    uid = metadata_field(metadata_of(obj), "uid", "uid") or ""
    try:
        # The default of some kinds, such as Jobs, leaves their own objects behind.
        await request.client.resource(resource).delete(str(object_name(obj)), uid=uid, propagation="Background")
    except (ApiNotFound, Conflict) as error:
        if isinstance(error, ApiNotFound) and not error.name:  # the resource is not served at the moment
            raise
        request.log.debug("%s %s is gone already", resource.group_resource, object_name(obj))
